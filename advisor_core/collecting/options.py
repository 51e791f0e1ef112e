"""What a profile may have to record, from ``options.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal, get_args

from pydantic import Field

from advisor_core.models.base import Model, Text
from advisor_core.packaged import packaged_yaml

Tool = Literal["torch_npu", "verl", "vllm", "mindie", "msprof"]
TOOLS: tuple[Tool, ...] = get_args(Tool)


class Option(Model):
    """``settings``: how each profiler spells it; one that is not named cannot record it."""

    default: bool
    provides: Text
    cost: Text
    settings: Mapping[Tool, str]


class Window(Model):
    """Steps by what happens to them, in this order: the arguments of ``torch_npu.profiler.schedule``."""

    skip_first: int = Field(ge=0)
    wait: int = Field(ge=0)
    warmup: int = Field(ge=0)
    active: int = Field(ge=1)


class Windows(Model):
    training: Window
    decode: Window
    rl: Sequence[int]


class Options(Model):
    """``growth``: level of a profile to the factor by which its files grow at the level that is recommended."""

    options: Mapping[str, Option]
    windows: Windows
    growth: Mapping[str, float]


@cache
def known_options() -> Options:
    """The contents of ``options.yaml``."""
    return Options.model_validate(packaged_yaml("advisor_core.collecting", "options.yaml"))
