"""CO004: operations that take far longer than others of the same kind, group and size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Interval, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    KERNELS,
    Facts,
    Groups,
    Merging,
    NotApplicable,
    collective_calls,
    collective_state,
    steps,
)
from advisors.columns import STEP_NS
from advisors.communication.calls import ELAPSE, ONE_CALL, call_rows, divides_or_sums, moving_calls, shorter
from advisors.measuring import DEVICE_LANE, LARGEST, records, step_count, step_ns
from advisors.messages import message


@advisor(
    "communication.outliers",
    needs=(steps, collective_calls, collective_state),
    wants=(KERNELS, COLLECTIVES),
    params=("min_samples",),
    about=ONE_CALL,
    columns=(
        STEP_NS,
        Column("operation", "text", "", "kind of operation", zh="通信算子"),
        Column("divides_or_sums", "bool", "", "it is an AllReduce, ReduceScatter or AllGather", zh="归约或收集"),
        Column("active_ns", "float", "ns", "its time without waiting", zh="活跃时间"),
        Column("median_ns", "float", "ns", "median over operations of the same kind, group and size", zh="中位数"),
        Column("spread_ns", "float", "ns", "median absolute deviation of those, times 1.4826", zh="离散"),
        Column("ratio", "float", "ratio", "active_ns over median_ns", zh="比值"),
        Column("samples", "int", "count", "operations of the same kind, group and size", zh="样本数"),
        Column("excess_ns", "float", "ns", "uncovered time that it took more than the median, per step", zh="多出"),
        Column("excess_share", "float", "ratio", "excess_ns over wall time", zh="多出占比"),
    ),
    evidence=(
        Column("active", "float", "ns", "part of it in which it moves data", zh="活跃时间"),
        ELAPSE,
    ),
)
def outliers(facts: Facts, params: Params) -> Observations:
    """Operations that move data for far longer than others of the same kind, group and size.

    An operation that takes long may have waited: only those count whose tasks tell moving from waiting."""
    calls, steps, wall = moving_calls(facts), step_count(facts), step_ns(facts)
    kinds = Groups(calls, ("operation", "group", "bytes"))
    calls["samples"] = kinds.sizes[kinds.codes]
    calls["median_ns"] = kinds.of("active_ns", "median")[kinds.codes]
    calls["distance_ns"] = (calls["active_ns"] - calls["median_ns"]).abs()
    calls["spread_ns"] = kinds.of("distance_ns", "median")[kinds.codes]
    calls = calls[(calls["samples"] >= params["min_samples"]) & (calls["bytes"] >= 0)].reset_index(drop=True)
    if calls.empty:
        raise NotApplicable(message("communication.few_samples", samples=params["min_samples"]))
    longer = np.minimum(np.maximum(calls["active_ns"] - calls["median_ns"], 0), calls["uncovered_ns"])
    excess = longer / steps
    frame = pd.DataFrame(
        {
            "name": calls["name"],
            "step_number": calls["step"],
            "step_ns": wall,
            "operation": calls["operation"],
            "divides_or_sums": divides_or_sums(calls["operation"].astype(str)),
            "active_ns": calls["active_ns"],
            "median_ns": calls["median_ns"],
            "spread_ns": calls["spread_ns"] * 1.4826,
            "ratio": calls["active_ns"] / calls["median_ns"].where(calls["median_ns"] > 0),
            "samples": calls["samples"],
            "excess_ns": excess,
            "excess_share": excess / wall,
        }
    )

    def evidence(number: int) -> Sequence[Reference]:
        call = calls.iloc[number]
        alike = calls[
            (calls["operation"] == call["operation"])
            & (calls["group"] == call["group"])
            & (calls["bytes"] == call["bytes"])
        ].sort_values("active_ns", ascending=False, kind="stable")
        rows = records(alike, LARGEST, operation="name", active="active_ns", elapse="elapse_ns")
        return [
            Interval(message("communication.outlier"), int(call["start_ns"]), int(call["end_ns"]), DEVICE_LANE),
            Metric(message("communication.outlier_peers"), rows),
            *call_rows(facts, calls.iloc[[number]]),
        ]

    def cure(number: int) -> Merging:
        return shorter(calls.iloc[[number]], longer.iloc[[number]])

    return Observations(frame, evidence, cure=cure)
