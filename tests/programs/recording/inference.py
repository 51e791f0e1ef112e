"""Operators of torch_npu for the generation of tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.programs.recording.library import defined

RESERVED = 16
"""Positions for which a cache has room behind the prompt."""

_write = defined("npu_scatter_nd_update_(Tensor(a!) cache, Tensor rows) -> Tensor(a!)", lambda cache, rows: cache)
_filter = defined("npu_top_k_top_p(Tensor logits, Tensor p) -> Tensor", lambda x, p: x.new_empty(x.shape))


def keep_place(self: Any, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
    """In place of the ``update`` of a cache of transformers that grows: it has room from the beginning, and new keys
    and values are written into it."""
    if not self.is_initialized:
        self.lazy_initialization(keys, values)
        length = keys.shape[-2] + RESERVED
        self.keys, self.values = (one.new_empty((*one.shape[:-2], length, one.shape[-1])) for one in (keys, values))
    _write(self.keys, keys)
    _write(self.values, values)
    return self.keys, self.values


def top_p(self: Any, _: Tensor, logits: Tensor) -> Tensor:
    """In place of what transformers filters logits by: ``npu_top_k_top_p``."""
    if not hasattr(self, "shares"):
        self.shares = torch.full(logits.shape[:1], self.top_p, dtype=logits.dtype, device=logits.device)
    return _filter(logits, self.shares)
