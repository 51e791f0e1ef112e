"""What a rank records on a host whose clock is off: every time of its timeline, by the same amount."""

from __future__ import annotations

from dataclasses import replace

from .timeline import LaunchPoint, Timeline


def shift(timeline: Timeline, ns: int) -> None:
    """Put all times of the timeline ``ns`` later (earlier where negative)."""
    timeline.start += ns
    timeline.end += ns
    timeline.clock = [(time + ns, mhz) for time, mhz in timeline.clock]
    for span in timeline.spans:
        span.start, span.end = span.start + ns, span.end + ns
    for task in timeline.tasks:
        task.start, task.end = task.start + ns, task.end + ns
        task.launch = task.launch and _launch(task.launch, ns)
    for collective in timeline.collectives:
        collective.start, collective.end = collective.start + ns, collective.end + ns
        collective.launch = _launch(collective.launch, ns)
        collective.tasks = [replace(part, start=part.start + ns, end=part.end + ns) for part in collective.tasks]
    timeline.queue = [
        replace(
            entry,
            enqueue_start=entry.enqueue_start + ns,
            enqueue_end=entry.enqueue_end + ns,
            dequeue_start=entry.dequeue_start + ns,
            dequeue_end=entry.dequeue_end + ns,
        )
        for entry in timeline.queue
    ]
    timeline.steps = [replace(step, start=step.start + ns, end=step.end + ns) for step in timeline.steps]
    timeline.cann = [replace(call, start=call.start + ns, end=call.end + ns) for call in timeline.cann]
    timeline.collections = [replace(part, start=part.start + ns, end=part.end + ns) for part in timeline.collections]
    timeline.marks = [replace(mark, start=mark.start + ns, end=mark.end + ns) for mark in timeline.marks]
    timeline.workspace = [replace(pool, time=pool.time + ns) for pool in timeline.workspace]
    timeline.allocations = [
        replace(part, start=part.start + ns, end=None if part.end is None else part.end + ns)
        for part in timeline.allocations
    ]


def _launch(launch: LaunchPoint, ns: int) -> LaunchPoint:
    return replace(launch, time=launch.time + ns)
