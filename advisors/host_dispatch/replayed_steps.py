"""HD015: steps that replay a captured graph beside steps that do the same work eagerly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    KERNELS,
    PROFILE,
    Facts,
    NotApplicable,
    Unavailable,
    launches,
    matching,
    steps,
    work,
)
from advisors.grouping import aggregated
from advisors.measuring import records, row, share
from advisors.messages import message

MOSTLY: Final = 0.9
"""A step replays where so many of its kernels belong to a graph, and runs eagerly where at most the rest of them do;
our choice: what prepares the inputs and samples stays outside of a graph, pieces of one leave attention outside."""

SAME_WORK: Final = 1.5
"""Two steps do the same work where the kernels of neither take longer than those of the other by more than this; our
choice: a prefill takes many times as long as a decode step, neighbouring batch sizes take nearly the same."""

_LISTED = 10


def replayed(facts: Facts) -> np.ndarray | None:
    """Which rows of ``work`` belong to a graph: by the id of their model, or by the call that launched them; None where
    neither is recorded."""
    device, words = facts[work], facts[PROFILE].vocabulary
    found = np.zeros(len(device), bool)
    known = False
    kernels = facts.get(KERNELS)
    if kernels is not None and (device["table"] == KERNELS.name).all() and (kernels["model"] >= 0).any():
        found |= kernels["model"].to_numpy()[device["row"].to_numpy()] >= 0
        known = True
    launched, events = facts.get(launches), facts.get(HOST_EVENTS)
    if launched is not None:
        known = True
        frame = launched.frame
        found |= frame["siblings"].to_numpy() > words.graph_siblings
        if events is not None:
            calls = matching(events["name"], words.graph_replay)
            rows = frame["call_row"].to_numpy()
            found |= (rows >= 0) & calls[np.maximum(rows, 0)]
    return found if known else None


def by_step(facts: Facts, chosen: np.ndarray) -> pd.DataFrame:
    """Per step: ``step``, ``wall_ns``, ``busy_ns`` (its computing kernels), ``replayed`` (share of their number)."""
    windows, device = facts[steps], facts[work]
    place = np.searchsorted(windows["start_ns"].to_numpy(), device["start_ns"].to_numpy(), side="right") - 1
    inside = (place >= 0) & (device["start_ns"].to_numpy() < windows["end_ns"].to_numpy()[np.maximum(place, 0)])
    inside &= ~device["communication"].to_numpy()
    lengths = (device["end_ns"] - device["start_ns"]).to_numpy()
    counted = pd.DataFrame({"row": place[inside], "ns": lengths[inside], "replayed": chosen[inside]}).groupby("row")
    sums = aggregated(counted, busy_ns=("ns", "sum"), replayed=("replayed", "mean")).reindex(range(len(windows)))
    return pd.DataFrame(
        {
            "step": windows["step"].to_numpy(),
            "wall_ns": (windows["end_ns"] - windows["start_ns"]).to_numpy(),
            "busy_ns": sums["busy_ns"].fillna(0).to_numpy(),
            "replayed": sums["replayed"].fillna(0.0).to_numpy(),
        }
    )


def replay_mode(facts: Facts) -> str:
    """``whole`` (every step is replayed), ``some_steps`` (some are, others run eagerly), ``pieces`` (parts of steps
    are), ``none`` or ``unknown``."""
    chosen = replayed(facts)
    if chosen is None:
        return "unknown"
    shares = by_step(facts, chosen)["replayed"]
    if not (shares > 0).any():
        return "none"
    if (shares >= MOSTLY).all():
        return "whole"
    return "some_steps" if (shares >= MOSTLY).any() and (shares <= 1 - MOSTLY).any() else "pieces"


@advisor(
    "host_dispatch.replayed_steps",
    needs=(steps, work, PROFILE),
    wants=(KERNELS, launches, HOST_EVENTS),
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
    chosen = replayed(facts)
    if chosen is None:
        raise Unavailable(message("host_dispatch.no_cann"), message("host_dispatch.no_cann.collect"), ("host",))
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

    return Observations(frame, evidence)
