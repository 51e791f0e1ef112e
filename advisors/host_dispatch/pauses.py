"""HD014: rare long pauses of the host in which nothing is recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Interval, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    PROFILE,
    Facts,
    HostChange,
    bookings,
    host_activity,
    host_pauses,
    launches,
    paused,
    replay,
    steps,
    work,
)
from advisors.columns import STEP_NS
from advisors.host_dispatch.savings import SAVED, saving_by_replay
from advisors.measuring import HOST_LANE, LARGEST, host_rows, records, row, step_count, step_ns
from advisors.messages import message


@advisor(
    "host_dispatch.pauses",
    needs=(steps, work, launches, bookings, HOST_EVENTS, host_activity, host_pauses, PROFILE, replay),
    columns=(
        STEP_NS,
        *SAVED,
        Column("pauses", "int", "count", "rare long pauses in the profiled steps", zh="停顿次数"),
        Column("total_ns", "float", "ns", "time in these pauses, per step", zh="合计"),
        Column("longest_ns", "float", "ns", "longest pause", zh="最长"),
        Column("usual_ns", "float", "ns", "what the passage of the longest pause takes as a rule", zh="常规耗时"),
        Column("gc_recorded", "bool", "", "collections of Python's garbage are in the profile", zh="已记录垃圾回收"),
    ),
    evidence=(
        Column("pause", "int", "ns", "how long nothing is recorded", zh="停顿"),
        Column("usual", "int", "ns", "what the same passage takes as a rule", zh="常规耗时"),
        Column("occurrences", "int", "count", "how often the passage was recorded", zh="出现次数"),
    ),
)
def pauses(facts: Facts, params: Params) -> Observations:
    """Rare long pauses of the host in which nothing is recorded."""
    windows, count, wall = facts[steps], step_count(facts), step_ns(facts)
    found = facts[host_pauses]
    inside = (found["start_ns"] < windows["end_ns"].max()) & (found["end_ns"] > windows["start_ns"].min())
    found = found[inside].assign(ns=found["end_ns"] - found["start_ns"])
    longest = found.sort_values("ns", ascending=False, kind="stable")
    recorded = facts[PROFILE].profiler.get("gc_detect_threshold") is not None
    frame = row(
        step_ns=wall,
        **saving_by_replay(facts[replay].once(), wall, HostChange(paused(found))),
        pauses=len(found),
        total_ns=float(found["ns"].sum()) / count,
        longest_ns=float(found["ns"].max()) if len(found) else 0.0,
        usual_ns=float(longest["usual_ns"].iloc[0]) if len(found) else np.nan,
        gc_recorded=recorded or bool((facts[HOST_EVENTS]["category"] == "gc").any()),
    )

    def evidence(number: int) -> Sequence[Reference]:
        table = records(longest, pause="ns", usual="usual_ns", occurrences="occurrences")
        shown = longest.head(LARGEST)
        intervals = [
            Interval(message("host_dispatch.pause"), int(start), int(end), HOST_LANE)
            for start, end in zip(shown["start_ns"], shown["end_ns"], strict=True)
        ]
        return [
            Metric(message("host_dispatch.pauses"), table),
            *host_rows("host_dispatch.before_pauses", shown["before"]),
            *host_rows("host_dispatch.after_pauses", shown["after"]),
            *intervals,
        ]

    return Observations(frame, evidence, cure=lambda number: HostChange(paused(found)))
