"""The part of a timeline that a profiler level records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["level_none", "level0", "level1", "level2"]
"""The profiler levels, spelt as in reports."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One level (docs/sources.md#levels): ``setting`` and ``metrics`` are what profiler_info says about it.

    ``device``: tasks of the device at all. ``details``: the type, shapes and counters of kernels, the CANN lane, and
    the steps of collectives. ``runtime``: the calls below those of CANN's operator interfaces.
    """

    setting: str
    device: bool
    details: bool
    runtime: bool

    @property
    def metrics(self) -> str:
        """The AI core metrics that the profiler takes by default at this level."""
        return "ACL_AICORE_PIPE_UTILIZATION" if self.details else "ACL_AICORE_NONE"


RECORDINGS: dict[Level, Recording] = {
    "level_none": Recording("Level_none", device=False, details=False, runtime=False),
    "level0": Recording("Level0", device=True, details=False, runtime=False),
    "level1": Recording("Level1", device=True, details=True, runtime=False),
    "level2": Recording("Level2", device=True, details=True, runtime=True),
}
