"""HD016, GHD014: collectives that run on the CPU while the device waits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, NotApplicable, bookings, launches, matching, steps, union
from advisors.columns import IDLE_SHARE, LONGEST, STEP_NS
from advisors.measuring import LARGEST, host_rows, idle_pieces, records, row, share, step_count, step_ns
from advisors.messages import message

_GLOO: Final = re.compile(r"^gloo:\w+")
"""How PyTorch names the work of its backend for the CPU, from the moment it is asked for until it is done (recorded
with torch 2.13; the name is that of `ProcessGroupGloo`)."""


@advisor(
    "host_dispatch.cpu_collectives",
    needs=(HOST_EVENTS, steps, bookings, launches),
    columns=(
        STEP_NS,
        Column("idle_ns", "float", "ns", "the device is idle while such a collective runs, per step", zh="空闲"),
        IDLE_SHARE,
        Column("total_ns", "float", "ns", "such a collective runs, per step", zh="合计"),
        Column("calls", "float", "count", "such collectives per step", zh="次数"),
        Column("operation", "text", "", "the one with most time", zh="通信算子"),
        Column("longest_ns", "int", "ns", "longest of them", zh="最长"),
    ),
    evidence=(
        Column("call", "text", "", "name of the calls", zh="调用"),
        Column("count", "int", "count", "calls of all steps", zh="数量"),
        Column("total", "int", "ns", "time in them", zh="合计"),
        LONGEST,
    ),
)
def cpu_collectives(facts: Facts, params: Params) -> Observations:
    """Collectives of PyTorch's backend for the CPU, and how long the device is idle meanwhile."""
    events, windows = facts[HOST_EVENTS], facts[steps]
    starts = events["start_ns"].to_numpy() - facts[launches].skew_ns
    lengths = events["duration_ns"].to_numpy()
    first, last = int(windows["start_ns"].min()), int(windows["end_ns"].max())
    named = matching(events["name"], _GLOO)
    rows = np.flatnonzero(named & (starts < last) & (starts + lengths > first))
    if not len(rows):
        raise NotApplicable(message("host_dispatch.no_gloo"))
    running = union(starts[rows], starts[rows] + lengths[rows])
    pieces = idle_pieces(facts[bookings])
    idle = running.measure(pieces["end_ns"].to_numpy()) - running.measure(pieces["start_ns"].to_numpy())
    count, wall = step_count(facts), step_ns(facts)
    calls = events.iloc[rows].assign(name=events["name"].iloc[rows].astype(str))
    sums = calls.groupby("name")["duration_ns"].agg(["size", "sum", "max"]).sort_values("sum", ascending=False)
    frame = row(
        step_ns=wall,
        idle_ns=float(idle.sum()) / count,
        idle_share=share(float(idle.sum()) / count, wall),
        total_ns=running.clip(first, last).total() / count,
        calls=len(rows) / count,
        operation=str(sums.index[0]),
        longest_ns=int(lengths[rows].max()),
    )

    def evidence(number: int) -> Sequence[Reference]:
        table = records(sums.reset_index(), call="name", count="size", total="sum", longest="max")
        longest = rows[np.argsort(-lengths[rows], kind="stable")][:LARGEST]
        return [
            Metric(message("host_dispatch.activity"), table),
            *host_rows("host_dispatch.activity_calls", longest),
        ]

    return Observations(frame, evidence)
