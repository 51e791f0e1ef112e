"""operator_memory.csv, memory_record.csv and npu_module_mem.csv."""

from __future__ import annotations

from collections.abc import Iterator

from ..timeline import Allocation, Timeline
from .fields import Cell, Row, us_column

MIB = 1024 * 1024
SEGMENT_BYTES = 20 * MIB
"""The caching allocator reserves memory in segments of this size."""
SAMPLE_NS = 20_000_000
RUNTIME_MIB = 92.234375
COLLECTIVE_MIB = 404.0625
"""In and out buffers of one communicator (HCCL_BUFFSIZE twice) and its own needs."""
STREAM_POINTER = 897357296
_MODULES = ("SLOG", "HCCL", "RUNTIME", "GE", "APP")


def _mib(nbytes: int) -> float:
    return nbytes / MIB


def _reserved(timeline: Timeline) -> float:
    peak = max((allocation.total_at_start for allocation in timeline.allocations), default=timeline.resident_bytes)
    return _mib(-(-peak // SEGMENT_BYTES) * SEGMENT_BYTES)


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
    reserved = _reserved(timeline)
    for allocation in sorted(timeline.allocations, key=lambda allocation: allocation.start):
        before = _mib(allocation.total_at_start)
        times: list[Cell] = [us_column(allocation.start), "", "", "", ""]
        release: list[Cell] = ["", "", ""]
        if allocation.end is not None and allocation.total_at_end is not None:
            duration = us_column(allocation.end - allocation.start)
            times = [
                us_column(allocation.start),
                us_column(allocation.end),
                us_column(allocation.end),
                duration,
                duration,
            ]
            after = _mib(allocation.total_at_end)
            release = [after, reserved, after]
        yield [
            allocation.operator,
            allocation.nbytes / 1024,
            *times,
            before,
            reserved,
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
    reserved = _reserved(timeline)
    device = f"NPU:{timeline.device}"
    for time in _ticks(timeline):
        yield ["APP", us_column(time), "", reserved + _outside(timeline), "", "", device]
    for time, total in sorted(_changes(timeline.allocations)):
        for component in ("PTA", "PTA+GE"):
            yield [component, us_column(time), _mib(total), reserved, _mib(total), STREAM_POINTER, device]


def npu_module_mem(timeline: Timeline) -> Iterator[Row]:
    """Memory by component of the software stack, at intervals."""
    yield ["Component", "Timestamp(us)", "Total Reserved(MB)", "Device"]
    sizes = {"HCCL": _collective(timeline), "RUNTIME": RUNTIME_MIB, "APP": _reserved(timeline)}
    for module in _MODULES:
        for time in _ticks(timeline):
            yield [module, us_column(time), sizes.get(module, 0.0), f"NPU:{timeline.device}"]


def _ticks(timeline: Timeline) -> range:
    return range(timeline.start, timeline.end, SAMPLE_NS)


def _changes(allocations: list[Allocation]) -> Iterator[tuple[int, int]]:
    for allocation in allocations:
        yield allocation.start, allocation.total_at_start
        if allocation.end is not None and allocation.total_at_end is not None:
            yield allocation.end, allocation.total_at_end


def _collective(timeline: Timeline) -> float:
    return COLLECTIVE_MIB if timeline.world_size > 1 else 0.0


def _outside(timeline: Timeline) -> float:
    return RUNTIME_MIB + _collective(timeline)
