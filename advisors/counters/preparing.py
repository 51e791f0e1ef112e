"""Nodes that prepare data on the AI CPU, and the stage of each that takes the time."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import AI_CPU_NODES, PROFILE, Facts
from advisor_core.api.renderers import Cell, View
from advisors.messages import message
from advisors.rank_tables import known, rank_table

SHOWN: Final = 20
"""Nodes of the table, those with most time; its title says of how many."""

_NODES: Final = (
    ("counters.column.node", ""),
    ("counters.column.count", ""),
    ("counters.column.total", "ns"),
    ("counters.column.average", "ns"),
    ("counters.column.dispatching", "ns"),
    ("counters.column.scheduling", "ns"),
    ("counters.column.setting_up", "ns"),
    ("counters.column.computing", "ns"),
    ("counters.column.copying", "ns"),
    ("counters.column.largest", ""),
    ("counters.column.of_total", "ratio"),
)
_STAGES: Final = {
    "dispatching": "counters.stage.dispatching",
    "scheduling": "counters.stage.scheduling",
    "setting_up": "counters.stage.setting_up",
    "computing": "counters.stage.computing",
    "copying": "counters.stage.copying",
}
"""Stage to its name in words."""


@drawing("counters.preparing", needs=(AI_CPU_NODES, PROFILE))
def preparing(facts: Facts) -> list[View]:
    """Nodes that prepare data on the AI CPU over the recording, by what their time goes to: being handed to a thread,
    waiting to be scheduled, preparing the operator, computing, copying.

    Source: docs/sources.md#data-preparation-on-the-ai-cpu. The total of a node holds handing over, scheduling and
    running, and running holds preparing, computing and copying: what the others leave is scheduling, and preparing.
    """
    table, rank = facts[AI_CPU_NODES], facts[PROFILE].rank
    stages = pd.DataFrame(
        {
            "dispatching": table["dispatch_ns"],
            "scheduling": (table["total_ns"] - table["dispatch_ns"] - table["run_ns"]).clip(lower=0),
            "setting_up": (table["run_ns"] - table["compute_ns"] - table["copy_ns"]).clip(lower=0),
            "computing": table["compute_ns"],
            "copying": table["copy_ns"],
        }
    )
    grouped = stages.assign(total=table["total_ns"]).groupby(table["name"].astype(str), sort=True)
    # A stage that some runs of a node do not tell is not known of the node.
    sums = grouped.sum(min_count=1).where(grouped.count().eq(grouped.size(), axis=0))
    sums = sums.assign(count=grouped.size()).sort_values("total", ascending=False, kind="stable")
    rows: list[list[Cell]] = []
    for name, node in sums.head(SHOWN).iterrows():
        total, count = float(node["total"]), int(node["count"])
        times = {stage: float(node[stage]) for stage in _STAGES}
        told = {stage: ns for stage, ns in times.items() if np.isfinite(ns)}
        largest = max(told, key=lambda stage: told[stage]) if total and told else None
        named: Cell = message(_STAGES[largest]) if largest else None
        share = told[largest] / total if largest else None
        rows.append([str(name), count, total, total / count, *map(known, times.values()), named, share])
    title = message("counters.view.preparing", rank=rank, shown=len(rows), count=len(sums))
    return [rank_table("preparing", title, rank, _NODES, rows)] if rows else []


DRAWINGS: tuple[Drawing, ...] = (preparing,)
