"""HD015: steps that replay a captured graph beside steps that do the same work eagerly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    KERNELS,
    PROFILE,
    Facts,
    NotApplicable,
    host_activity,
    launches,
    replay,
    steps,
    work,
)
from advisors.host_dispatch.capture import captured_steps
from advisors.host_dispatch.graph_steps import MOSTLY, by_step, require_replayed
from advisors.measuring import records, row, share
from advisors.messages import message

SAME_WORK: Final = 1.5
"""Two steps do the same work where the kernels of neither take longer than those of the other by more than this; our
choice: a prefill takes many times as long as a decode step, neighbouring batch sizes take nearly the same."""

_LISTED = 10


@advisor(
    "host_dispatch.replayed_steps",
    needs=(steps, work, PROFILE),
    wants=(KERNELS, launches, HOST_EVENTS, host_activity, replay),
    columns=(
        Column("replayed_steps", "int", "count", "steps that replay a graph", zh="重放的 step 数"),
        Column("eager_steps", "int", "count", "steps that do the same work without one", zh="单算子 step 数"),
        Column("replayed_ns", "float", "ns", "mean wall time of the former", zh="重放的 step"),
        Column("eager_ns", "float", "ns", "mean wall time of the latter", zh="单算子 step"),
        Column("eager_ratio", "float", "ratio", "eager_ns over replayed_ns", zh="耗时之比"),
        Column("saved_ns", "float", "ns", "what all steps gain at the mean if the latter were replayed", zh="节省"),
        Column("saved_share", "float", "ratio", "saved_ns over the mean wall time of a step", zh="节省占比"),
    ),
    evidence=(
        Column("step", "int", "", "number of the step", zh="step"),
        Column("wall", "int", "ns", "its wall time", zh="墙钟时间"),
        Column("device_busy", "int", "ns", "time with kernels or collectives", zh="device 忙碌"),
        Column("replayed_share", "float", "ratio", "share of this time in replayed graphs", zh="重放占比"),
    ),
)
def replayed_steps(facts: Facts, params: Params) -> Observations:
    """Steps that replay a captured graph beside steps that do the same work eagerly."""
    chosen = require_replayed(facts)
    table = by_step(facts, chosen)
    graph = table[table["replayed"] >= MOSTLY]
    eager = table[table["replayed"] <= 1 - MOSTLY]
    usual = float(graph["busy_ns"].median()) if len(graph) else 0.0
    eager = eager[(eager["busy_ns"] <= SAME_WORK * usual) & (usual <= SAME_WORK * eager["busy_ns"])]
    if graph.empty or eager.empty:
        raise NotApplicable(message("host_dispatch.one_mode"))
    replayed_ns, eager_ns = float(graph["wall_ns"].mean()), float(eager["wall_ns"].mean())
    saved = max(eager_ns - replayed_ns, 0.0) * len(eager) / len(table)
    frame = row(
        replayed_steps=len(graph),
        eager_steps=len(eager),
        replayed_ns=replayed_ns,
        eager_ns=eager_ns,
        eager_ratio=share(eager_ns, replayed_ns),
        saved_ns=saved,
        saved_share=share(saved, float(table["wall_ns"].mean())),
    )

    def evidence(number: int) -> Sequence[Reference]:
        both = pd.concat([eager.head(_LISTED // 2), graph.head(_LISTED // 2)]).sort_index()
        rows = records(both, step="step", wall="wall_ns", device_busy="busy_ns", replayed_share="replayed")
        return [Metric(message("host_dispatch.modes"), rows)]

    return Observations(frame, evidence, cure=lambda number: captured_steps(facts, chosen, eager.index.to_numpy()))
