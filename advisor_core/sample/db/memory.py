"""Tables of memory: the allocator of the framework, and samples of the process and of each component."""

from __future__ import annotations

from ..export.memory import (
    STREAM_POINTER,
    allocator_totals,
    module_bytes,
    process_bytes,
    reserved_bytes,
    sample_times,
)
from ..timeline import Timeline
from .database import Database, Strings, Value
from .enums import MODULES, number

DRIVER_BYTES = 254_906_368
"""What the device holds beyond the process (facts A8: 0.25 GB)."""


def sampled_tables(database: Database, timeline: Timeline, strings: Strings) -> None:
    """Totals of the process and of the device, and those of each component, at intervals."""
    device = timeline.device
    totals = {"app": process_bytes(timeline), "device": process_bytes(timeline) + DRIVER_BYTES}
    samples = [
        (strings(kind), 0, total, time, device) for kind, total in totals.items() for time in sample_times(timeline)
    ]
    database.table("NPU_MEM", samples)
    modules = {number(MODULES, name): size for name, size in module_bytes(timeline).items()}
    database.table(
        "NPU_MODULE_MEM",
        [(module, time, modules[module], device) for time in sample_times(timeline) for module in sorted(modules)],
    )


def allocator_tables(database: Database, timeline: Timeline, strings: Strings) -> None:
    """The totals of the allocator at every change, and every allocation."""
    reserved, device = reserved_bytes(timeline), timeline.device
    totals = [
        (strings(component), time, total, reserved, total, STREAM_POINTER, device)
        for time, total in allocator_totals(timeline)
        for component in ("PTA", "PTA+GE")
    ]
    database.table("MEMORY_RECORD", totals)
    allocations: list[tuple[Value, ...]] = []
    for one in sorted(timeline.allocations, key=lambda allocation: allocation.start):
        before = one.total_at_start
        release: tuple[Value, ...] = (None,) * 4
        after: tuple[Value, ...] = (None,) * 3
        if one.end is not None and one.total_at_end is not None:
            duration = one.end - one.start
            release = (one.end, one.end, duration, duration)
            after = (one.total_at_end, reserved, one.total_at_end)
        row = (strings(one.operator), one.nbytes, one.start, *release, before, reserved, before, *after)
        allocations.append((*row, STREAM_POINTER, device))
    database.table("OP_MEMORY", allocations)
