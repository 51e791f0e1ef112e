"""The breakdown of each step, added up from the overlap analysis as the exporter does.

How it does so: docs/sources.md#step-breakdown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..timeline import Collective, DeviceTask, Timeline
from .overlap import OverlapAnalysis, OverlapEvent


@dataclass(frozen=True, slots=True)
class StepTimes:
    """One step, nanoseconds; ``exposed`` is communication that no computing covers, ``bubble`` the time of receives."""

    number: int
    computing: int
    exposed: int
    communication: int
    free: int
    stage: int
    bubble: int
    preparing: int

    @property
    def breakdown(self) -> list[int]:
        """The times in the order of the exported columns, from computing to preparing."""
        overlapped, other = self.communication - self.exposed, self.exposed - self.bubble
        lanes = [self.computing, self.exposed, overlapped, self.communication, self.free]
        return [*lanes, self.stage, self.bubble, other, self.preparing]


def step_times(timeline: Timeline, *, closing_gap: bool) -> Iterator[StepTimes]:
    """The times of every step.

    An event belongs to the step in whose window it starts. The window begins with the first task
    of the step and ends with its last one, or with the step on the host if that is later.

    ``closing_gap``: a gap that begins with the end of the last kernel or collective is free time of the step, and its
    end that of the stage. So it is in text exports (docs/sources.md#step-breakdown); DB exports end a step with that
    kernel or collective.
    """
    events = OverlapAnalysis.of(timeline).events()
    for step in timeline.steps:
        launched = [task for task in timeline.tasks if task.step == step.number and task.launch is not None]
        launched_collectives = [part for part in timeline.collectives if part.step == step.number]
        tasks: list[DeviceTask | Collective] = [*launched, *launched_collectives]
        start = min(task.start for task in tasks)
        end = max(step.end, *(task.end for task in tasks))
        inside = [event for event in events if start <= event.start < end]
        busy = [event for event in inside if event.lane in {"Computing", "Communication"}]
        if not closing_gap:
            last = max(event.end for event in busy)
            inside = [event for event in inside if event.start < last]
        # The exporter knows receives by their name alone, and takes all of their time
        # (docs/sources.md#step-breakdown).
        receives = [part for part in timeline.collectives if part.operation == "receive" and start <= part.start < end]
        bubble = sum(part.end - part.start for part in receives)
        sums = {lane: _time(inside, lane) for lane in OverlapAnalysis.LANES}
        yield StepTimes(
            number=step.number,
            computing=sums["Computing"],
            exposed=sums["Communication(Not Overlapped)"],
            communication=sums["Communication"],
            free=sums["Free"],
            stage=max(event.end for event in inside) - min(event.start for event in inside) - bubble,
            bubble=bubble,
            preparing=min(event.start for event in busy) - step.start,
        )


def _time(events: list[OverlapEvent], lane: str) -> int:
    return sum(event.end - event.start for event in events if event.lane == lane)
