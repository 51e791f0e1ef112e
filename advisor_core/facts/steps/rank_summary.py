"""Per-step totals of one rank, for the advisors that compare ranks."""

from __future__ import annotations

import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.steps.timeline import timeline

COLUMNS = (
    Column("step", "int", "", "step id, -1 anonymous"),
    Column("wall_ns", "int", "ns", "wall time: computing, uncovered and idle add up to it"),
    Column("computing_ns", "int", "ns", "the device computes"),
    Column("overlapped_ns", "int", "ns", "communication under computing"),
    Column("uncovered_ns", "int", "ns", "communication that no computing covers"),
    Column("idle_ns", "int", "ns", "neither"),
)


@fact("rank_summary", needs=(steps, timeline), shared=True, columns=COLUMNS)
def rank_summary(facts: Facts) -> pd.DataFrame:
    """Per step: what of it the device computes, communicates and is idle."""
    totals: pd.DataFrame = facts[timeline].totals()
    totals.insert(0, "step", facts[steps]["step"].to_numpy())
    return totals
