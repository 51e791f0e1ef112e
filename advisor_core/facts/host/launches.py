"""Launches: from a task on the device back to the host call, the queue and the operator that caused it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.frames import narrowed, picked
from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import FLOWS, HOST_EVENTS
from advisor_core.facts.device.work import work
from advisor_core.nesting import enclosing_of
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
    # A task and an arrow meet where they start at the same moment; the stream decides between two that do.
    asks = pd.DataFrame({"time_ns": device["start_ns"], "stream": device["stream"], "work": np.arange(len(device))})
    pairs = asks.merge(linked, on="time_ns")
    pairs["same"] = pairs["stream"] == pairs["thread"]
    pairs = pairs.sort_values(["work", "same"], kind="stable").drop_duplicates("work", keep="last")
    unmatched = asks[~asks["work"].isin(pairs["work"])]
    if len(unmatched):
        pairs = pd.concat([pairs, _nearest(unmatched, linked)], ignore_index=True)
    pairs = pairs[pairs["time_ns_host"] - pairs["time_ns"] < MISMATCH_NS]
    rows = pairs["work"].to_numpy()

    count = len(device)
    launch = np.full(count, NO_TIME, dtype=np.int64)
    thread = np.full(count, -1, dtype=np.int64)
    siblings = np.zeros(count, dtype=np.int64)
    launch[rows] = pairs["time_ns_host"].to_numpy()
    thread[rows] = pairs["thread_host"].to_numpy()
    siblings[rows] = pairs["siblings"].to_numpy()
    leads = device["start_ns"].to_numpy()[rows] - launch[rows]
    skew = max(0, -int(leads.min())) if len(leads) else 0
    frame = pd.DataFrame(
        {"launch_ns": launch, "thread": thread, "siblings": siblings}
        | {name: np.full(count, -1, dtype=np.int64) for name in ("call_row", "dequeue_row", "enqueue_row", "op_row")}
    )
    if HOST_EVENTS in facts:
        _trace_back(frame, rows, facts[HOST_EVENTS])
        _wait_for_long_calls(frame, device, facts[HOST_EVENTS], skew)
    frame.loc[rows, "launch_ns"] -= skew
    frame["entered_ns"] = _entered(frame, facts.get(HOST_EVENTS), skew)
    frame["taken_ns"] = _taken(frame, facts.get(HOST_EVENTS), skew)
    frame["lead_ns"] = -1
    frame.loc[rows, "lead_ns"] = leads + skew
    return Launches(frame, skew)


def arrows_to_tasks(flows: pd.DataFrame) -> pd.DataFrame | None:
    """The arrows from the host to tasks of the device: ``flow``; ``time_ns`` and ``thread`` (the stream) of the task,
    ``time_ns_host`` and ``thread_host`` of the call; ``siblings``: how many begin there. ``None`` where one of the ends
    is not recorded at all."""
    narrow = ("flow", "time_ns", "thread")
    is_launch = (flows["kind"] == "host_to_device").to_numpy()
    heads = picked(flows, is_launch & (flows["end"] == "s").to_numpy(), narrow).drop_duplicates("flow")
    tails = picked(flows, is_launch & (flows["end"] == "f").to_numpy(), narrow)
    if heads.empty or tails.empty:
        return None
    head = pd.Index(heads["flow"]).get_indexer(tails["flow"])
    linked: pd.DataFrame = tails[head >= 0].reset_index(drop=True)
    head = head[head >= 0]
    for name in ("time_ns", "thread"):
        linked[f"{name}_host"] = heads[name].to_numpy()[head]
    linked["siblings"] = np.bincount(head, minlength=len(heads))[head]
    return linked


def _entered(frame: pd.DataFrame, events: pd.DataFrame | None, skew: int) -> np.ndarray:
    launch, enqueue = frame["launch_ns"].to_numpy(), frame["enqueue_row"].to_numpy()
    queued = enqueue >= 0
    if events is None or not queued.any():
        return launch
    entered = events["start_ns"].to_numpy()[np.maximum(enqueue, 0)] - skew
    return np.where(queued, np.minimum(entered, launch), launch)


def _taken(frame: pd.DataFrame, events: pd.DataFrame | None, skew: int) -> np.ndarray:
    entered, launch = frame["entered_ns"].to_numpy(), frame["launch_ns"].to_numpy()
    queued = (frame["enqueue_row"].to_numpy() >= 0) & (frame["dequeue_row"].to_numpy() >= 0)
    if events is None or not queued.any():
        return entered
    began = events["start_ns"].to_numpy()[np.maximum(frame["dequeue_row"].to_numpy(), 0)] - skew
    return np.where(queued, np.clip(began, entered, launch), entered)


def _wait_for_long_calls(frame: pd.DataFrame, device: pd.DataFrame, events: pd.DataFrame, skew: int) -> None:
    """Move the launch to the end of a long launching call, but not past the start of the task."""
    rows = np.flatnonzero(frame["call_row"].to_numpy() >= 0)
    calls = events.iloc[frame["call_row"].to_numpy()[rows]]
    ends = calls["start_ns"].to_numpy() + calls["duration_ns"].to_numpy()
    launch = frame["launch_ns"].to_numpy()[rows]
    starts = device["start_ns"].to_numpy()[rows] + skew
    frame.loc[frame.index[rows], "launch_ns"] = np.maximum(launch, np.minimum(ends - CALL_NS, starts))


def _nearest(asks: pd.DataFrame, arrows: pd.DataFrame) -> pd.DataFrame:
    """Pairs of a task and an arrow within `ROUNDING_NS`: the text files round the same moment differently."""
    pairs = pd.merge_asof(
        asks.sort_values("time_ns"),
        arrows.sort_values("time_ns"),
        on="time_ns",
        direction="nearest",
        tolerance=ROUNDING_NS,
    )
    pairs = pairs[pairs["flow"].notna()]
    whole = ["flow", "thread", "time_ns_host", "thread_host", "siblings"]
    return pairs.astype(dict.fromkeys(whole, "int64"))


def _trace_back(frame: pd.DataFrame, rows: np.ndarray, events: pd.DataFrame) -> None:
    """Fill in the rows of the host events. The launch lies within a CANN call, that within a Dequeue on the thread
    that empties the task queue; its correlation id leads to the Enqueue, which lies within an operator. Without a
    task queue (TASK_QUEUE_ENABLE=0) the launch lies within the operator itself."""
    if events.empty:
        return
    spans, category = narrowed(events, ("thread", "start_ns", "duration_ns", "correlation")), events["category"].array
    by_category = {name: spans[category == name] for name in ("runtime", "dequeue", "enqueue", "cpu_op")}
    threads, times = frame["thread"].to_numpy()[rows], frame["launch_ns"].to_numpy()[rows]
    frame.loc[rows, "call_row"] = enclosing_of(by_category["runtime"], threads, times)
    dequeue = enclosing_of(by_category["dequeue"], threads, times)
    frame.loc[rows, "dequeue_row"] = dequeue
    enqueues = by_category["enqueue"].drop_duplicates("correlation")
    by_correlation = pd.Series(enqueues.index.to_numpy(), index=enqueues["correlation"].to_numpy())
    correlation = events["correlation"].to_numpy()[np.maximum(dequeue, 0)]
    enqueue = by_correlation.reindex(np.where(dequeue >= 0, correlation, -1)).fillna(-1).to_numpy().astype(np.int64)
    frame.loc[rows, "enqueue_row"] = enqueue
    queued = enqueue >= 0
    caller = np.where(queued, events["thread"].to_numpy()[np.maximum(enqueue, 0)], threads)
    called = np.where(queued, events["start_ns"].to_numpy()[np.maximum(enqueue, 0)], times)
    frame.loc[rows, "op_row"] = enclosing_of(by_category["cpu_op"], caller, called)
