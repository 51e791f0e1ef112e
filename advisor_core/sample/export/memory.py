"""Memory as the profiler samples it: totals of the framework at every change, of the process at intervals. Bytes."""

from __future__ import annotations

from ..timeline import Timeline

MIB = 1024 * 1024
SEGMENT_BYTES = 20 * MIB
"""The caching allocator reserves memory in segments of this size."""
SAMPLE_NS = 20_000_000
RUNTIME_BYTES = 96_714_752
COLLECTIVE_BYTES = 423_690_240
"""In and out buffers of one communicator (HCCL_BUFFSIZE twice) and its own needs."""
STREAM_POINTER = 897357296
MODULES = ("SLOG", "HCCL", "RUNTIME", "GE", "APP")


def reserved_bytes(timeline: Timeline) -> int:
    """What the caching allocator holds: enough segments for the peak."""
    peak = max((allocation.total_at_start for allocation in timeline.allocations), default=timeline.resident_bytes)
    return -(-peak // SEGMENT_BYTES) * SEGMENT_BYTES


def module_bytes(timeline: Timeline) -> dict[str, int]:
    """What each component of the software stack holds."""
    collective = COLLECTIVE_BYTES if timeline.world_size > 1 else 0
    sizes = {"HCCL": collective, "RUNTIME": RUNTIME_BYTES, "APP": reserved_bytes(timeline)}
    return {module: sizes.get(module, 0) for module in MODULES}


def process_bytes(timeline: Timeline) -> int:
    """What the process holds on the device."""
    return sum(module_bytes(timeline).values())


def sample_times(timeline: Timeline) -> range:
    """When the totals of process and components are sampled."""
    return range(timeline.start, timeline.end, SAMPLE_NS)


def allocator_totals(timeline: Timeline) -> list[tuple[int, int]]:
    """Time and allocated total at every change, in order."""
    changes = [(allocation.start, allocation.total_at_start) for allocation in timeline.allocations]
    for allocation in timeline.allocations:
        if allocation.end is not None and allocation.total_at_end is not None:
            changes.append((allocation.end, allocation.total_at_end))
    return sorted(changes)
