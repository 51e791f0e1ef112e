"""CO006: AllReduce operations whose two halves could be done apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    KERNELS,
    PROFILE,
    Facts,
    NotApplicable,
    aggregated,
    collective_calls,
    collective_state,
    ledger,
    steps,
)
from advisors.columns import GROUP, STEP_NS
from advisors.communication.calls import CALL, call_metric, call_rows, calls_in_steps
from advisors.measuring import step_count, step_ns
from advisors.messages import message
from advisors.transfers import chains


@advisor(
    "communication.all_reduce",
    needs=(steps, ledger, collective_calls, collective_state, PROFILE),
    wants=(KERNELS, COLLECTIVES),
    about=(GROUP,),
    columns=(
        STEP_NS,
        Column("calls", "float", "count", "AllReduce operations per step", zh="次数"),
        Column(
            "transmit_ns",
            "float",
            "ns",
            "their uncovered moving time less what waiting for a rank made late, per step",
            zh="传输",
        ),
        Column("transmit_share", "float", "ratio", "transmit_ns over wall time", zh="传输占比"),
        Column("bytes", "float", "B", "moved per step over all links, unknown without communication.json", zh="字节数"),
        Column("members", "float", "count", "ranks in the group", zh="成员数"),
        Column("tensor_parallel", "float", "count", "size of tensor parallelism, where it is recorded", zh="张量并行"),
    ),
    evidence=(*CALL,),
)
def all_reduce(facts: Facts, params: Params) -> Observations:
    """AllReduce operations whose two halves could be done apart."""
    calls, steps, wall = calls_in_steps(facts), step_count(facts), step_ns(facts)
    profile = facts[PROFILE]
    calls = calls[calls["operation"].str.lower() == "allreduce"].reset_index(drop=True)
    if calls.empty:
        raise NotApplicable(message("communication.no_all_reduce"))
    is_known = calls["bytes"].to_numpy() >= 0
    frame = aggregated(
        calls.assign(known_bytes=calls["bytes"].where(is_known), is_known=is_known),
        "group",
        calls=("name", "size"),
        transmit_ns=("transmit_ns", "sum"),
        bytes=("known_bytes", "sum"),
        any_known=("is_known", "any"),
        members=("members", "max"),
    )
    late = {
        group: float(chains(calls_of_group)["displaced_ns"].sum()) for group, calls_of_group in calls.groupby("group")
    }
    frame["transmit_ns"] -= frame["group"].map(late)
    for column in ("calls", "transmit_ns", "bytes"):
        frame[column] = frame[column] / steps
    frame["bytes"] = frame["bytes"].where(frame["any_known"])
    frame["members"] = frame["members"].where(frame["members"] > 0).astype(float)
    frame["step_ns"] = wall
    frame["transmit_share"] = frame["transmit_ns"] / wall
    frame["tensor_parallel"] = float(profile.parallel.get("tp", np.nan))

    def evidence(number: int) -> Sequence[Reference]:
        calls_of_group = calls[calls["group"] == frame["group"].iloc[number]]
        calls_of_group = calls_of_group.sort_values("transmit_ns", ascending=False, kind="stable")
        return [call_metric(calls_of_group), *call_rows(facts, calls_of_group)]

    return Observations(frame, evidence)
