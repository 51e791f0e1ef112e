"""Memory as the profiler samples it: totals of the framework at every change, of the process at intervals. Bytes."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from ..machine.allocator import COLLECTIVE_BYTES, RUNTIME_BYTES
from ..timeline import Timeline

SAMPLE_NS = 20_000_000
STREAM_POINTER = 897357296
MODULES = ("SLOG", "HCCL", "RUNTIME", "GE", "APP")


class Totals(NamedTuple):
    """Memory that the framework has allocated and reserved from a time on."""

    time: int
    allocated: int
    reserved: int


def allocator_totals(timeline: Timeline) -> list[Totals]:
    """The totals at every change, in order."""
    changes = [Totals(one.start, one.total_at_start, one.reserved_at_start) for one in timeline.allocations]
    for one in timeline.allocations:
        if one.end is not None and one.total_at_end is not None and one.reserved_at_end is not None:
            changes.append(Totals(one.end, one.total_at_end, one.reserved_at_end))
    return sorted(changes, key=lambda change: change.time)


class Samples:
    """Memory of the process and of each component of the software stack, at intervals."""

    def __init__(self, timeline: Timeline) -> None:
        self.times = range(timeline.start, timeline.end, SAMPLE_NS)
        collective = COLLECTIVE_BYTES if timeline.world_size > 1 else 0
        self._fixed = {"HCCL": collective, "RUNTIME": RUNTIME_BYTES}
        self._totals = allocator_totals(timeline)
        self._before = timeline.reserved_bytes
        # The pool has grown to its size in the steps before the profile.
        self._workspace = max((pool.reserved for pool in timeline.workspace), default=0)

    def module(self, name: str, time: int) -> int:
        """Memory of a component at a time."""
        if name != "APP":
            return self._fixed.get(name, 0)
        workspace = self._workspace
        place = bisect_right(self._totals, time, key=lambda change: change.time) - 1
        return workspace + (self._totals[place].reserved if place >= 0 else self._before)

    def process(self, time: int) -> int:
        """Memory of the process at a time."""
        return sum(self.module(name, time) for name in MODULES)
