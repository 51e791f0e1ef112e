"""The host's part of an export: calls into CANN, garbage collections, and which node undoes which operator."""

from __future__ import annotations

from collections.abc import Iterator

from ..timeline import CannCall, GarbageCollection, HostSpan, LaunchPoint, Timeline
from .recording import Recording


def cann_calls(timeline: Timeline, recording: Recording) -> list[CannCall]:
    """All calls, with those of the runtime where the level records them (docs/sources.md#levels)."""
    if not recording.runtime:
        return timeline.cann
    first = max((call.connection for call in timeline.cann), default=0) + 1
    launches = {task.launch.connection: task.launch for task in timeline.kernels if task.launch is not None}
    nodes = [call for call in timeline.cann if call.connection in launches]
    below = [_runtime_launch(call, launches[call.connection], first + number) for number, call in enumerate(nodes)]
    return [*timeline.cann, *below]


def _runtime_launch(node: CannCall, point: LaunchPoint, connection: int) -> CannCall:
    """The call inside a node's launch that hands the task over; halfway on either side of that moment."""
    start, end = (node.start + point.time) // 2, (point.time + node.end) // 2
    return CannCall("Runtime@KernelLaunch", node.tid, start, end, "KernelLaunch", "runtime", "0", "0", connection)


def recorded_collections(timeline: Timeline) -> list[GarbageCollection]:
    """The garbage collections that are long enough for the profiler, if it looks for them at all."""
    if timeline.gc_threshold_ms is None:
        return []
    shortest = timeline.gc_threshold_ms * 1_000_000
    return [pause for pause in timeline.collections if pause.end - pause.start >= shortest]


def forward_backward(timeline: Timeline) -> Iterator[tuple[HostSpan, HostSpan]]:
    """Forward operators with the first node of the backward pass that undoes them, in the order of the nodes."""
    forward: dict[int, HostSpan] = {}
    for span in timeline.spans:
        if span.sequence < 0:
            continue
        if not span.is_backward:
            forward[span.sequence] = span
        elif span.sequence in forward:
            yield forward.pop(span.sequence), span
