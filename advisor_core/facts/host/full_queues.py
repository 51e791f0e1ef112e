"""Calls of the host that waited for room in a full queue: the device, or the thread behind the task queue, was slower.

A queue of the runtime holds a limited number of entries. A host that is so far ahead waits in the call that hands over
the next one until the entry that many before it is done. Such a call looks slow, but the host had nothing to do: in a
recorded job on a V100 1,271 of 6,095 launches waited 231 ms of 480 ms so, each until 6 us after the kernel that was
launched 1,022 launches before it had ended; others take 5 us. No recording says how long a queue is, and it differs by
driver, so the length is what is seen: the most entries that were ever outstanding, if calls that were held up met it
again and again (docs/sources.md#full-queues).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.device.work import work
from advisor_core.facts.host.launches import CALL_NS, Launches, launches
from advisor_core.facts.intervals import Ints
from advisor_core.facts.matching import matching

SHORTEST = 32
"""Entries: far below the length of any queue that is known (1,022 and 4,095). A call that waits for its own kernel has
none outstanding."""

LEAST_HELD = 20
"""So many calls must have met the full queue: by chance, one in a dozen calls ends just after a certain task (calls of
5 us, kernels of 60)."""

MOST = 0.5
"""Share of the calls that took much longer than usual that the full queue must explain, else something else held them
up."""

LONG = 4.0
"""A call is long that takes more than this many times the usual."""

COLUMNS = (
    Column("call_row", "int", "", "row of host_events of the call that was held up"),
    Column("start_ns", "int", "ns", "when it began, in device time"),
    Column("room_ns", "int", "ns", "when there was room in the queue, in device time"),
    Column("end_ns", "int", "ns", "when it returned, in device time"),
    Column(
        "thread", "int", "", "thread that empties the task queue, where that was held up; -1: one that feeds the device"
    ),
    Column("work_row", "int", "", "row of the fact work that made room by ending, or by being launched"),
    Column("launched", "bool", "", "whether its launch made room (a task queue of the host), not its end (a stream)"),
)


@dataclass(frozen=True)
class FullQueues:
    """``frame``: a row for each call that was held up. ``lengths``: of the queues that were full, in entries."""

    frame: pd.DataFrame
    lengths: tuple[int, ...]


@fact("full_queues", needs=(work, launches, HOST_EVENTS, PROFILE), frames={"frame": COLUMNS})
def full_queues(facts: Facts) -> FullQueues:
    """Calls that handed a task over and waited until a full queue had room."""
    device, events, launched = facts[work], facts[HOST_EVENTS], facts[launches]
    waiting = matching(events["name"], facts[PROFILE].vocabulary.sync_calls)
    queues = [*_streams(device, launched, events, waiting), *_task_queues(launched, events)]
    found = [(queue, held) for queue in queues if (held := queue.held()) is not None]
    parts = [queue.calls(length, entries) for queue, (length, entries) in found]
    frame = pd.concat(parts, ignore_index=True) if parts else none_held()
    frame = frame.drop_duplicates("call_row").sort_values("start_ns", ignore_index=True)
    return FullQueues(frame, tuple(length for _, (length, _) in found))


def none_held() -> pd.DataFrame:
    """The frame where no queue was full."""
    return pd.DataFrame({column.name: pd.Series(dtype=_DTYPES[column.dtype]) for column in COLUMNS})


_DTYPES = {"int": "int64", "bool": "bool"}


@dataclass(frozen=True)
class _Queue:
    """The entries of a queue in the order in which they were put in. ``row``: of the call, in host_events; ``start_ns``
    and ``end_ns``: of the call; ``done_ns``: when the entry left the queue, and with it all before it;
    ``thread``: as of `COLUMNS`; ``work_row``: the task, of the entry or of the last one before it that has one, -1
    where there is none; ``launched``: the entry leaves when it is launched."""

    row: Ints
    start_ns: Ints
    end_ns: Ints
    done_ns: Ints
    thread: Ints
    work_row: Ints
    launched: bool

    def held(self) -> tuple[int, Ints] | None:
        """The length of the queue and the numbers of the entries that waited for room, if it was ever full."""
        count = len(self.row)
        outstanding = np.arange(1, count + 1) - np.searchsorted(self.done_ns, self.end_ns, side="right")
        length = int(outstanding.max(initial=0))
        if length < SHORTEST:
            return None
        entry = np.arange(length, count)
        room = self.done_ns[entry - length]
        waited = (self.start_ns[entry] < room) & (room <= self.end_ns[entry]) & (self.end_ns[entry] - room <= CALL_NS)
        waited &= self.work_row[entry - length] >= 0
        took = self.end_ns - self.start_ns
        long = took > max(CALL_NS, LONG * float(np.median(took)))
        if waited.sum() < LEAST_HELD or (long[entry] & waited).sum() < MOST * long.sum():
            return None
        return length, entry[waited]

    def calls(self, length: int, held: Ints) -> pd.DataFrame:
        """`COLUMNS` of these entries."""
        return pd.DataFrame(
            {
                "call_row": self.row[held],
                "start_ns": self.start_ns[held],
                "room_ns": self.done_ns[held - length],
                "end_ns": self.end_ns[held],
                "thread": self.thread[held],
                "work_row": self.work_row[held - length],
                "launched": self.launched,
            }
        )


def _streams(device: pd.DataFrame, launched: Launches, events: pd.DataFrame, waiting: np.ndarray) -> list[_Queue]:
    """The queue of each stream, which the threads of the framework fill, or the one behind a task queue. Calls that
    wait for the device whatever is in the queue are no entries."""
    frame = launched.frame
    call, dequeue = frame["call_row"].to_numpy(), frame["dequeue_row"].to_numpy()
    call = np.where(call >= 0, call, dequeue)
    behind = np.where(frame["enqueue_row"] >= 0, frame["thread"], -1)
    entered = (call >= 0) & ~waiting[np.maximum(call, 0)]
    stream, ends = device["stream"].to_numpy(), device["end_ns"].to_numpy()
    found = []
    for one in np.unique(stream[entered & (stream >= 0)]):
        tasks = np.flatnonzero(entered & (stream == one))
        if len(tasks) < SHORTEST:
            continue
        tasks = tasks[np.argsort(ends[tasks], kind="stable")]
        rows, last = np.unique(call[tasks][::-1], return_index=True)
        last = tasks[len(tasks) - 1 - last]  # of the tasks of a call, the one that ends last
        start, end = _times(events, rows, launched.skew_ns)
        order = np.argsort(start, kind="stable")
        done, task = _so_far(ends[last[order]], last[order])
        found.append(_Queue(rows[order], start[order], end[order], done, behind[last[order]], task, launched=False))
    return found


def _task_queues(launched: Launches, events: pd.DataFrame) -> list[_Queue]:
    """The task queue, if there is one. An entry leaves it when its call is done; not every entry launches a task."""
    category = events["category"]
    puts = events[category == "enqueue"].drop_duplicates("correlation")
    takes = events[category == "dequeue"].drop_duplicates("correlation")
    taken = takes.set_index("correlation")
    pairs = puts[puts["correlation"].isin(taken.index)].sort_values("start_ns", kind="stable")
    if len(pairs) < SHORTEST:
        return []
    taken = taken.loc[pairs["correlation"]]
    rows = pairs.index.to_numpy()
    start, end = _times(events, rows, launched.skew_ns)
    done = (taken["start_ns"] + taken["duration_ns"]).to_numpy() - launched.skew_ns
    enqueue = launched.frame["enqueue_row"].to_numpy()
    tasks = np.flatnonzero(enqueue >= 0)
    last = pd.Series(tasks, index=enqueue[tasks]).groupby(level=0).max()
    task = last.reindex(rows).fillna(-1).to_numpy().astype(np.int64)
    feeding = np.full(len(rows), -1, dtype=np.int64)
    done, task = np.maximum.accumulate(done), np.maximum.accumulate(task)
    return [_Queue(rows, start, end, done, feeding, task, launched=True)]


def _times(events: pd.DataFrame, rows: Ints, skew_ns: int) -> tuple[Ints, Ints]:
    start = events["start_ns"].to_numpy()[rows] - skew_ns
    return start, start + events["duration_ns"].to_numpy()[rows]


def _so_far(ends: Ints, tasks: Ints) -> tuple[Ints, Ints]:
    """The latest of the ends up to each entry, and the task that it is of."""
    latest = np.maximum.accumulate(ends)
    place = np.maximum.accumulate(np.where(ends == latest, np.arange(len(ends)), 0))
    return latest, tasks[place]
