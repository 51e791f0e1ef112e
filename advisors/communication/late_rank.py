"""CO002: waiting in collectives for a late rank."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from advisor_core.api.advisors import Column, Interval, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    COMMUNICATION_TASKS,
    KERNELS,
    Facts,
    NotApplicable,
    bookings,
    collective_calls,
    collective_state,
    ledger,
    steps,
)
from advisors.columns import STEP_NS
from advisors.communication.calls import CALL, call_metric, call_rows, calls_in_steps
from advisors.measuring import DEVICE_LANE, leaves, pieces_of, step_count, step_ns, under
from advisors.messages import message

_WAIT = "communication/wait/"


@advisor(
    "communication.late_rank",
    needs=(steps, ledger, bookings, collective_calls, collective_state, COMMUNICATION_TASKS),
    wants=(KERNELS, COLLECTIVES),
    about=(Column("late", "text", "", "the rank that is waited for, as the ledger names it: rank N", zh="迟到"),),
    columns=(
        STEP_NS,
        Column("wait_ns", "float", "ns", "uncovered waiting for that rank, per step", zh="等待"),
        Column("wait_share", "float", "ratio", "wait_ns over wall time", zh="等待占比"),
        Column("share_of_uncovered", "float", "ratio", "wait_ns over uncovered communication", zh="占未掩盖通信"),
        Column(
            "calls",
            "float",
            "count",
            "collectives that wait for it for most of their uncovered time, per step",
            zh="次数",
        ),
        Column("all_calls", "float", "count", "collectives per step", zh="全部次数"),
        Column("longest_ns", "float", "ns", "longest wait of one collective for it", zh="最长"),
        Column("is_global", "bool", "", "the number is a rank of the job, not of a group", zh="是全局编号"),
    ),
    evidence=(*CALL,),
)
def late_rank(facts: Facts, params: Params) -> Observations:
    """Waiting in collectives, by the rank that was waited for."""
    booked = facts[bookings]
    calls, steps, wall, per_leaf = calls_in_steps(facts), step_count(facts), step_ns(facts), leaves(facts)
    named = per_leaf[per_leaf.index.str.fullmatch(rf"{_WAIT}(group )?rank \d+")]
    if named.empty:
        raise NotApplicable(message("communication.no_peers"))
    late = named.index.str.removeprefix(_WAIT)
    peers = pd.Index(late.str.extract(r"(\d+)$", expand=False)).astype(int)
    mostly = calls["waits_for_ns"] * 2 > calls["uncovered_ns"]
    calls_held_up = calls["waits_for"][mostly].value_counts().reindex(peers, fill_value=0)
    longest = calls.groupby("waits_for")["waits_for_ns"].max().reindex(peers, fill_value=0)
    open_ns = under(per_leaf, "communication")
    frame = pd.DataFrame(
        {
            "late": late.to_numpy(dtype=object),
            "step_ns": wall,
            "wait_ns": named.to_numpy(),
            "wait_share": named.to_numpy() / wall,
            "share_of_uncovered": named.to_numpy() / open_ns,
            "calls": calls_held_up.to_numpy() / steps,
            "all_calls": len(calls) / steps,
            "longest_ns": longest.to_numpy().astype(float),
            "is_global": [not str(name).startswith("group ") for name in late],
        }
    )

    def evidence(number: int) -> Sequence[Reference]:
        name = str(frame["late"].iloc[number])
        waits = pieces_of(booked, _WAIT + name)
        per_task = waits.groupby("wait")["ns"].sum().sort_values(ascending=False, kind="stable")
        columns = ("lane", "name", "own_rank", "peer_rank", "start_ns", "duration_ns")
        references: list[Reference] = [
            Rows(message("communication.waits", rank=name), COMMUNICATION_TASKS, per_task.index.to_numpy(), columns)
        ]
        longest = waits.iloc[int(waits["ns"].to_numpy().argmax())]
        title = message("communication.longest_wait", rank=name)
        references.append(Interval(title, int(longest["start_ns"]), int(longest["end_ns"]), DEVICE_LANE))
        calls_held_up = calls[calls["waits_for"] == peers[number]]
        calls_held_up = calls_held_up.sort_values("waits_for_ns", ascending=False, kind="stable")
        return [*references, call_metric(calls_held_up), *call_rows(facts, calls_held_up)]

    return Observations(frame, evidence)
