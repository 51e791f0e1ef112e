"""The device timeline: computing, communicating, idle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.facts.device.work import work
from advisor_core.facts.intervals import Layer, complement, cut, earliest_start_wins, union
from advisor_core.facts.steps.steps import steps


@dataclass(frozen=True)
class Timeline:
    """The window of the profiled steps and what covers it.

    ``steps``: ids are row numbers of the fact ``steps``. ``computing`` and ``communication``: unions.
    ``busy``: their union. ``gaps``: the rest, numbered. ``collectives``: communication, disjoint, ids are row numbers
    of the fact ``work``; where two collectives overlap the one that started first keeps the time.
    """

    start_ns: int
    end_ns: int
    steps: Layer
    computing: Layer
    communication: Layer
    busy: Layer
    gaps: Layer
    collectives: Layer

    def totals(self) -> pd.DataFrame:
        """Per step (row of ``steps``): ``wall_ns``, ``computing_ns``, ``overlapped_ns``, ``uncovered_ns`` and
        ``idle_ns``; computing + uncovered + idle = wall."""
        pieces = cut(self.start_ns, self.end_ns, [self.steps, self.computing, self.communication])
        step, computing, communicating = pieces.ids
        count = len(self.steps)

        def total(where: np.ndarray) -> np.ndarray:
            return np.bincount(step[where], weights=pieces.lengths[where], minlength=count).astype(np.int64)

        inside, compute, communicate = step >= 0, computing >= 0, communicating >= 0
        return pd.DataFrame(
            {
                "wall_ns": total(inside),
                "computing_ns": total(inside & compute),
                "overlapped_ns": total(inside & compute & communicate),
                "uncovered_ns": total(inside & ~compute & communicate),
                "idle_ns": total(inside & ~compute & ~communicate),
            }
        )


@fact("timeline", needs=(work, steps))
def timeline(facts: Facts) -> Timeline:
    """Disjoint intervals of the device: computing, communication, idle."""
    device, windows = facts[work], facts[steps]
    start, end = int(windows["start_ns"].min()), int(windows["end_ns"].max())
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    talks = device["communication"].to_numpy()
    busy = union(starts, ends).clip(start, end)
    chosen = np.flatnonzero(talks)
    pieces = earliest_start_wins(starts[chosen], ends[chosen])
    return Timeline(
        start,
        end,
        Layer.of(windows),
        union(starts[~talks], ends[~talks]).clip(start, end),
        union(starts[talks], ends[talks]).clip(start, end),
        busy,
        complement(busy, start, end),
        Layer(pieces.starts, pieces.ends, chosen[pieces.ids].astype(np.int64)).clip(start, end),
    )
