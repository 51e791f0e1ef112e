"""HD021: what another mode of the task queue would move from the threads that feed the device to the one behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    MEMORY_RECORD,
    PROFILE,
    Facts,
    HostChange,
    NotApplicable,
    Unavailable,
    host_activity,
    launches,
    matching,
    replay,
    steps,
    union,
    work,
)
from advisors.columns import STEP_NS
from advisors.host_dispatch.savings import SAVED, runtime_call_rows, saving_by_replay
from advisors.measuring import records, row, step_count, step_ns
from advisors.messages import message
from advisors.task_queue import seen_task_queue

COPY_NS: Final = 3_000
"""The time of each call that stays at the least: its parameters must be copied into the queue. Assumed to take as long
as the entry itself (`advisor_core.facts.replay.changes.ENTRY_NS`); no figure is published."""


@advisor(
    "host_dispatch.queue_mode",
    needs=(HOST_EVENTS, PROFILE, steps, work, launches, host_activity, replay),
    wants=(MEMORY_RECORD,),
    columns=(
        STEP_NS,
        *SAVED,
        Column("task_queue", "text", "", "what the trace shows: off or on (level 1)", zh="任务队列"),
        Column("level", "int", "", "value of TASK_QUEUE_ENABLE that this is about: one more", zh="级别"),
        Column("calls", "float", "count", "pieces of work per step that would be done behind the queue", zh="次数"),
        Column(
            "handed_over_ns",
            "float",
            "ns",
            "time per step that the threads before the queue would hand over",
            zh="移出",
        ),
    ),
    evidence=(
        Column("interface", "text", "", "the call, or the operator that prepares it", zh="接口"),
        Column("count", "int", "count", "calls of all steps", zh="数量"),
        Column("total", "int", "ns", "time in them before the queue", zh="合计"),
        Column("longest", "int", "ns", "the longest of them", zh="最长"),
    ),
)
def queue_mode(facts: Facts, params: Params) -> Observations:
    """The work that another mode of the task queue would move to the thread behind it, and the time that this saves."""
    events, wall, count = facts[HOST_EVENTS], step_ns(facts), step_count(facts)
    state = seen_task_queue(events, facts.get(MEMORY_RECORD))
    if state == "unknown":
        raise Unavailable(message("host_dispatch.no_cann"), message("host_dispatch.no_cann.collect"), ("host",))
    if state == "workspace" or not facts[PROFILE].vocabulary.task_queue:
        raise NotApplicable(message("host_dispatch.queue_is_full"))
    moved = _called(facts) if state == "off" else _prepared(facts)
    change = _behind_queue(moved, COPY_NS if state == "on" else 0)
    frame = row(
        step_ns=wall,
        **saving_by_replay(facts[replay], wall, change),
        task_queue=state,
        level=1 if state == "off" else 2,
        calls=len(moved) / count,
        handed_over_ns=change.handed_over.total() / count,
    )

    def evidence(number: int) -> Sequence[Reference]:
        lengths = (moved["end_ns"] - moved["start_ns"]).groupby(moved["name"]).agg(["size", "sum", "max"])
        lengths = lengths.sort_values("sum", ascending=False, kind="stable").reset_index()
        table = records(lengths, interface="name", count="size", total="sum", longest="max")
        return [Metric(message("host_dispatch.before_queue"), table)]

    return Observations(frame, evidence, cure=lambda number: change)


def _called(facts: Facts) -> pd.DataFrame:
    """The calls into CANN of the threads that feed the device: ``name``, ``start_ns`` and ``end_ns``, device time."""
    events = facts[HOST_EVENTS].iloc[runtime_call_rows(facts)]
    starts = events["start_ns"].to_numpy() - facts[launches].skew_ns
    return _intervals(events["name"], starts, starts + events["duration_ns"].to_numpy())


def _prepared(facts: Facts) -> pd.DataFrame:
    """The preparation of each queued call of the vendor's library, from the begin of its operator to its entry;
    columns as of `_called`."""
    events, frame = facts[HOST_EVENTS], facts[launches].frame
    own = frame[(frame["enqueue_row"] >= 0) & (frame["op_row"] >= 0)].drop_duplicates("enqueue_row")
    own = own[matching(events["name"], facts[PROFILE].vocabulary.interfaces)[own["op_row"]]]
    times, skew = events["start_ns"].to_numpy(), facts[launches].skew_ns
    starts, ends = (times[own[column]] - skew for column in ("op_row", "enqueue_row"))
    return _intervals(events["name"].iloc[own["op_row"]], starts, ends)


def _intervals(names: pd.Series, starts: np.ndarray, ends: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"name": names.astype(str).to_numpy(), "start_ns": starts, "end_ns": ends})


def _behind_queue(moved: pd.DataFrame, stays_ns: int) -> HostChange:
    """All of it behind the queue; at the least so much of each piece stays before it."""
    starts, ends = moved["start_ns"].to_numpy(), moved["end_ns"].to_numpy()
    whole = HostChange(handed_over=union(starts, ends))
    return replace(whole, least=HostChange(handed_over=union(starts + stays_ns, ends))) if stays_ns else whole
