"""The nodes of a rank's graph: what its host threads, its queue thread and its streams did, one after the other.

| chain | node | from | to |
|---|---|---|---|
| the threads that feed the device, which take turns | `FEED` | the node before | the task was handed over |
| | `CALL` | the node before | a call that waits for the device begins |
| | `RETURN` | the device has done what the call waits for | the call returns |
| | `ROOM` | a call that hands a task over begins | the full queue has room for it |
| a thread that empties a task queue | `LAUNCH` | it has taken the task from the queue | it is launched |
| | `ROOM` | as above | as above |
| a stream, or a communication group without one | `TASK` | start | end |

A task that no queue held has a `LAUNCH` of no length, which takes the time of the call where a queue would take over.
Tasks of one stream that overlap, which a stream does not do, are put on chains of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from advisor_core.facts.host.launches import NO_TIME, Launches
from advisor_core.facts.intervals import Layer
from advisor_core.replay.graph import Ints
from advisor_core.replay.structure import before_on_chain

FEED, CALL, LAUNCH, TASK, RETURN, ROOM = range(6)
"""Kinds of nodes; of several that end at the same moment, one can depend on those of a lower number only."""

FEEDERS = 0
"""The chain of the threads that feed the device."""


@dataclass(frozen=True)
class Nodes:
    """In order of their ends, by kind where they end together. ``kind``; ``row``: of a FEED, LAUNCH and TASK the row of
    the fact ``work``, of a CALL, RETURN and ROOM that of ``host_events``; ``chain``; ``start_ns``: what is recorded, of
    a CALL and FEED the end of the node before, of a LAUNCH behind a launch that ended after the task was handed over
    the end of that one; ``end_ns``."""

    kind: Ints
    row: Ints
    chain: Ints
    start_ns: Ints
    end_ns: Ints

    def of(self, kind: int, rows: int) -> Ints:
        """The node of each row of that kind, -1 where there is none. ``rows``: how many rows there are."""
        found = np.full(rows, -1, dtype=np.int64)
        numbers = self.numbers(kind)
        found[self.row[numbers]] = numbers
        return found

    def at(self, kind: int, rows: Ints) -> Ints:
        """The node of that kind at each of these rows, -1 where there is none."""
        known = self._by_row(kind)
        inside = (rows >= 0) & (rows < len(known))
        return known[rows] if inside.all() else np.where(inside, known[np.where(inside, rows, 0)], -1)

    def numbers(self, kind: int) -> Ints:
        """The nodes of that kind, in order."""
        if kind not in self._numbers:
            self._numbers[kind] = np.flatnonzero(self.kind == kind)
        return self._numbers[kind]

    def _by_row(self, kind: int) -> Ints:
        """As `of`, up to the last row that has a node of that kind."""
        if kind not in self._rows:
            self._rows[kind] = self.of(kind, 1 + max(0, int(self.row[self.numbers(kind)].max(initial=-1))))
        return self._rows[kind]

    @cached_property
    def _numbers(self) -> dict[int, Ints]:
        return {}

    @cached_property
    def _rows(self) -> dict[int, Ints]:
        return {}

    def __getstate__(self) -> dict[str, object]:
        """Without what was found of them, which is found again where it is needed."""
        return {name: value for name, value in vars(self).items() if name not in ("_numbers", "_rows")}


def nodes_of(
    work: pd.DataFrame, rows: Ints, launched: Launches, syncs: Layer, waiting: Ints, held: pd.DataFrame, starts: Ints
) -> Nodes:
    """``work``: the fact of that name; ``rows``: those of its rows that are replayed, in order; ``syncs``: the calls
    that wait for the device, in device time, ids are rows of ``host_events``; ``waiting``: since when each of them, or
    the operator that it is a part of, waits; ``held``: the calls that waited for room in a queue, as of the fact
    ``full_queues``; ``starts``: of the steps."""
    start, end = (work[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    frame = launched.frame
    launch, entered, thread = (frame[name].to_numpy()[rows] for name in ("launch_ns", "entered_ns", "thread"))
    known = launch != NO_TIME
    fed = rows[known]
    first = int(entered[known].min()) if len(fed) else 0
    last = int(launch[known].max()) if len(fed) else 0
    later = np.flatnonzero(syncs.starts >= last)
    waits = (syncs.ends > first) & (syncs.starts < last)
    waits[later[: _between_steps(entered[known], start[known], syncs, starts)]] = True
    calls, returns, call_rows = np.maximum(waiting[waits], first), syncs.ends[waits], syncs.ids[waits]
    called = np.maximum(syncs.starts[waits], first)
    within = (held["start_ns"].to_numpy() >= first) & (held["start_ns"].to_numpy() <= last)
    full = held[within & np.isin(held["work_row"].to_numpy(), rows)]
    full_rows, since, room, behind = (full[name].to_numpy() for name in ("call_row", "start_ns", "room_ns", "thread"))
    threads, number = np.unique(thread[known], return_inverse=True)
    queues = 1 + number
    held_up = np.where(behind < 0, FEEDERS, 1 + np.searchsorted(threads, behind))
    streams = 1 + (int(queues.max()) if len(queues) else 0) + _streams(work, rows, start, end)
    parts = (
        (FEED, fed, np.full(len(fed), FEEDERS), entered[known], entered[known]),
        (CALL, call_rows, np.full(len(calls), FEEDERS), calls, calls),
        (LAUNCH, fed, queues, entered[known], launch[known]),
        (TASK, rows, streams, start, end),
        (RETURN, call_rows, np.full(len(calls), FEEDERS), called, returns),
        (ROOM, full_rows, held_up, since, room),
    )
    kind = np.concatenate([np.full(len(own), number, dtype=np.int64) for number, own, *_ in parts])
    row, chain, begin, finish = (
        np.concatenate([part[column] for part in parts]).astype(np.int64) for column in range(1, 5)
    )
    order = np.lexsort((row, begin, kind, finish))
    kind, row, chain, begin, finish = (column[order] for column in (kind, row, chain, begin, finish))
    before = before_on_chain(chain)
    free = np.where(before >= 0, finish[before], begin)
    launches = np.flatnonzero(kind == LAUNCH)
    idle = launches[(before[launches] < 0) | (free[launches] <= begin[launches])]
    begin[idle] = frame["taken_ns"].to_numpy()[row[idle]]
    begin = np.where(kind == TASK, begin, np.where(np.isin(kind, (FEED, CALL)), free, np.maximum(begin, free)))
    return Nodes(kind, row, chain, np.minimum(begin, finish), finish)


def as_called(launched: Launches, held: pd.DataFrame) -> Launches:
    """The launches, where calls that waited for room in a queue hand over what they do when they begin: from there on
    they wait. ``held``: as of `nodes_of`."""
    if held.empty:
        return launched
    frame = launched.frame.copy()
    begun = pd.Series(held["start_ns"].to_numpy(), index=held["call_row"].to_numpy())
    call = frame["call_row"].where(frame["call_row"] >= 0, frame["dequeue_row"])
    for rows, names in ((call, ("launch_ns", "taken_ns", "entered_ns")), (frame["enqueue_row"], ("entered_ns",))):
        sooner = begun.reindex(rows.to_numpy(), fill_value=np.iinfo(np.int64).max).to_numpy()
        for name in names:
            frame[name] = np.minimum(frame[name].to_numpy(), sooner)
    return replace(launched, frame=frame)


def _between_steps(entered: Ints, started: Ints, syncs: Layer, starts: Ints) -> int:
    """The number of calls that wait for the device behind the last task of a step: nearer to it than to the first of
    the next, as they are handed over; the median. The last recorded step has as many, and further ones come from the
    profiler."""
    places = openings(started, starts)
    last, first = entered[places - 1], entered[places]
    calls = np.searchsorted(syncs.starts, last + (first - last) // 2) - np.searchsorted(syncs.starts, last)
    return int(np.median(calls)) if len(calls) else 0


def openings(started: Ints, starts: Ints) -> Ints:
    """Of tasks in the order in which they were handed over, the places of those that each step but the first begins
    with. ``started``: of the tasks, ``starts``: of the steps, both in device time."""
    # The host hands tasks over in order, but for those of streams that run ahead.
    places = np.unique(np.searchsorted(np.maximum.accumulate(started), starts[1:], side="left"))
    return places[(places > 0) & (places < len(started))]


def _streams(work: pd.DataFrame, rows: Ints, start: Ints, end: Ints) -> Ints:
    """A number of the stream of each task, from 0."""
    stream = work["stream"].to_numpy()[rows]
    talks = work["communication"].to_numpy()[rows]
    number = pd.MultiIndex.from_arrays([stream, np.where(stream < 0, talks, False)])
    chain: Ints = pd.factorize(number)[0].astype(np.int64)
    further = int(chain.max()) + 1 if len(chain) else 0
    for one in np.unique(chain):
        own = np.flatnonzero(chain == one)
        own = own[np.lexsort((end[own], start[own]))]
        overlapping = own[1:][start[own][1:] < np.maximum.accumulate(end[own])[:-1]]
        if not len(overlapping):
            continue
        lanes = _lanes(start[own], end[own])
        chain[own[lanes > 0]] = further + lanes[lanes > 0] - 1
        further += int(lanes.max())
    return chain


def _lanes(start: Ints, end: Ints) -> Ints:
    """Tasks that overlap in different lanes; the first lane that is free takes the next task."""
    free: list[int] = []
    lanes = np.zeros(len(start), dtype=np.int64)
    for task, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        lane = next((number for number, until in enumerate(free) if until <= begin), len(free))
        free[lane : lane + 1] = [finish]
        lanes[task] = lane
    return lanes
