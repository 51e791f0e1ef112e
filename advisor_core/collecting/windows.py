"""The steps to record, and how much data they are, from ``windows.yaml``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from pydantic import Field

from advisor_core.text.base import Model
from advisor_core.text.packaged import packaged_yaml


class Window(Model):
    """Steps by what happens to them, in this order: the arguments of ``schedule`` of PyTorch's profilers."""

    skip_first: int = Field(ge=0)
    wait: int = Field(ge=0)
    warmup: int = Field(ge=0)
    active: int = Field(ge=1)

    @property
    def first(self) -> int:
        """The first step that is recorded, counted from 0."""
        return self.skip_first + self.wait + self.warmup

    @property
    def end(self) -> int:
        """The step after the last one that is recorded."""
        return self.first + self.active


class Seconds(Model):
    """A window by the clock, for a profiler that knows no steps."""

    delay: int = Field(ge=1)
    duration: int = Field(ge=1)


class Windows(Model):
    training: Window
    decode: Window
    rl: Sequence[int]
    seconds: Seconds


class Recording(Model):
    """``growth``: level of a profile to the factor by which its files grow at the level that is recommended. ``space``:
    free disk space for parsing, as a multiple of the raw data."""

    windows: Windows
    growth: Mapping[str, float]
    space: int


@cache
def recording() -> Recording:
    """The contents of ``windows.yaml``."""
    return Recording.model_validate(packaged_yaml("advisor_core.collecting", "windows.yaml"))
