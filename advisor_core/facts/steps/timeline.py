"""The device timeline: computing, communicating, idle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.tables import OVERLAP, STEP_TRACE
from advisor_core.facts.device.work import work
from advisor_core.facts.intervals import Layer, complement, cut, earliest_start_wins, union
from advisor_core.facts.steps.steps import steps
from advisor_core.text.messages import message

TOLERANCE = 0.005
"""How far a total may be from the exporter's before the report says so: 0.5 % of the step."""


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


@fact("timeline", needs=(work, steps), wants=(STEP_TRACE, OVERLAP))
def timeline(facts: Facts) -> Timeline:
    """Disjoint intervals of the device: computing, communication, idle; checked against the exporter's totals."""
    device, windows = facts[work], facts[steps]
    start, end = int(windows["start_ns"].min()), int(windows["end_ns"].max())
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    talks = device["communication"].to_numpy()
    busy = union(starts, ends).clip(start, end)
    chosen = np.flatnonzero(talks)
    pieces = earliest_start_wins(starts[chosen], ends[chosen])
    result = Timeline(
        start,
        end,
        Layer(windows["start_ns"].to_numpy(), windows["end_ns"].to_numpy(), np.arange(len(windows))),
        union(starts[~talks], ends[~talks]).clip(start, end),
        union(starts[talks], ends[talks]).clip(start, end),
        busy,
        complement(busy, start, end),
        Layer(pieces.starts, pieces.ends, chosen[pieces.ids].astype(np.int64)).clip(start, end),
    )
    if STEP_TRACE in facts:
        _compare(facts, result, windows, facts[STEP_TRACE])
    elif OVERLAP in facts:
        _compare_lanes(facts, result, facts[OVERLAP])
    return result


def _compare_lanes(facts: Facts, ours: Timeline, lanes: pd.DataFrame) -> None:
    """Where the exporter gives no totals: what its lanes of the overlap analysis cover of the same time."""
    totals = {
        "Computing": ours.computing.total(),
        "Communication": ours.communication.total(),
        "Free": ours.gaps.total(),
    }
    ends = lanes["start_ns"] + lanes["duration_ns"]
    for lane, total in totals.items():
        rows = (lanes["kind"] == lane).to_numpy()
        theirs = (
            union(lanes["start_ns"].to_numpy()[rows], ends.to_numpy()[rows]).clip(ours.start_ns, ours.end_ns).total()
        )
        if rows.any() and abs(total - theirs) > TOLERANCE * (ours.end_ns - ours.start_ns):
            text = message("timeline.lane", lane=lane, ours=f"{total / 1e6:.3f}", theirs=f"{theirs / 1e6:.3f}")
            facts.note("warning", "trace_view.json", text)


def _compare(facts: Facts, ours: Timeline, windows: pd.DataFrame, reported: pd.DataFrame) -> None:
    totals = ours.totals().assign(step=windows["step"].to_numpy())
    both = totals.merge(reported, on="step", suffixes=("", "_reported"))
    if not len(both) and len(totals) == len(reported) == 1:
        theirs_only = reported.drop(columns="step")
        both = totals.merge(theirs_only, left_index=True, right_index=True, suffixes=("", "_reported"))
    # The exporter leaves the wait for the next step out of the window of the last kernels in some versions and books
    # it in others; the sums of what the device did are comparable in all of them.
    pairs = [
        ("computing_ns", "computing_ns_reported"),
        ("uncovered_ns", "uncovered_communication_ns"),
        ("overlapped_ns", "overlapped_ns_reported"),
    ] + ([("idle_ns", "free_ns")] if len(windows) == 1 else [])
    for mine, theirs in pairs:
        off = (both[mine] - both[theirs]).abs() > TOLERANCE * both["wall_ns"]
        for row in both[off].itertuples():
            facts.note(
                "warning",
                "step_trace_time.csv",
                message(
                    "timeline.disagrees",
                    step=row.step,
                    what=mine.removesuffix("_ns"),
                    ours=f"{getattr(row, mine) / 1e6:.3f}",
                    theirs=f"{getattr(row, theirs) / 1e6:.3f}",
                ),
            )
