"""The part of a rank in the picture of ranks side by side: one step over time, and its passes over a stage."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.steps.stage_passes import passes
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from advisor_core.run.step_views import intervals_of

COLUMNS = 240
"""Parts of the step of which each shows what took most of it: about 3 pixels of a page. Our choice."""


@dataclass(frozen=True)
class StepLane:
    """``start_ns`` and ``end_ns``: of the rank's own clock; ``intervals`` from the start; ``passes``: rows of the fact
    of this step, ``None`` where they are not known."""

    step: int
    start_ns: int
    end_ns: int
    intervals: list[tuple[int, int, str]]
    passes: pd.DataFrame | None


def step_lane(store: FactStore, step: int | None) -> StepLane | None:
    """``step``: id; ``None`` where the rank does not have it, or its ledger is not known."""
    windows, booked = store.get(steps), store.get(bookings)
    if step is None or windows is None or booked is None:
        return None
    rows = [row for row, own in enumerate(windows["step"].tolist()) if own == step]
    if not rows:
        return None
    start, end = (int(windows[name].iloc[rows[0]]) for name in ("start_ns", "end_ns"))
    pieces = booked.pieces[booked.pieces["step"] == rows[0]]
    found = store.get(passes)
    own = None if found is None else found[found["step"] == rows[0]]
    return StepLane(step, start, end, intervals_of(pieces, start, end, COLUMNS), own)
