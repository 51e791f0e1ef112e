"""HD010: gaps before tasks that had been launched in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Setting, advisor
from advisor_core.api.facts import KERNELS, PROFILE, Facts, bookings, launches, ledger, steps, work
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
    "host_dispatch.task_switch",
    needs=(steps, ledger, bookings, work, launches, PROFILE),
    wants=(KERNELS,),
    columns=(
        STEP_NS,
        Column(
            "idle_ns",
            "float",
            "ns",
            "idle although the next task had been launched before the gap, per step",
            zh="空闲",
        ),
        IDLE_SHARE,
        Column("gaps", "float", "count", "such gaps per step", zh="空隙数"),
        Column("median_ns", "float", "ns", "median of such a gap", zh="中位数"),
        Column("spread_ns", "float", "ns", "distance of their quartiles: small where a fixed cost repeats", zh="离散"),
        Column(
            "median_lead_ns",
            "float",
            "ns",
            "median time from the launch of these tasks to their start",
            zh="下发领先中位数",
        ),
        Column("l2_cache", "text", "", "l2_cache option of the profiler: on, off or unknown", zh="l2_cache"),
    ),
    evidence=(
        Column("gap", "int", "ns", "between the end of a task and the start of the next", zh="空隙"),
        Column("lead", "int", "ns", "how long before its start the next was launched", zh="下发领先"),
    ),
)
def task_switch(facts: Facts, params: Params) -> Observations:
    """Gaps that the device needs between two tasks although the host was in time."""
    booked = facts[bookings]
    launched = facts[launches]
    sums = by_gap(pieces_of(booked, "idle/task_switch"))
    gaps = booked.gaps.loc[sums.index]
    leads = launched.frame["lead_ns"].to_numpy()[gaps["next"].to_numpy()]
    lost, wall, steps = under(leaves(facts), "idle/task_switch"), step_ns(facts), step_count(facts)
    option = facts[PROFILE].profiler.get("l2_cache")
    frame = row(
        step_ns=wall,
        idle_ns=lost,
        idle_share=share(lost, wall),
        gaps=len(sums) / steps,
        median_ns=float(sums.median()) if len(sums) else np.nan,
        spread_ns=float(sums.quantile(0.75) - sums.quantile(0.25)) if len(sums) else np.nan,
        median_lead_ns=float(np.median(leads)) if len(leads) else np.nan,
        l2_cache="unknown" if option is None else "on" if option else "off",
    )

    def evidence(number: int) -> Sequence[Reference]:
        rows = [{"gap": int(sums.iloc[place]), "lead": int(leads[place])} for place in range(min(LARGEST, len(sums)))]
        profile = facts[PROFILE]
        found: list[Reference] = [Metric(message("host_dispatch.switch_gaps"), rows)]
        found += next_kernels(facts, gaps["next"])
        found += gap_intervals(booked, sums, 1)
        if option is not None:
            file = profile.setting_files.get("profiler", "")
            found.append(Setting(message("host_dispatch.setting"), "l2_cache", option, file))
        return found

    return Observations(frame, evidence)
