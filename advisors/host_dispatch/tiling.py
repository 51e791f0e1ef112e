"""HD019: tilings that the host computes again because shapes change."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    KERNELS,
    PROFILE,
    Facts,
    host_activity,
    launches,
    matching,
    parts,
    replay,
    steps,
)
from advisors.columns import STEP_NS
from advisors.host_dispatch.activity import require_runtime_calls
from advisors.host_dispatch.savings import SAVED, layer_of, saving_by_replay, without_calls
from advisors.measuring import host_rows, records, row, step_count, step_ns
from advisors.messages import message
from advisors.shape_changes import computing, parts_of, varying_share

_TILING = re.compile(r"_Tiling$")
"""Calls of CANN that work out how a kernel divides its data: ``AscendCL@Add_Tiling``. One that the cache of the
single-operator API knows is not worked out again."""

TYPES = 10
"""Operator types that are shown as evidence, those with most shapes."""


@advisor(
    "host_dispatch.tiling",
    needs=(steps, HOST_EVENTS, launches, host_activity, replay, PROFILE),
    wants=(KERNELS, parts),
    columns=(
        STEP_NS,
        *SAVED,
        Column(
            "calls",
            "float",
            "count",
            "tilings that the host computes outside of calls that compile, per step",
            zh="次数",
        ),
        Column("total_ns", "float", "ns", "time of the host in them, per step", zh="合计"),
        Column(
            "varying_share",
            "float",
            "ratio",
            "of the kernels: their type with these shapes is not in every step; unknown of one step or without shapes",
            zh="shape 变化占比",
        ),
        Column(
            "dynamic_share",
            "float",
            "ratio",
            "of the kernels with a recorded state: compiled for shapes that are known at launch only",
            zh="动态 shape 占比",
        ),
        Column("shapes", "float", "count", "distinct shapes of the operator type with most of them", zh="shape 种类数"),
        Column("operator", "text", "", "the operator type with most distinct shapes", zh="算子"),
    ),
    evidence=(
        Column("call", "text", "", "name of the call", zh="调用"),
        Column("count", "int", "count", "calls or kernels of all steps", zh="数量"),
        Column("total", "int", "ns", "time in them", zh="合计"),
        Column("distinct", "int", "count", "different shapes of its inputs", zh="不同 shape 数"),
    ),
)
def tiling(facts: Facts, params: Params) -> Observations:
    """Tilings that the host computes in the steps, and how much the shapes of the kernels change.

    Those inside a call that compiles are part of that call, of which another measurement speaks."""
    require_runtime_calls(facts)
    events, windows, skew = facts[HOST_EVENTS], facts[steps], facts[launches].skew_ns
    start, is_call = events["start_ns"].to_numpy() - skew, (events["category"] == "runtime").to_numpy()
    inside = (start >= windows["start_ns"].min()) & (start < windows["end_ns"].max())
    compiling = np.flatnonzero(is_call & matching(events["name"], facts[PROFILE].vocabulary.calls["compile"]))
    outside = layer_of(events, compiling, skew).at(start) < 0
    rows = np.flatnonzero(is_call & matching(events["name"], _TILING) & inside & outside)
    host = facts[host_activity]
    dispatching = np.isin(events["thread"].to_numpy()[rows], list(host.feeders | host.launchers))
    change = without_calls(events, rows[dispatching], host, skew)
    length, wall, count = events["duration_ns"].to_numpy()[rows], step_ns(facts), step_count(facts)
    kernels = computing(facts[KERNELS] if KERNELS in facts else KERNELS.empty(), windows)
    types = _shapes_by_type(kernels)
    frame = row(
        step_ns=wall,
        **saving_by_replay(facts[replay], wall, change),
        calls=len(rows) / count,
        total_ns=float(length.sum()) / count,
        varying_share=varying_share(kernels, count, parts_of(facts, kernels)),
        dynamic_share=_dynamic_share(kernels),
        shapes=float(types["distinct"].iloc[0]) if len(types) else np.nan,
        operator=types["operator"].iloc[0] if len(types) else None,
    )

    def evidence(number: int) -> Sequence[Reference]:
        found = host_rows("host_dispatch.tiling_calls", rows[np.argsort(-length, kind="stable")])
        names = events["name"].iloc[rows].astype(str).to_numpy()
        sums = pd.DataFrame({"name": names, "ns": length}).groupby("name")["ns"].agg(["size", "sum"])
        sums = sums.sort_values("sum", ascending=False, kind="stable").reset_index()
        tilings = records(sums, call="name", count="size", total="sum")
        metrics = [(message("host_dispatch.tilings"), tilings)]
        shapes = records(types, TYPES, operator="operator", distinct="distinct", count="kernels")
        metrics.append((message("host_dispatch.shapes"), shapes))
        return [*found, *(Metric(title, lines) for title, lines in metrics if lines)]

    return Observations(frame, evidence, cure=lambda number: change)


def _shapes_by_type(kernels: pd.DataFrame) -> pd.DataFrame:
    """``operator``, ``distinct`` shapes and ``kernels`` of each type, most shapes first; empty without shapes."""
    shaped = kernels[(kernels["input_shapes"] != "") & (kernels["type"] != "")]
    by_type = shaped.groupby(shaped["type"].astype(str))["input_shapes"]
    found = by_type.agg(distinct="nunique", kernels="size").rename_axis("operator").reset_index()
    return found.sort_values(["distinct", "operator"], ascending=[False, True], kind="stable")


def _dynamic_share(kernels: pd.DataFrame) -> float:
    state = kernels["op_state"].astype(str).str.lower()
    told = state.isin(["dynamic", "static"])
    return float((state[told] == "dynamic").mean()) if told.any() else float("nan")
