"""operator_memory.csv, memory_record.csv and npu_module_mem.csv."""

from __future__ import annotations

from collections.abc import Iterator

from ..export.generation import Cell
from ..export.memory import MODULES, STREAM_POINTER, Samples, allocator_totals
from ..machine.allocator import MIB
from ..timeline import Timeline
from .fields import Row, us_column


def operator_memory(timeline: Timeline) -> Iterator[Row]:
    """One row per allocation; the release is empty if the tensor outlived the profile."""
    yield [
        "Name",
        "Size(KB)",
        "Allocation Time(us)",
        "Release Time(us)",
        "Active Release Time(us)",
        "Duration(us)",
        "Active Duration(us)",
        "Allocation Total Allocated(MB)",
        "Allocation Total Reserved(MB)",
        "Allocation Total Active(MB)",
        "Release Total Allocated(MB)",
        "Release Total Reserved(MB)",
        "Release Total Active(MB)",
        "Stream Ptr",
        "Device Type",
    ]
    for allocation in sorted(timeline.allocations, key=lambda allocation: allocation.start):
        before = allocation.total_at_start / MIB
        times: list[Cell] = [us_column(allocation.start), "", "", "", ""]
        release: list[Cell] = ["", "", ""]
        if (
            allocation.end is not None
            and allocation.total_at_end is not None
            and allocation.reserved_at_end is not None
        ):
            end, duration = us_column(allocation.end), us_column(allocation.end - allocation.start)
            times = [us_column(allocation.start), end, end, duration, duration]
            after = allocation.total_at_end / MIB
            release = [after, allocation.reserved_at_end / MIB, after]
        yield [
            allocation.operator,
            allocation.nbytes / 1024,
            *times,
            before,
            allocation.reserved_at_start / MIB,
            before,
            *release,
            STREAM_POINTER,
            f"NPU:{timeline.device}",
        ]


def memory_record(timeline: Timeline) -> Iterator[Row]:
    """Totals of the process at intervals, and of the framework at every change."""
    yield [
        "Component",
        "Timestamp(us)",
        "Total Allocated(MB)",
        "Total Reserved(MB)",
        "Total Active(MB)",
        "Stream Ptr",
        "Device Type",
    ]
    samples, device = Samples(timeline), f"NPU:{timeline.device}"
    for time in samples.times:
        yield ["APP", us_column(time), "", samples.process(time) / MIB, "", "", device]
    for time, allocated, reserved in allocator_totals(timeline):
        total = allocated / MIB
        for component in ("PTA", "PTA+GE"):
            yield [component, us_column(time), total, reserved / MIB, total, STREAM_POINTER, device]
    for pool in timeline.workspace:
        used, held = pool.allocated / MIB, pool.reserved / MIB
        yield ["WORKSPACE", us_column(pool.time), used, held, used, STREAM_POINTER, device]


def npu_module_mem(timeline: Timeline) -> Iterator[Row]:
    """Memory by component of the software stack, at intervals."""
    yield ["Component", "Timestamp(us)", "Total Reserved(MB)", "Device"]
    samples = Samples(timeline)
    for module in MODULES:
        for time in samples.times:
            yield [module, us_column(time), samples.module(module, time) / MIB, f"NPU:{timeline.device}"]
