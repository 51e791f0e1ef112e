"""Kernels and steps that replay a captured graph."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api.facts import (
    HOST_EVENTS,
    KERNELS,
    PROFILE,
    Facts,
    Layer,
    Unavailable,
    aggregated,
    launches,
    matching,
    steps,
    work,
)
from advisors.messages import message

MOSTLY: Final = 0.9
"""A step replays where so many of its kernels belong to a graph, and runs eagerly where at most the rest of them do;
our choice: what prepares the inputs and samples stays outside of a graph, pieces of one leave attention outside."""


def replayed(facts: Facts) -> np.ndarray | None:
    """Mask of the rows of ``work`` that belong to a graph: by the id of their model, or by the call that launched
    them; None where neither is recorded."""
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


def require_replayed(facts: Facts) -> np.ndarray:
    """As `replayed`; raises `Unavailable` where it is not known."""
    chosen = replayed(facts)
    if chosen is None:
        raise Unavailable(message("host_dispatch.no_cann"), message("host_dispatch.no_cann.collect"), ("host",))
    return chosen


def step_of_tasks(facts: Facts) -> np.ndarray:
    """Of each row of ``work`` the number of the step in which it starts, from 0; -1 outside of all."""
    return Layer.of(facts[steps]).at(facts[work]["start_ns"].to_numpy())


def by_step(facts: Facts, chosen: np.ndarray) -> pd.DataFrame:
    """Per step: ``step``, ``wall_ns``, ``busy_ns`` (its computing kernels), ``replayed`` (share of their number)."""
    windows, device, step = facts[steps], facts[work], step_of_tasks(facts)
    inside = (step >= 0) & ~device["communication"].to_numpy()
    lengths = (device["end_ns"] - device["start_ns"]).to_numpy()
    counted = pd.DataFrame({"row": step[inside], "ns": lengths[inside], "replayed": chosen[inside]})
    sums = aggregated(counted, "row", busy_ns=("ns", "sum"), replayed=("replayed", "mean"))
    sums = sums.set_index("row").reindex(range(len(windows)))
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
