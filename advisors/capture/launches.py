"""DQ018: recordings that are no loop, such as benchmarks of one operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import Facts, kernel_list, work
from advisors.columns import TIME
from advisors.measuring import row, share
from advisors.messages import message


@advisor(
    "capture.launches",
    needs=(kernel_list, work),
    columns=(
        Column("operator", "text", "", "the kind of kernel that takes most of the time", zh="算子"),
        Column("launches", "int", "count", "calls, or stretches between holes, in the recording", zh="下发次数"),
        Column("first_ns", "int", "ns", "kernel time of the first launch", zh="首次耗时"),
        Column("steady_ns", "int", "ns", "kernel time of the other launches, median", zh="稳定耗时"),
        Column("cold_ratio", "float", "ratio", "first_ns over steady_ns", zh="冷启动倍数"),
        Column(
            "holes",
            "bool",
            "",
            "rows are missing between others: the stretches are no launches of one operator",
            zh="有缺失行",
        ),
    ),
    evidence=(
        Column("nth", "int", "", "number of the call or stretch, from 0", zh="序号"),
        TIME,
    ),
)
def launches(facts: Facts, params: Params) -> Observations:
    """Duration of the launches of a benchmark, the first apart from the others."""
    found, device = facts[kernel_list], facts[work]
    owner = np.searchsorted(found.starts, device["start_ns"].to_numpy(), side="right") - 1
    lengths = (device["end_ns"] - device["start_ns"]).to_numpy()
    times = np.bincount(owner, weights=lengths, minlength=len(found.starts)).astype(np.int64)
    kinds = device["type"].astype(str).where(device["type"] != "", device["name"].astype(str))
    by_kind = (device["end_ns"] - device["start_ns"]).groupby(kinds).sum().sort_values(ascending=False, kind="stable")
    steady = int(np.median(times[1:]))
    frame = row(
        operator=str(by_kind.index[0]),
        launches=len(times),
        first_ns=int(times[0]),
        steady_ns=steady,
        cold_ratio=share(float(times[0]), float(steady)),
        holes=found.why == "holes",
    )

    def evidence(number: int) -> Sequence[Reference]:
        shown = [{"nth": n, "time": int(time)} for n, time in enumerate(times[:_LISTED].tolist())]
        return [Metric(message("capture.launches"), shown)]

    return Observations(frame, evidence)


_LISTED = 10
