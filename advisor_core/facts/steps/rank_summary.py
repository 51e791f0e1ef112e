"""Per-step totals of one rank, for the advisors that compare ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.doubt import DOUBT
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import STEP_TRACE
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.steps.timeline import timeline

COLUMNS = (
    Column("step", "int", "", "step id, -1 anonymous"),
    Column("wall_ns", "int", "ns", "wall time: computing, uncovered and idle add up to it"),
    Column("computing_ns", "int", "ns", "the device computes"),
    Column("overlapped_ns", "int", "ns", "communication under computing"),
    Column("uncovered_ns", "int", "ns", "communication that no computing covers"),
    Column("idle_ns", "int", "ns", "neither"),
    Column(
        "receiving_ns",
        "int",
        "ns",
        "of uncovered_ns: in receives of a pipeline, by the exporter's Bubble; 0 where the parts are derived from the "
        "device",
    ),
    Column("source", "text", "", "device, or exporter where only its sums tell the parts"),
)

EXPORTER = "exporter"
"""The source of totals that are not derived from device tasks: the exporter's own summary of each step, or that of a
cluster analysis."""


@fact("rank_summary", needs=(PROFILE,), wants=(steps, timeline, STEP_TRACE, DOUBT), shared=True, columns=COLUMNS)
def rank_summary(facts: Facts) -> pd.DataFrame:
    """Per step: what of it the device computes, communicates and is idle.

    Where the device tasks are withheld, or where nothing but sums is recorded of the rank, the summary of the exporter
    tells the parts.
    """
    summed = facts[PROFILE].coarse or facts[DOUBT].withheld
    if timeline not in facts and STEP_TRACE in facts and summed:
        return _exported(facts)
    totals: pd.DataFrame = facts[timeline].totals()
    totals.insert(0, "step", facts[steps]["step"].to_numpy())
    return totals.assign(receiving_ns=0, source="device")


def _exported(facts: Facts) -> pd.DataFrame:
    """The parts of each step as the exporter sums them up."""
    parts = {
        "computing_ns": "computing_ns",
        "overlapped_ns": "overlapped_ns",
        "uncovered_ns": "uncovered_communication_ns",
        "idle_ns": "free_ns",
    }
    table = facts[STEP_TRACE]
    step = table["step"].to_numpy()
    sums = {name: table[column].to_numpy(dtype=np.float64) for name, column in parts.items()}
    wanted = facts[PROFILE].selected_step
    chosen = np.isfinite(list(sums.values())).all(axis=0)
    if wanted is not None:
        chosen &= step == wanted
    elif (left_out := facts[PROFILE].left_out_step) is not None:
        chosen &= step != left_out
    if not chosen.any():
        facts[timeline]  # raises why there is nothing
    whole = {name: np.rint(values[chosen]).astype(np.int64) for name, values in sums.items()}
    wall = whole["computing_ns"] + whole["uncovered_ns"] + whole["idle_ns"]
    # The exporter takes its Bubble out of what is not covered ("Communication(Not Overlapped and Exclude Receive)").
    bubble = np.rint(np.nan_to_num(table["bubble_ns"].to_numpy(dtype=np.float64)[chosen])).astype(np.int64)
    receiving = np.clip(bubble, 0, whole["uncovered_ns"])
    return pd.DataFrame({"step": step[chosen], "wall_ns": wall, **whole, "receiving_ns": receiving, "source": EXPORTER})
