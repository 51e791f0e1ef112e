"""The recordings of verl's discrete mode of a job of reinforcement learning: a profile per role, as if each were a job.

The profiler is started for each stage and stopped behind it, so that nothing between the stages is recorded, and
nothing of a call that began before (docs/sources.md#iteration-of-reinforcement-learning).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from .export.memory import allocator_totals
from .timeline import Allocation, Collective, DeviceTask, HostSpan, Mark, Step, Timeline

ROLES = {
    "generate_sequences": "rollout",
    "compute_log_prob": "actor_compute_log_prob",
    "compute_ref_log_prob": "ref_compute_log_prob",
    "update_actor": "actor_update",
}
"""Directories of profiles by the marked stage; reward and advantage have no device and hence no profile."""

_Launched = TypeVar("_Launched", DeviceTask, Collective)


def roles(timeline: Timeline) -> Iterator[tuple[str, Timeline]]:
    """The role and the timeline of each stage of the last iteration. Raises ValueError if no stage is marked."""
    last = timeline.steps[-1]
    stages = [mark for mark in timeline.marks if mark.message in ROLES and mark.start >= last.start]
    if not stages:
        raise ValueError("only a job of reinforcement learning has roles")
    for mark in sorted(stages, key=lambda mark: mark.start):
        yield ROLES[mark.message], _cut(timeline, mark, last.number)


def _cut(timeline: Timeline, mark: Mark, step: int) -> Timeline:
    """The part of a timeline within a mark. A stage waits for its device before it ends, so that nothing is cut in
    two."""

    def inside(start: int, end: int) -> bool:
        return mark.start <= start and end <= mark.end

    whole = HostSpan(f"ProfilerStep#{step}", "annotation", mark.tid, mark.start, None, mark.end)
    copies: dict[int, HostSpan] = {}
    for span in timeline.spans:  # a span comes after its parent
        if inside(span.start, span.end):
            parent = None if span.parent is None else copies.get(id(span.parent))
            outermost = whole if parent is None and span.tid == mark.tid else parent
            copies[id(span)] = replace(span, parent=outermost)

    def launched(task: _Launched) -> _Launched:
        if task.launch is None:
            return replace(task)
        return replace(task, launch=replace(task.launch, span=copies[id(task.launch.span)]))

    return replace(
        timeline,
        start=mark.start,
        end=mark.end,
        reserved_bytes=_reserved(timeline, mark.start),
        steps=[Step(step, mark.start, mark.end)],
        spans=[whole, *copies.values()],
        queue=[entry for entry in timeline.queue if inside(entry.enqueue_start, entry.dequeue_end)],
        cann=[call for call in timeline.cann if inside(call.start, call.end)],
        tasks=[launched(task) for task in timeline.tasks if inside(task.start, task.end)],
        collectives=[launched(part) for part in timeline.collectives if inside(part.start, part.end)],
        allocations=[_held(part, mark) for part in timeline.allocations if mark.start <= part.start <= mark.end],
        collections=[pause for pause in timeline.collections if inside(pause.start, pause.end)],
        workspace=[pool for pool in timeline.workspace if mark.start <= pool.time <= mark.end],
        marks=[other for other in timeline.marks if inside(other.start, other.end)],
    )


def _reserved(timeline: Timeline, time: int) -> int:
    """Memory of the allocator at a time."""
    before = [totals.reserved for totals in allocator_totals(timeline) if totals.time <= time]
    return before[-1] if before else timeline.reserved_bytes


def _held(allocation: Allocation, mark: Mark) -> Allocation:
    if allocation.end is None or allocation.end <= mark.end:
        return allocation
    return replace(allocation, end=None, total_at_end=None, reserved_at_end=None)
