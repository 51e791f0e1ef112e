"""What a recording begins with, and recordings that are no loop: what must not be counted against a steady step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Advisor, Column, Interval, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import KERNELS, Facts, kernel_list, row_refs, start_up, work
from advisors.measuring import DEVICE_LANE, row, share
from advisors.messages import message


@advisor(
    "capture.start_up",
    needs=(start_up, work),
    wants=(KERNELS,),
    columns=(
        Column("collective", "text", "", "the first collective of the recording", zh="集合通信"),
        Column("wait_ns", "int", "ns", "how long it took", zh="等待"),
        Column("times_longer", "float", "ratio", "wait_ns over the longest other collective", zh="相对其余最长者"),
        Column(
            "usual_ns", "float", "ns", "median of the others of its kind, unknown where there are none", zh="常规耗时"
        ),
        Column("longest_other_ns", "int", "ns", "the longest other collective", zh="其余最长者"),
        Column(
            "seen_again",
            "bool",
            "",
            "later steps were recorded, in which no collective takes as long",
            zh="有后续 step",
        ),
    ),
)
def waiting_to_start(facts: Facts, params: Params) -> Observations:
    """A wait for other ranks to start, with which the recording begins."""
    found = facts[start_up]
    frame = row(
        collective=found.name,
        wait_ns=found.wait_ns,
        times_longer=share(found.wait_ns, found.longest_other_ns),
        usual_ns=float(found.usual_ns) if found.usual_ns >= 0 else np.nan,
        longest_other_ns=found.longest_other_ns,
        seen_again=found.seen_again,
    )

    def evidence(number: int) -> Sequence[Reference]:
        columns = ("name", "start_ns", "duration_ns")
        return [
            Interval(message("capture_start.wait"), found.start_ns, found.end_ns, DEVICE_LANE),
            *(
                Rows(message("capture_start.collective"), where.table, where.rows, columns)
                for where in row_refs(facts[work].iloc[[found.collective]])
            ),
        ]

    return Observations(frame, evidence)


@advisor(
    "capture.launches",
    needs=(kernel_list, work),
    columns=(
        Column("operator", "text", "", "the kind of kernel that takes most of the time", zh="算子"),
        Column("launches", "int", "count", "launches, or stretches without a hole, in the recording", zh="下发次数"),
        Column("first_ns", "int", "ns", "kernel time of the first launch", zh="首次启动"),
        Column("steady_ns", "int", "ns", "kernel time of the other launches, median", zh="稳定启动"),
        Column("cold_ratio", "float", "ratio", "first_ns over steady_ns", zh="冷启动倍数"),
        Column(
            "holes",
            "bool",
            "",
            "rows are missing between others: the stretches are no launches of one operator",
            zh="有缺失行",
        ),
    ),
)
def launches(facts: Facts, params: Params) -> Observations:
    """How long the launches of a benchmark take, the first apart from the others."""
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
        shown = [{"launch": n, "time": int(time)} for n, time in enumerate(times[:_LISTED].tolist())]
        return [Metric(message("capture_start.launches"), shown, {"time": "ns"})]

    return Observations(frame, evidence)


_LISTED = 10

ADVISORS: tuple[Advisor, ...] = (waiting_to_start, launches)
