"""Operators of torch_npu without an implementation: their names and the shapes of their results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.library import Library

_LIBRARY = Library("npu", "DEF")


def defined(schema: str, result: Callable[..., Any]) -> Callable[..., Any]:
    """An operator without an implementation that gives such a result on meta tensors."""
    _LIBRARY.define(schema)
    called = schema.partition("(")[0]
    _LIBRARY.impl(called, result, "Meta")
    name, _, overload = called.partition(".")
    return getattr(getattr(torch.ops.npu, name), overload or "default")
