"""HD001: idle time of the device, by cause."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    KERNELS,
    NO_TIME,
    STEP_TRACE,
    Facts,
    NotApplicable,
    bookings,
    kernel_list,
    ledger,
    rank_summary,
    work,
)
from advisors.columns import SHARE, STEP_NS, TIME
from advisors.host_dispatch.late_time import LATE
from advisors.measuring import LARGEST, gap_intervals, leaves, next_kernels, row, share, under
from advisors.messages import message


@advisor(
    "host_dispatch.idle",
    needs=(ledger, rank_summary),
    wants=(bookings, kernel_list, STEP_TRACE, KERNELS, work),
    columns=(
        STEP_NS,
        Column("idle_ns", "float", "ns", "the device neither computes nor communicates, per step", zh="空闲"),
        Column("idle_share", "float", "ratio", "idle over wall time", zh="空闲占比"),
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
    """Idle time of the device, by cause."""
    if kernel_list in facts:
        raise NotApplicable(message("capture.no_loop"))
    booked, summary = facts.get(bookings), facts[rank_summary]
    per_leaf, wall, steps = leaves(facts), float(summary["wall_ns"].mean()), len(summary)
    total = under(per_leaf, "idle")
    gaps = booked.gaps if booked is not None else pd.DataFrame({"launch_ns": [], "host_late_ns": []})
    lengths = booked.gaps["end_ns"] - booked.gaps["start_ns"] if booked is not None else pd.Series(dtype="int64")
    launched = (gaps["launch_ns"] != NO_TIME).any()
    late = float(gaps["host_late_ns"].sum()) / steps if launched or not total else np.nan
    frame = row(
        step_ns=wall,
        idle_ns=total,
        idle_share=share(total, wall),
        host_late_ns=late,
        host_late_share=share(late, total),
        gaps=len(gaps) / steps if booked is not None else np.nan,
        largest_gap_ns=np.nan if booked is None else float(lengths.max()) if len(gaps) else 0.0,
        slow_host_share=share(under(per_leaf, *LATE), total),
        sync_share=share(under(per_leaf, "idle/sync"), total),
        compile_share=share(under(per_leaf, "idle/host/compile"), total),
        task_switch_share=share(under(per_leaf, "idle/task_switch"), total),
        unknown_share=share(under(per_leaf, "idle/unknown", "idle/host/unknown"), total),
    )

    def evidence(number: int) -> Sequence[Reference]:
        causes = per_leaf[per_leaf.index.str.startswith("idle/")].sort_values(ascending=False)
        rows = [{"cause": path, "time": ns, "share": share(ns, total)} for path, ns in causes.items()]
        found: list[Reference] = [Metric(message("host_dispatch.idle_by_cause"), rows)]
        sizes = lengths.sort_values(ascending=False, kind="stable")
        if booked is not None:
            found += gap_intervals(booked, sizes)
        if booked is not None and work in facts:
            found += next_kernels(facts, gaps.loc[sizes.index[:LARGEST], "next"])
        if STEP_TRACE in facts and len(facts[STEP_TRACE]):
            columns = ("step", "computing_ns", "uncovered_communication_ns", "free_ns", "stage_ns")
            rows_of = np.arange(len(facts[STEP_TRACE]))
            found.append(Rows(message("common.exporter_totals"), STEP_TRACE, rows_of, columns))
        return found

    return Observations(frame, evidence)
