"""An advisor about one activity of the host that kept the device waiting: HD005, HD007, HD008 and HD009."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api import Vocabulary
from advisor_core.api.advisors import Advisor, Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Facts,
    HostActivity,
    Layer,
    Unavailable,
    bookings,
    host_activity,
    launches,
    ledger,
    matching,
    replay,
    steps,
    work,
)
from advisors.columns import IDLE_SHARE, LONGEST, STEP_NS
from advisors.host_dispatch.savings import SAVED, layer_of, saving_by_replay, without_calls
from advisors.measuring import (
    by_gap,
    gap_intervals,
    host_rows,
    leaves,
    pieces_of,
    records,
    row,
    share,
    stack_of,
    step_count,
    step_ns,
    under,
)
from advisors.messages import message

Chosen: TypeAlias = "Callable[[pd.DataFrame, Vocabulary], np.ndarray]"
LeftOut: TypeAlias = "Callable[[Facts, Params], np.ndarray]"
"""Rows of ``host_events``."""


def activity_advisor(
    name: str,
    meaning: str,
    leaf: str,
    calls_of: Chosen,
    absent: Callable[[Facts], None],
    *,
    recurs: bool = True,
    read: tuple[str, ...] = (),
    but: LeftOut | None = None,
) -> Advisor:
    """An advisor about one leaf of idle time and the host calls behind it. ``recurs``: each step makes these calls, so
    that a long run has them as the recorded steps do; what strikes at random is judged where it struck. ``but``: the
    call that is no part of the activity, by the params of the rule that it reads (``read``)."""

    def measure(facts: Facts, params: Params) -> Observations:
        events, count, wall = facts[HOST_EVENTS], step_count(facts), step_ns(facts)
        absent(facts)
        windows, skew = facts[steps], facts[launches].skew_ns
        host: HostActivity = facts[host_activity]
        rows = np.flatnonzero(calls_of(events, facts[PROFILE].vocabulary))
        left_out = np.zeros(0, dtype=np.int64) if but is None else but(facts, params)
        rows = np.setdiff1d(rows, left_out)
        dispatching = np.isin(events["thread"].to_numpy()[rows], list(host.feeders | host.launchers))
        change = without_calls(events, rows[dispatching] if recurs else rows, host, skew)
        start = events["start_ns"].to_numpy()[rows] - skew
        length = events["duration_ns"].to_numpy()[rows]
        begin, end = int(windows["start_ns"].min()), int(windows["end_ns"].max())
        inside = (start < end) & (start + length > begin)
        inside &= _not_nested(events["thread"].to_numpy()[rows], start, length)
        rows, length = rows[inside], length[inside]
        booked = facts[bookings]
        pieces = pieces_of(booked, leaf)
        behind = idle_behind(pieces, layer_of(events, left_out, skew))
        sums = by_gap(pieces.assign(ns=pieces["ns"] - behind))
        sums = sums[sums > 0]
        lost = under(leaves(facts), leaf) - float(behind[(pieces["step"] >= 0).to_numpy()].sum()) / count
        replayed = facts[replay] if recurs else facts[replay].once()
        frame = row(
            step_ns=wall,
            **saving_by_replay(replayed, wall, change),
            idle_ns=lost,
            idle_share=share(lost, wall),
            calls=len(rows) / count,
            total_ns=float(length.sum()) / count,
            longest_ns=float(length.max()) if len(length) else 0.0,
            gaps=len(sums) / count,
        )

        def evidence(number: int) -> Sequence[Reference]:
            order = np.argsort(-length, kind="stable")
            found = host_rows("host_dispatch.activity_calls", rows[order])
            names = events["name"].iloc[rows].astype(str).to_numpy()
            table = pd.DataFrame({"name": names, "ns": length}).groupby("name")["ns"].agg(["size", "sum", "max"])
            table = table.sort_values("sum", ascending=False, kind="stable").head(10)
            metric = records(table.reset_index(), call="name", count="size", total="sum", longest="max")
            if metric:
                found.append(Metric(message("host_dispatch.activity"), metric))
            found += gap_intervals(booked, sums)
            stacked = rows[order][(events["call_stack"].iloc[rows[order]] != "").to_numpy()]
            return [*found, *stack_of(events, int(stacked[0]) if len(stacked) else -1)]

        return Observations(frame, evidence, cure=lambda number: change)

    measure.__doc__ = meaning
    declare = advisor(
        name,
        needs=(steps, ledger, bookings, HOST_EVENTS, launches, host_activity, PROFILE, work, replay),
        columns=(
            STEP_NS,
            *SAVED,
            Column("idle_ns", "float", "ns", "idle time of the device meanwhile, per step", zh="空闲"),
            IDLE_SHARE,
            Column("calls", "float", "count", "calls per step, those inside another one left out", zh="次数"),
            Column(
                "total_ns", "float", "ns", "time in these calls per step, whatever the device did meanwhile", zh="合计"
            ),
            Column("longest_ns", "float", "ns", "longest call", zh="最长"),
            Column("gaps", "float", "count", "idle gaps per step with such a call in them", zh="空隙数"),
        ),
        params=read,
        evidence=(
            Column("call", "text", "", "name of the call", zh="调用"),
            Column("count", "int", "count", "calls of all steps", zh="数量"),
            Column("total", "int", "ns", "time in them", zh="合计"),
            LONGEST,
        ),
    )
    return declare(measure)


def idle_behind(pieces: pd.DataFrame, calls: Layer) -> np.ndarray:
    """ns of each piece (`pieces_of`) in which one of the calls ran."""
    return calls.measure(pieces["end_ns"].to_numpy()) - calls.measure(pieces["start_ns"].to_numpy())


def _not_nested(thread: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Which calls do not lie within another one of the same thread."""
    order = np.lexsort((-length, start, thread))
    calls = pd.DataFrame({"thread": thread[order], "end": (start + length)[order]})
    reach = calls.groupby("thread")["end"].cummax().groupby(calls["thread"]).shift(fill_value=np.iinfo(np.int64).min)
    found = np.zeros(len(start), dtype=bool)
    found[order] = start[order] >= reach.to_numpy()
    return found


def runtime_calls_named(what: str) -> Chosen:
    return lambda events, words: (
        (events["category"] == "runtime").to_numpy() & matching(events["name"], words.calls[what])
    )


def require_runtime_calls(facts: Facts) -> None:
    if not (facts[HOST_EVENTS]["category"] == "runtime").any():
        raise Unavailable(
            message("host_dispatch.no_cann"), message("host_dispatch.no_cann.collect"), ("host", "level1")
        )
