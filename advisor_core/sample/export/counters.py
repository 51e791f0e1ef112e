"""The counters of a kernel's cores, exact: exports differ in how they round them."""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.chip import CoreUse
from ..timeline import DeviceTask, Timeline


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of one kind of core: cycles of all its cores together, the mean time of one, and shares of that."""

    cycles: int
    time_ns: float
    ratios: dict[str, float]
    icache_miss: float

    def pipe_ns(self, pipe: str) -> float:
        """The time a pipe was busy."""
        return self.time_ns * self.ratios[pipe]


def counters(task: DeviceTask, use: CoreUse | None) -> Counters | None:
    """The counters of one kind of core of a kernel, or nothing if it did not use any.

    The time follows from the whole cycles, as it does in real exports (docs/sources.md#columns-of-kernel-details).
    """
    if use is None:
        return None
    mhz = task.mhz
    cycles = round(use.time_ns * task.scale / 1000 * mhz * use.blocks)
    ratios = {pipe: round(ratio, 3) for pipe, ratio in use.ratios.items()}
    return Counters(cycles, 1000 * cycles / (mhz * use.blocks), ratios, round(use.icache_miss, 3))


def block_counts(task: DeviceTask) -> tuple[int, int]:
    """Blocks on the kernel's main kind of core, and on the second one of a MIX kernel."""
    cost = task.cost
    assert cost is not None
    main = cost.vector if cost.cube is None else cost.cube
    mixed = cost.vector.blocks if cost.cube is not None and cost.vector is not None else 0
    return main.blocks if main is not None else 0, mixed


def clock_samples(timeline: Timeline) -> list[tuple[int, int]]:
    """The clock when the profile begins, at every change of it, and when it ends: time and MHz."""
    changes = [(time, mhz) for time, mhz in timeline.clock if timeline.start < time < timeline.end]
    first, last = (timeline.start, timeline.mhz(timeline.start)), (timeline.end, timeline.mhz(timeline.end))
    return [first, *changes, last]
