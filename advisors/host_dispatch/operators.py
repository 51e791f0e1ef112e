"""HD003: operators that cost the host more than the device."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api import Vocabulary
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    OPERATORS,
    PAUSE_NS,
    PROFILE,
    TIMES_USUAL,
    Facts,
    NotApplicable,
    Profile,
    Unavailable,
    aggregated,
    bookings,
    host_pauses,
    late_gaps,
    ledger,
    matching,
    steps,
)
from advisors.columns import STEP_NS
from advisors.host_dispatch.host_events import names_of
from advisors.host_dispatch.late_time import LATE, late_pieces
from advisors.measuring import LARGEST, by_gap, leaves, records, row, share, stack_of, step_count, step_ns, under
from advisors.messages import message


@advisor(
    "host_dispatch.operators",
    needs=(OPERATORS, steps, ledger, PROFILE),
    wants=(late_gaps, HOST_EVENTS, bookings, host_pauses),
    params=("first_calls",),
    columns=(
        STEP_NS,
        Column("operators", "int", "count", "operators whose host time exceeds their device time", zh="算子数"),
        Column("excess_ns", "float", "ns", "host time less device time of these operators, per step", zh="多出"),
        Column(
            "idle_behind_ns",
            "float",
            "ns",
            "of it, what the device was really idle for: at most, per step",
            zh="其后空闲",
        ),
        Column("idle_behind_share", "float", "ratio", "idle_behind_ns over wall time", zh="其后空闲占比"),
        Column("operator", "text", "", "operator with the largest excess", zh="算子"),
        Column("operator_calls", "int", "count", "its calls in the profile", zh="算子次数"),
        Column("operator_host_ns", "float", "ns", "its host time per call, children included", zh="算子 host 耗时"),
        Column("operator_device_ns", "float", "ns", "its device time per call", zh="算子 device 耗时"),
        Column("left_out", "int", "count", "first calls, and rare long ones, that were left out", zh="未计入"),
    ),
    evidence=(
        Column("calls", "int", "count", "calls of all steps", zh="次数"),
        Column("host", "int", "ns", "time of the host in them", zh="host 耗时"),
        Column("device", "int", "ns", "time of their kernels", zh="device"),
    ),
)
def operators(facts: Facts, params: Params) -> Observations:
    """Operators whose summed host time exceeds their device time."""
    table, steps, wall = facts[OPERATORS], step_count(facts), step_ns(facts)
    calls = outermost_calls(table, facts[PROFILE].vocabulary)
    if calls.empty:
        raise NotApplicable(message("host_dispatch.no_operators"))
    calls = calls[~calls["waits"]]
    skip = 0 if _warmed_up(facts[PROFILE]) else int(params["first_calls"])
    order = calls.groupby("name", observed=True).cumcount()
    kept = (order >= skip) & ~_rarely_long(calls)
    left_out = int((~kept).sum())
    calls = calls[kept]
    totals = aggregated(
        calls, "name", calls=("row", "size"), host=("host_total_ns", "sum"), device=("device_total_ns", "sum")
    ).set_index("name")
    totals["excess"] = totals["host"] - totals["device"]
    slow = totals[totals["excess"] > 0].sort_values("excess", ascending=False, kind="stable")
    excess = float(slow["excess"].sum()) / steps
    behind = min(excess, _idle_behind(facts, slow.index, steps))
    top = slow.iloc[0] if len(slow) else None
    frame = row(
        step_ns=wall,
        operators=len(slow),
        excess_ns=excess,
        idle_behind_ns=behind,
        idle_behind_share=share(behind, wall),
        operator=slow.index[0] if top is not None else None,
        operator_calls=int(top["calls"]) if top is not None else 0,
        operator_host_ns=float(top["host"] / top["calls"]) if top is not None else np.nan,
        operator_device_ns=float(top["device"] / top["calls"]) if top is not None else np.nan,
        left_out=left_out,
    )

    def evidence(number: int) -> Sequence[Reference]:
        rows = records(slow.reset_index(), operator="name", calls="calls", host="host", device="device")
        title = message("host_dispatch.slow_operators")
        references: list[Reference] = [Metric(title, rows)]
        for name in slow.index[:2]:
            own = calls[calls["name"] == name].sort_values("host_total_ns", ascending=False, kind="stable")
            columns = ("name", "input_shapes", "host_self_ns", "host_total_ns", "device_total_ns")
            shown = own["row"].to_numpy()[:LARGEST]
            references.append(Rows(message("host_dispatch.slow_calls", name=name), OPERATORS, shown, columns))
        if len(slow):
            longest = calls[calls["name"] == slow.index[0]].nlargest(1, "host_total_ns")["row"].to_numpy()
            references += stack_of(table, int(longest[0]))
        return references

    return Observations(frame, evidence)


def outermost_calls(table: pd.DataFrame, words: Vocabulary) -> pd.DataFrame:
    """The operator calls that the model's code made, without those made inside them.

    operator_details.csv lists calls by start, so that a call is followed by its children, and a call's total is the
    sum of the self times of itself and what is below it: where it ends follows from running sums. Annotations
    (``Optimizer.step#SGD.step``) are looked through. Columns: ``row``, ``name``, ``host_total_ns``,
    ``device_total_ns``, ``waits`` (it, or a call inside it, waits for the device: its host time is waiting).

    Raises `Unavailable` where the totals do not add up, as when the calls of several threads are interleaved.
    """
    running = np.concatenate([[0], np.cumsum(table["host_self_ns"].to_numpy())])
    total = table["host_total_ns"].to_numpy()
    ends = np.searchsorted(running, running[:-1] + total - _ROUNDING_NS)
    ends = np.clip(ends, np.arange(1, len(table) + 1), len(table))
    operator = ~matching(table["name"], words.annotation)
    reach = np.maximum.accumulate(np.where(operator, ends, 0))
    outer = operator & (np.arange(len(table)) >= np.concatenate([[0], reach[:-1]]))
    off = np.abs(running[ends] - running[:-1] - total)[outer].sum()
    if off > _NESTING_TOLERANCE * max(1, total[outer].sum()):
        raise Unavailable(message("host_dispatch.interleaved"))
    waits = matching(table["name"], _WAITING) | matching(table["name"], words.sync_operators)
    waiting = np.concatenate([[0], np.cumsum(waits)])
    rows = np.flatnonzero(outer)
    return pd.DataFrame(
        {
            "row": rows,
            "name": table["name"].iloc[rows].astype(str).to_numpy(),
            "host_total_ns": total[rows],
            "device_total_ns": table["device_total_ns"].to_numpy()[rows],
            "waits": waiting[ends[rows]] > waiting[rows],
        }
    )


_ROUNDING_NS = 100
_NESTING_TOLERANCE = 0.01

_WAITING = re.compile(r"acl_memcpy|synchronize|wait_event", re.I)
"""Calls in which the host waits for the device or for a copy: their host time is a symptom, not a cost."""


def _warmed_up(profile: Profile) -> bool:
    """Whether steps ran before the profiled ones, so that no call in the profile is the first of the process."""
    earlier = [profile.profiler.get(f"schedule.{name}") for name in ("skip_first", "wait", "warmup")]
    return any(isinstance(count, int) and count > 0 for count in earlier)


def _rarely_long(calls: pd.DataFrame) -> pd.Series:
    """The calls in which something else held the host for long (HD014): they say nothing of what the operator costs."""
    usual = calls.groupby("name", observed=True)["host_total_ns"].transform("median")
    return calls["host_total_ns"] >= np.maximum(PAUSE_NS, TIMES_USUAL * usual)


def _idle_behind(facts: Facts, names: pd.Index[str], steps: int) -> float:
    """Idle time in which a launch of one of these operators was late; all late time where that is not known."""
    if not facts.knows(late_gaps, HOST_EVENTS, bookings):
        return under(leaves(facts), *LATE, "idle/unknown")
    sums = by_gap(late_pieces(facts))
    calls = facts[late_gaps]
    own = calls[np.isin(names_of(facts[HOST_EVENTS], calls["outer_row"]), names.to_numpy())]
    return float(sums.reindex(own["gap"], fill_value=0).sum()) / steps
