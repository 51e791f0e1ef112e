"""CO017: communication that nothing covers because a synchronising call held up its launch."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    HOST_EVENTS,
    KERNELS,
    LATENCY_NS,
    NO_TIME,
    Facts,
    bookings,
    collective_calls,
    matching,
    steps,
    sync_calls,
    union,
)
from advisors.columns import SAVEABLE_SHARE, STEP_NS
from advisors.communication.calls import CALL, call_metric, call_rows, calls_in_steps
from advisors.measuring import LARGEST, call_sites, host_rows, records, row, share, stack_of, step_count, step_ns
from advisors.messages import message

_COMPUTES = re.compile("^compute/")

_OPEN = ["transmit_ns", "launch_gap_ns", "unknown_ns"]
"""Uncovered time of a call but for its waiting for ranks, which is theirs."""


@advisor(
    "communication.after_sync",
    needs=(steps, bookings, collective_calls, sync_calls, HOST_EVENTS),
    wants=(KERNELS, COLLECTIVES),
    columns=(
        STEP_NS,
        Column("uncovered_ns", "float", "ns", "uncovered behind such calls, per step", zh="未掩盖"),
        Column("saveable_ns", "float", "ns", "of it: what the computing could hide that ran meanwhile", zh="可节省"),
        SAVEABLE_SHARE,
        Column("held_ns", "float", "ns", "computing while these calls held the host, per step", zh="占用时间"),
        Column("calls", "float", "count", "operations per step that such a call held up", zh="次数"),
        Column("operator", "text", "", "operator that synchronises before most of it", zh="算子"),
        Column("place", "text", "", "frame of the model's code, '' without call stacks", zh="位置"),
    ),
    evidence=(
        *CALL,
        Column("held", "int", "ns", "computing that held the call, with no communication beside it", zh="占用时间"),
        Column("uncovered_behind", "int", "ns", "uncovered communication behind it", zh="其后未掩盖"),
        Column("hidden", "int", "ns", "what that computing could hide of it", zh="可掩盖"),
    ),
)
def after_sync(facts: Facts, params: Params) -> Observations:
    """Uncovered communication whose launch a synchronising call held up.

    A collective that begins at most `LATENCY_NS` after its launch was waited for by nothing but the host. Had the
    synchronising call before it not been there, it would have been launched earlier by the time for which the call held
    the host; the computing that ran then, with no communication beside it, could hide that much of it. What one call
    held is used up by the collectives up to the next. An upper bound: a collective that needs the result of that
    computing cannot begin before it.
    """
    calls, syncs, events = calls_in_steps(facts), facts[sync_calls], facts[HOST_EVENTS]
    pieces = facts[bookings].pieces
    alone = pieces[matching(pieces["path"], _COMPUTES) & ~pieces["overlapped"].to_numpy()]
    computing = union(alone["start_ns"].to_numpy(), alone["end_ns"].to_numpy())
    syncs = syncs.sort_values("end_ns", ignore_index=True)
    held = computing.measure(syncs["end_ns"].to_numpy()) - computing.measure(syncs["start_ns"].to_numpy())
    launch = calls["launch_ns"].to_numpy()
    prompt = (launch != NO_TIME) & (calls["start_ns"].to_numpy() - launch <= LATENCY_NS)
    last = np.searchsorted(syncs["end_ns"].to_numpy(), launch, side="right") - 1
    behind = calls[_OPEN].sum(axis=1).to_numpy()
    late = prompt & (last >= 0) & (behind > 0)
    late[late] = held[last[late]] > 0
    open_ns = np.bincount(last[late], weights=behind[late], minlength=len(syncs)).astype(np.int64)
    hidden = np.minimum(open_ns, held)
    source = np.where(syncs["outer_row"] >= 0, syncs["outer_row"], syncs["row"]).astype(np.int64)
    sites = pd.DataFrame(
        {
            "source": source,
            "operator": events["name"].iloc[source].astype(str).to_numpy(),
            "place": call_sites(events, source),
            "held": np.where(open_ns > 0, held, 0),
            "uncovered_behind": open_ns,
            "hidden": hidden,
        }
    )
    order = sites[sites["hidden"] > 0].sort_values("hidden", ascending=False, kind="stable")
    by_site = order.groupby(["operator", "place"], sort=True)["hidden"].sum().reset_index()
    most = by_site.sort_values("hidden", ascending=False, kind="stable").head(1)
    count, wall = step_count(facts), step_ns(facts)
    frame = row(
        step_ns=wall,
        uncovered_ns=float(open_ns.sum()) / count,
        saveable_ns=float(hidden.sum()) / count,
        saveable_share=share(float(hidden.sum()) / count, wall),
        held_ns=float(sites["held"].sum()) / count,
        calls=float(late.sum()) / count,
        operator="".join(most["operator"]),
        place="".join(most["place"]),
    )

    def evidence(number: int) -> Sequence[Reference]:
        if order.empty:
            return []
        shown = ("operator", "held", "uncovered_behind", "hidden")
        largest = calls[late].sort_values("uncovered_ns", ascending=False, kind="stable")
        rows = order["source"].to_numpy()
        return [
            Metric(message("communication.held_up_by"), records(order, LARGEST, **{name: name for name in shown})),
            call_metric(largest),
            *host_rows("communication.synchronises", rows[:LARGEST]),
            *stack_of(events, int(rows[0])),
            *call_rows(facts, largest),
        ]

    return Observations(frame, evidence)
