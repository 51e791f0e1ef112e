"""Tables of memory: the allocator of the framework, and samples of the process and of each component."""

from __future__ import annotations

from ..export.memory import MODULES as SAMPLED_MODULES
from ..export.memory import STREAM_POINTER, Samples, allocator_totals
from ..machine.allocator import DRIVER_BYTES
from ..timeline import Timeline
from .database import Database, Strings, Value
from .enums import MODULES, number


def sampled_tables(database: Database, timeline: Timeline, strings: Strings) -> None:
    """Totals of the process and of the device, and those of each component, at intervals."""
    device, samples = timeline.device, Samples(timeline)
    beyond = {"app": 0, "device": DRIVER_BYTES}
    totals = [
        (strings(kind), 0, samples.process(time) + more, time, device)
        for kind, more in beyond.items()
        for time in samples.times
    ]
    database.table("NPU_MEM", totals)
    modules = sorted((number(MODULES, name), name) for name in SAMPLED_MODULES)
    database.table(
        "NPU_MODULE_MEM",
        [(module, time, samples.module(name, time), device) for time in samples.times for module, name in modules],
    )


def allocator_tables(database: Database, timeline: Timeline, strings: Strings) -> None:
    """The totals of the allocator at every change, and every allocation."""
    device = timeline.device
    totals = [
        (strings(component), time, total, reserved, total, STREAM_POINTER, device)
        for time, total, reserved in allocator_totals(timeline)
        for component in ("PTA", "PTA+GE")
    ]
    totals += [
        (strings("WORKSPACE"), pool.time, pool.allocated, pool.reserved, pool.allocated, STREAM_POINTER, device)
        for pool in timeline.workspace
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
            after = (one.total_at_end, one.reserved_at_end, one.total_at_end)
        row = (strings(one.operator), one.nbytes, one.start, *release, before, one.reserved_at_start, before, *after)
        allocations.append((*row, STREAM_POINTER, device))
    database.table("OP_MEMORY", allocations)
