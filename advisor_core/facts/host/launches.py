"""Launches: from a task on the device back to the host call, the queue and the operator that caused it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column, array_of
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.frames import frame_of
from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import FLOWS, HOST_EVENTS
from advisor_core.contracts.tables import Int64Array as Ints
from advisor_core.facts.device.work import work
from advisor_core.facts.grouping import first_rows
from advisor_core.nesting import enclosing
from advisor_core.text.messages import message

NO_TIME = -(1 << 63)
"""A launch that is not known."""

MISMATCH_NS = 1_000_000
"""A task cannot start this long before its launch: such a link is wrong, not skewed. The largest negative lead seen in
real exports is 78 us."""


CALL_NS = 30_000
"""A launching call that takes no longer than this is one event; see `advisor_core.facts.ledger.bookings.LATENCY_NS`."""

ROUNDING_NS = 2
"""kernel_details.csv and trace_view.json write the start of a collective up to 1 ns apart (real AlexNet export)."""


COLUMNS = (
    Column("launch_ns", "int", "ns", "when the host had launched it, in device time; lowest int64 if unknown"),
    Column(
        "entered_ns",
        "int",
        "ns",
        "when it had been put into the task queue, in device time; launch_ns where there is none",
    ),
    Column(
        "taken_ns",
        "int",
        "ns",
        "when the thread behind the task queue had taken it, in device time; entered_ns where there is none",
    ),
    Column("thread", "int", "", "thread of the launch, -1 unknown"),
    Column("lead_ns", "int", "ns", "start less launch, -1 unknown"),
    Column("call_row", "int", "", "row of host_events of the launching call, -1 unknown"),
    Column("dequeue_row", "int", "", "row of host_events of the dequeue, -1 unknown"),
    Column("enqueue_row", "int", "", "row of host_events of the enqueue, -1 unknown"),
    Column("op_row", "int", "", "row of host_events of the operator, -1 unknown"),
    Column("siblings", "int", "count", "tasks of the same launch, 0 unknown"),
)


@dataclass(frozen=True)
class Launches:
    """``frame`` has one row per row of the fact ``work``. An arrow starts with the launching call, which takes 5 to 20
    us; where the call took longer than `CALL_NS` (a collective that the host unfolds takes 840 us in a real export) the
    launch counts from `CALL_NS` before its end.

    ``skew_ns``: what host times are ahead of device times at least. The clocks are aligned by software, so that tasks
    seem to start before their launch; the largest such lead is taken off every host time.
    """

    frame: pd.DataFrame
    skew_ns: int

    def known(self) -> pd.Series:
        return self.frame["launch_ns"] != NO_TIME


def ahead_ns(launched: Launches | None) -> int:
    """By how many ns host times are ahead of device times at least: 0 where no launches tell."""
    return 0 if launched is None else launched.skew_ns


@fact("launches", needs=(work, FLOWS), wants=(HOST_EVENTS,), frames={"frame": COLUMNS})
def launches(facts: Facts) -> Launches:
    """Host call, queue entry and operator behind each task, through the flow events."""
    device, flows = facts[work], facts[FLOWS]
    linked = arrows_to_tasks(flows)
    if linked is None:
        raise Unavailable(message("launches.none"), message("launches.none.collect"), ("host", "device"))
    starts, called = device["start_ns"].to_numpy(), linked["time_ns_host"].to_numpy()
    arrow = _arrow_of(starts, device["stream"].to_numpy(), linked)
    rows = np.flatnonzero((arrow >= 0) & (called[arrow] - starts < MISMATCH_NS))
    arrow = arrow[rows]
    threads, calls = linked["thread_host"].to_numpy()[arrow], called[arrow]
    leads = starts[rows] - calls
    skew = max(0, -int(leads.min())) if len(leads) else 0
    host = _Host.of(facts.get(HOST_EVENTS), skew)
    behind = host.behind(threads, calls)
    launch = host.moved_back(calls, behind.call, starts[rows]) - skew
    entered = host.begun_by(launch, behind.enqueue, launch)
    # It is taken after it was entered, however the two clocks are read.
    taken = np.maximum(entered, host.begun_by(launch, np.where(behind.enqueue >= 0, behind.dequeue, -1), entered))

    def of_all(values: Ints, unknown: int) -> Ints:
        every = np.full(len(device), unknown, dtype=np.int64)
        every[rows] = values
        return every

    columns = {
        "launch_ns": of_all(launch, NO_TIME),
        "entered_ns": of_all(entered, NO_TIME),
        "taken_ns": of_all(taken, NO_TIME),
        "thread": of_all(threads, -1),
        "lead_ns": of_all(leads + skew, -1),
        "call_row": of_all(behind.call, -1),
        "dequeue_row": of_all(behind.dequeue, -1),
        "enqueue_row": of_all(behind.enqueue, -1),
        "op_row": of_all(behind.operator, -1),
        "siblings": of_all(linked["siblings"].to_numpy()[arrow], 0),
    }
    return Launches(frame_of(columns, len(device)), skew)


def arrows_to_tasks(flows: pd.DataFrame) -> pd.DataFrame | None:
    """The arrows from the host to tasks of the device: ``flow``; ``time_ns`` and ``thread`` (the stream) of the task,
    ``time_ns_host`` and ``thread_host`` of the call; ``siblings``: how many begin there. ``None`` where one of the ends
    is not recorded at all."""
    is_launch, end = array_of(flows, "kind") == "host_to_device", array_of(flows, "end")
    heads, tails = np.flatnonzero(is_launch & (end == "s")), np.flatnonzero(is_launch & (end == "f"))
    if not len(heads) or not len(tails):
        return None
    flow, time, thread = (array_of(flows, name) for name in ("flow", "time_ns", "thread"))
    head = first_rows([flow[heads]], [flow[tails]])
    head, tails = head[head >= 0], tails[head >= 0]
    siblings = np.bincount(head, minlength=len(heads))[head]
    begins = heads[head]
    columns = {"flow": flow[tails], "time_ns": time[tails], "thread": thread[tails]}
    columns |= {"time_ns_host": time[begins], "thread_host": thread[begins], "siblings": siblings}
    return frame_of(columns, len(tails))


def _arrow_of(starts: Ints, streams: Ints, arrows: pd.DataFrame) -> Ints:
    """The row in ``arrows`` that leads to each task, -1 for none. A task and an arrow meet where they start at the same
    moment; the stream decides between two that do, and of several on one stream the last is taken."""
    times, threads = arrows["time_ns"].to_numpy(), arrows["thread"].to_numpy()
    if not len(times):
        return np.full(len(starts), -1, dtype=np.int64)
    moments, moment = np.unique(times, return_inverse=True)
    lanes, lane = np.unique(threads, return_inverse=True)
    at = np.searchsorted(moments, starts).clip(max=len(moments) - 1)
    on = np.searchsorted(lanes, streams).clip(max=len(lanes) - 1)
    meets = moments[at] == starts
    last_of_moment, last_of_both = np.zeros(len(moments), dtype=np.int64), np.full(len(moments) * len(lanes), -1)
    rows = np.arange(len(times))
    np.maximum.at(last_of_moment, moment, rows)
    np.maximum.at(last_of_both, moment * len(lanes) + lane, rows)
    same = np.where(lanes[on] == streams, last_of_both[at * len(lanes) + on], -1)
    found = np.where(same >= 0, same, last_of_moment[at])
    return np.where(meets, found, _nearest(starts, times))


def _nearest(starts: Ints, times: Ints) -> Ints:
    """The row of the time that is within `ROUNDING_NS` of each start, -1 for none: the text files round the same moment
    differently."""
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    behind = np.searchsorted(ordered, starts)
    before, after = (behind - 1).clip(min=0), behind.clip(max=len(times) - 1)
    to_before, to_after = np.abs(starts - ordered[before]), np.abs(ordered[after] - starts)
    nearest = np.where(to_before <= to_after, before, after)
    return np.where(np.minimum(to_before, to_after) <= ROUNDING_NS, order[nearest], -1)


@dataclass(frozen=True)
class _Behind:
    """The rows of host events behind each task, -1 unknown."""

    call: Ints
    dequeue: Ints
    enqueue: Ints
    operator: Ints


@dataclass(frozen=True)
class _Host:
    """The events of the host. ``skew_ns``: as in `Launches`."""

    events: pd.DataFrame
    skew_ns: int

    @classmethod
    def of(cls, events: pd.DataFrame | None, skew_ns: int) -> _Host:
        return cls(HOST_EVENTS.conform(pd.DataFrame()) if events is None else events, skew_ns)

    def behind(self, threads: Ints, times: Ints) -> _Behind:
        """The rows behind launches. The launch lies within a CANN call, that within a Dequeue on the thread that
        empties the task queue; its correlation id leads to the Enqueue, which lies within an operator. Without a task
        queue (TASK_QUEUE_ENABLE=0) the launch lies within the operator itself."""
        call = self._enclosing("runtime", threads, times)
        dequeue = self._enclosing("dequeue", threads, times)
        enqueue = self._enqueue_of(dequeue)
        queued = np.flatnonzero(enqueue >= 0)
        threads, times = threads.copy(), times.copy()
        threads[queued] = array_of(self.events, "thread")[enqueue[queued]]
        times[queued] = array_of(self.events, "start_ns")[enqueue[queued]]
        return _Behind(call, dequeue, enqueue, self._enclosing("cpu_op", threads, times))

    def _of(self, category: str) -> Ints:
        return np.flatnonzero(array_of(self.events, "category") == category)

    def _enclosing(self, category: str, threads: Ints, times: Ints) -> Ints:
        rows = self._of(category)
        starts = array_of(self.events, "start_ns")[rows]
        ends = starts + array_of(self.events, "duration_ns")[rows]
        found = enclosing(array_of(self.events, "thread")[rows], starts, ends, threads, times)
        return np.where(found >= 0, rows[found], -1) if len(rows) else found

    def _enqueue_of(self, dequeue: Ints) -> Ints:
        """The Enqueue with the correlation id of each Dequeue, the first of them."""
        enqueues, correlation = self._of("enqueue"), array_of(self.events, "correlation")
        if not len(enqueues):
            return np.full(len(dequeue), -1, dtype=np.int64)
        place = first_rows([correlation[enqueues]], [correlation[dequeue]])
        return np.where((dequeue >= 0) & (place >= 0), enqueues[place], -1)

    def moved_back(self, launch: Ints, call: Ints, starts: Ints) -> Ints:
        """The launches at the end of long launching calls, but not past the start of the task."""
        rows = np.flatnonzero(call >= 0)
        ends = array_of(self.events, "start_ns")[call[rows]] + array_of(self.events, "duration_ns")[call[rows]]
        moved = launch.copy()
        moved[rows] = np.maximum(launch[rows], np.minimum(ends - CALL_NS, starts[rows] + self.skew_ns))
        return moved

    def begun_by(self, latest: Ints, rows: Ints, otherwise: Ints) -> Ints:
        """The begin of these events in device time, the ``latest`` at most; ``otherwise`` where there is none."""
        known = np.flatnonzero(rows >= 0)
        began = array_of(self.events, "start_ns")[rows[known]] - self.skew_ns
        times = otherwise.copy()
        times[known] = np.minimum(began, latest[known])
        return times
