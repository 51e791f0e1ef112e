"""HD013: idle time between two steps."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.advisors import Column, Observations, Params, Reference, advisor
from advisor_core.api.facts import KERNELS, Facts, NotApplicable, bookings, launches, ledger, steps, work
from advisors.columns import IDLE_SHARE, STEP_NS
from advisors.measuring import (
    LARGEST,
    by_gap,
    gap_intervals,
    leaves,
    next_kernels,
    pieces_of,
    row,
    share,
    step_count,
    step_ns,
    under,
)
from advisors.messages import message


@advisor(
    "host_dispatch.step_boundary",
    needs=(steps, ledger, bookings, work, launches),
    wants=(KERNELS,),
    columns=(
        STEP_NS,
        Column("idle_ns", "float", "ns", "idle between two recorded steps of the framework, per step", zh="空闲"),
        IDLE_SHARE,
        Column("longest_ns", "float", "ns", "longest such gap", zh="最长"),
    ),
)
def step_boundary(facts: Facts, params: Params) -> Observations:
    """Idle time between two steps, outside of what the framework records as a step."""
    if step_count(facts) < 2:
        raise NotApplicable(message("host_dispatch.one_step"))
    booked = facts[bookings]
    sums = by_gap(pieces_of(booked, "idle/step_boundary"))
    lost, wall = under(leaves(facts), "idle/step_boundary"), step_ns(facts)
    frame = row(
        step_ns=wall,
        idle_ns=lost,
        idle_share=share(lost, wall),
        longest_ns=float(sums.max()) if len(sums) else 0.0,
    )

    def evidence(number: int) -> Sequence[Reference]:
        return [*gap_intervals(booked, sums), *next_kernels(facts, booked.gaps.loc[sums.index[:LARGEST], "next"])]

    return Observations(frame, evidence)
