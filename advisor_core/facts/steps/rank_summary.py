"""Per-step totals of one rank, for the advisors that compare ranks."""

from __future__ import annotations

import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.steps.timeline import timeline


@fact("rank_summary", needs=(steps, timeline), shared=True)
def rank_summary(facts: Facts) -> pd.DataFrame:
    """Per step: ``step`` (id, -1 anonymous), ``wall_ns``, ``computing_ns``, ``overlapped_ns``, ``uncovered_ns``,
    ``idle_ns``; computing + uncovered + idle = wall."""
    totals: pd.DataFrame = facts[timeline].totals()
    totals.insert(0, "step", facts[steps]["step"].to_numpy())
    return totals
