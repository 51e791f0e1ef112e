"""Tables of host calls: operator_details.csv and api_statistic.csv."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ..export.calls import cann_calls
from ..export.generation import Cell, Names
from ..export.recording import Recording
from ..export.units import us
from ..export.values import argument_shapes, frames
from ..timeline import Collective, DeviceTask, HostSpan, Timeline
from .fields import Row, has_device_work, mean


def operator_details(timeline: Timeline, recording: Recording) -> Iterator[Row]:
    """One row per operator call: its time on the host and that of the tasks it launched."""
    yield [
        "Name",
        "Input Shapes",
        "Call Stack",
        "Host Self Duration(us)",
        "Host Total Duration(us)",
        "Device Self Duration(us)",
        "Device Total Duration(us)",
        "Device Self Duration With AICore(us)",
        "Device Total Duration With AICore(us)",
    ]
    nested: dict[int, int] = defaultdict(int)
    own = [0, 0]
    device_self: dict[int, list[int]] = defaultdict(lambda: list(own))
    device_total: dict[int, list[int]] = defaultdict(lambda: list(own))
    for span in timeline.spans:
        parent = _operator_above(span)
        if span.kind != "python" and parent is not None:
            nested[id(parent)] += span.end - span.start
    tasks: list[DeviceTask | Collective] = [*timeline.tasks, *timeline.collectives]
    for task in tasks if recording.device else []:
        if task.launch is None:
            continue
        duration = task.end - task.start
        on_core = duration if isinstance(task, DeviceTask) and task.kernel is not None else 0
        owner: HostSpan | None = task.launch.span
        _add(device_self[id(owner)], duration, on_core)
        while owner is not None:
            _add(device_total[id(owner)], duration, on_core)
            owner = _operator_above(owner)
    for span in timeline.spans:
        if not has_device_work(span):
            continue
        total = span.end - span.start
        here, below = device_self[id(span)], device_total[id(span)]
        stack = "" if span.is_backward else ";\n".join(frames(span))
        yield [
            span.name,
            argument_shapes(span, ";\n"),
            stack,
            us(total - nested[id(span)]),
            us(total),
            _time(here[0]),
            _time(below[0]),
            _time(here[1]),
            _time(below[1]),
        ]


def _operator_above(span: HostSpan) -> HostSpan | None:
    parent = span.parent
    while parent is not None and parent.kind == "python":
        parent = parent.parent
    return parent


def _add(sums: list[int], duration: int, on_core: int) -> None:
    sums[0] += duration
    sums[1] += on_core


def _time(ns: int) -> Cell:
    return us(ns) if ns else 0


def api_statistic(timeline: Timeline, names: Names, recording: Recording) -> Iterator[Row]:
    """Calls into CANN by level and name; nested calls count on each level."""
    yield [*names.device_header, "Level", "API Name", "Time(us)", "Count", "Avg(us)", "Min(us)", "Max(us)", "Variance"]
    durations: dict[tuple[str, str], list[float]] = defaultdict(list)
    for call in cann_calls(timeline, recording):
        level = names.collective.lower() if call.level == "hccl" else call.level
        durations[level, call.name.partition("@")[2]].append(us(call.end - call.start))
    for (level, name), values in sorted(durations.items()):
        average = mean(values)
        variance = mean([(value - average) ** 2 for value in values])
        yield [
            *names.device("host"),
            level,
            name,
            round(sum(values), 3),
            len(values),
            round(average, 3),
            min(values),
            max(values),
            round(variance, 3),
        ]
