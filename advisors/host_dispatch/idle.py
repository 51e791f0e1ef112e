"""HD001: idle time of the device, by cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    KERNELS,
    NO_TIME,
    PART,
    STEP_TRACE,
    Bookings,
    Facts,
    JudgedPart,
    NotApplicable,
    bookings,
    judged_parts,
    kernel_list,
    ledger,
    rank_summary,
    work,
)
from advisors.columns import SHARE, STEP_NS, TIME
from advisors.host_dispatch.late_time import LATE
from advisors.measuring import LARGEST, intervals_of, leaves, next_kernels, share, under
from advisors.messages import message
from advisors.phases import cut_at, worth_judging


@advisor(
    "host_dispatch.idle",
    needs=(ledger, rank_summary),
    wants=(bookings, kernel_list, STEP_TRACE, KERNELS, work, judged_parts),
    about=(PART,),
    columns=(
        STEP_NS,
        Column("idle_ns", "float", "ns", "the device neither computes nor communicates, per step", zh="空闲"),
        Column("idle_share", "float", "ratio", "idle over wall time, or that of the part", zh="空闲占比"),
        Column(
            "host_late_ns",
            "float",
            "ns",
            "of it: the next task was not launched yet; unknown without launches",
            zh="host 迟到",
        ),
        Column("host_late_share", "float", "ratio", "host_late_ns over idle_ns", zh="host 迟到占比"),
        Column(
            "gaps",
            "float",
            "count",
            "idle gaps per step; unknown where only the exporter sums up the step",
            zh="空隙数",
        ),
        Column("largest_gap_ns", "float", "ns", "longest gap; unknown likewise", zh="最长空隙"),
        Column(
            "slow_host_share",
            "float",
            "ratio",
            "of the idle time: host in Python, operators or runtime calls",
            zh="host 慢占比",
        ),
        Column("sync_share", "float", "ratio", "of the idle time: after synchronising calls", zh="同步占比"),
        Column("compile_share", "float", "ratio", "of the idle time: online compilation", zh="编译占比"),
        Column(
            "task_switch_share", "float", "ratio", "of the idle time: launched in time, started late", zh="任务切换占比"
        ),
        Column("unknown_share", "float", "ratio", "of the idle time: no cause known", zh="未知占比"),
    ),
    evidence=(
        Column("cause", "text", "", "entry of the ledger", zh="原因"),
        TIME,
        SHARE,
    ),
)
def idle(facts: Facts, params: Params) -> Observations:
    """Idle time of the device, by cause. Where the recording has several parts each of them is judged by itself: a
    prefill that keeps the device busy would hide a decode that does not, and the causes are not the same. A part whose
    idle time is no matter of the step is left out.
    """
    if kernel_list in facts:
        raise NotApplicable(message("capture.no_loop"))
    booked, summary = facts.get(bookings), facts[rank_summary]
    step_wall, steps = float(summary["wall_ns"].mean()), len(summary)
    whole = _Idle(None, leaves(facts), step_wall, None if booked is None else booked.gaps)
    found = [_of_part(part, facts[bookings]) for part in facts.get(judged_parts) or ()]
    judged = worth_judging(found, lambda one: one.idle_ns, step_wall) or [whole]
    frame = pd.DataFrame([one.observed(step_wall, steps) for one in judged])

    def evidence(number: int) -> Sequence[Reference]:
        own = judged[number]
        causes = own.per_leaf[own.per_leaf.index.str.startswith("idle/")].sort_values(ascending=False)
        rows = [{"cause": path, "time": ns, "share": share(ns, own.idle_ns)} for path, ns in causes.items()]
        found: list[Reference] = [Metric(message("host_dispatch.idle_by_cause"), rows)]
        if own.gaps is not None:
            longest = own.gaps.loc[_lengths(own.gaps).sort_values(ascending=False, kind="stable").index]
            found += intervals_of(longest)
            if work in facts:
                found += next_kernels(facts, longest["next"].iloc[:LARGEST])
        if own.part is None and STEP_TRACE in facts and len(facts[STEP_TRACE]):
            columns = ("step", "computing_ns", "uncovered_communication_ns", "free_ns", "stage_ns")
            rows_of = np.arange(len(facts[STEP_TRACE]))
            found.append(Rows(message("common.exporter_totals"), STEP_TRACE, rows_of, columns))
        return found

    return Observations(frame, evidence)


@dataclass(frozen=True)
class _Idle:
    """The idle time of a part of the steps, ``None`` of all. ``wall_ns``: its time per step. ``gaps``: those in it, cut
    at its ends, by their number in the bookings; ``None`` where only the exporter sums up the steps."""

    part: str | None
    per_leaf: pd.Series
    wall_ns: float
    gaps: pd.DataFrame | None

    @property
    def idle_ns(self) -> float:
        return under(self.per_leaf, "idle")

    def observed(self, step_wall: float, steps: int) -> dict[str, Any]:
        total, per_leaf, gaps = self.idle_ns, self.per_leaf, self.gaps
        launched = gaps is not None and (gaps["launch_ns"] != NO_TIME).any()
        late = (0.0 if gaps is None else float(gaps["host_late_ns"].sum()) / steps) if launched or not total else np.nan
        return {
            PART.name: self.part,
            "step_ns": step_wall,
            "idle_ns": total,
            "idle_share": share(total, self.wall_ns),
            "host_late_ns": late,
            "host_late_share": share(late, total),
            "gaps": len(gaps) / steps if gaps is not None else np.nan,
            "largest_gap_ns": np.nan if gaps is None else float(_lengths(gaps).max()) if len(gaps) else 0.0,
            "slow_host_share": share(under(per_leaf, *LATE), total),
            "sync_share": share(under(per_leaf, "idle/sync"), total),
            "compile_share": share(under(per_leaf, "idle/host/compile"), total),
            "task_switch_share": share(under(per_leaf, "idle/task_switch"), total),
            "unknown_share": share(under(per_leaf, "idle/unknown", "idle/host/unknown"), total),
        }


def _lengths(gaps: pd.DataFrame) -> pd.Series:
    return gaps["end_ns"] - gaps["start_ns"]


def _of_part(part: JudgedPart, booked: Bookings) -> _Idle:
    """A gap goes on over the end of a part where only a mark divides them: each has its own piece of it."""
    found = cut_at(booked.gaps, part.inside)
    until_launch = booked.gaps["start_ns"] + booked.gaps["host_late_ns"]  # late from the beginning of a gap
    late = (until_launch.loc[found.index] - found["start_ns"]).clip(0, _lengths(found))
    return _Idle(part.name, part.per_leaf, part.wall_ns, found.assign(host_late_ns=late))
