"""Traces of PyTorch's profiler as plain lists, read with json alone: what findings are checked against."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

CATEGORIES = {"operator": "cpu_op", "runtime": "cuda_runtime", "cuda_driver": "cuda_runtime"}
CATEGORIES |= {"memset": "gpu_memset", "memcpy": "gpu_memcpy"}
"""What older releases, and calls of the driver, are called, to one name for all; in lower case."""

ON_THE_DEVICE = ("kernel", "gpu_memset", "gpu_memcpy")
Span = tuple[int, int]


@dataclass(frozen=True)
class Event:
    """Times in ns."""

    name: str
    category: str
    thread: int
    start: int
    end: int
    args: dict[str, Any]

    @property
    def ns(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class Task:
    """What ran on the device. ``call``: what launched it; ``operators``: around the call, innermost first."""

    event: Event
    call: Event | None
    operators: tuple[Event, ...]

    @property
    def name(self) -> str:
        return self.event.name

    @property
    def operator(self) -> str:
        return self.operators[0].name if self.operators else ""

    @property
    def communicates(self) -> bool:
        return "nccl" in self.name

    @property
    def clears(self) -> bool:
        return self.event.category == "gpu_memset"


@dataclass(frozen=True)
class Trace:
    """``tasks``: kernels, what clears memory and copies within the device, by start; ``steps``: how many are marked."""

    events: tuple[Event, ...]
    tasks: tuple[Task, ...]
    steps: int

    @property
    def begin(self) -> int:
        return min(task.event.start for task in self.tasks)

    @property
    def end(self) -> int:
        return max(task.event.end for task in self.tasks)

    @property
    def step_ns(self) -> float:
        return (self.end - self.begin) / self.steps

    @property
    def gaps(self) -> list[Span]:
        """Where nothing runs; what takes no time does not part two of them."""
        spans = covered(task.event for task in self.tasks if task.event.ns)
        return [(before[1], after[0]) for before, after in pairwise(spans)]

    def late(self) -> list[tuple[int, Task]]:
        """Of gaps how long nothing had been launched, with the task behind; ns."""
        first = {task.event.start: task for task in reversed(self.tasks) if task.event.ns}
        behind = [(start, end, first[end]) for start, end in self.gaps]
        launched = [(min(end, task.call.start) - start, task) for start, end, task in behind if task.call]
        return [(ns, task) for ns, task in launched if ns > 0]

    def calls(self, *names: str) -> list[Event]:
        return [event for event in self.events if event.category == "cuda_runtime" and event.name in names]


@lru_cache(3)  # one is up to a hundred megabytes, and tests take turns with three
def trace(path: Path) -> Trace:
    raw = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]
    events = tuple(_event(event) for event in raw if event.get("ph") == "X" and event["cat"] != "Trace")
    calls = {event.args["correlation"]: event for event in events if event.category == "cuda_runtime"}
    around = _Operators(events)
    tasks = []
    for event in sorted(events, key=lambda event: (event.start, event.end)):
        on_device = event.category in ON_THE_DEVICE
        if on_device and ("Memcpy" not in event.name or "DtoD" in event.name):
            call = calls.get(event.args.get("correlation"))
            tasks.append(Task(event, call, around(call) if call else ()))
    marked = {event.name for event in events if event.name.startswith("ProfilerStep#")}
    return Trace(events, tuple(tasks), max(len(marked), 1))


def _event(event: dict[str, Any]) -> Event:
    start = round(event["ts"] * 1_000)  # as decimal numbers: these have more digits than a float
    end = start + round(event["dur"] * 1_000)
    category, thread = event["cat"].lower(), str(event["tid"])
    number = int(thread) if thread.isdecimal() else -1  # "stream 7"
    return Event(event["name"], CATEGORIES.get(category, category), number, start, end, event.get("args", {}))


class _Operators:
    """The operators around a call."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.starts: dict[int, list[int]] = defaultdict(list)
        self.open: dict[int, list[tuple[Event, ...]]] = defaultdict(lambda: [()])
        """For each operator of a thread in turn, and for none: those that have not ended when it starts, with it."""
        for event in sorted(events, key=lambda event: (event.start, -event.ns)):
            if event.category == "cpu_op":
                opened = self.open[event.thread]
                self.starts[event.thread].append(event.start)
                opened.append((*(other for other in opened[-1] if other.end > event.start), event))

    def __call__(self, call: Event) -> tuple[Event, ...]:
        opened = self.open[call.thread][bisect_right(self.starts[call.thread], call.start)]
        return tuple(event for event in reversed(opened) if event.end > call.start)


def covered(events: Iterable[Event]) -> list[Span]:
    """The spans in which any of them runs."""
    return covered_spans((event.start, event.end) for event in events)


def covered_spans(spans: Iterable[Span]) -> list[Span]:
    """Spans joined where they meet or overlap."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def length(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)


def within(spans: Sequence[Span], start: int, end: int) -> int:
    """How much of [start, end) the spans cover."""
    return sum(max(0, min(end, to) - max(start, begun)) for begun, to in spans)


def total(tasks: Iterable[Task]) -> int:
    return sum(task.event.ns for task in tasks)
