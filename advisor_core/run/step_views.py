"""Views of a rank: the strip of a step, and the operators that cost most."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from advisor_core.facts.ledger.bookings import Bookings
from advisor_core.result.run import LedgerWindow
from advisor_core.result.view import BarRow, Bars, BarsView, Lane, StretchMark, Strip, StripView
from advisor_core.text.messages import message

STRIP_COLUMNS = 400
"""A strip is this many columns wide; a column shows what took most of it."""

MARKED_GAPS = 3
SHOWN_LANES = 16
"""Ranks that the strip of phases has a lane for."""
SHOWN_OPERATORS = 12
LONGEST_NAME = 80
"""Characters of a name that can be read at a glance; those of kernels of templates have hundreds."""

STRIPS: Mapping[LedgerWindow, str] = {
    "step": "view.strip",
    "call": "view.strip.call",
    "stretch": "view.strip.stretch",
    "recording": "view.strip.whole",
}
OPERATORS: Mapping[LedgerWindow, str] = {
    "step": "view.operators",
    "call": "view.operators.call",
    "stretch": "view.operators.stretch",
    "recording": "view.operators.whole",
}
"""The titles of the views, as messages."""


def step_strip(
    rank: int,
    number: int,
    steps: pd.DataFrame,
    booked: Bookings,
    device: pd.DataFrame,
    critical_path: pd.DataFrame | None = None,
    window: LedgerWindow = "step",
) -> StripView:
    """Step ``number`` (row of ``steps``) over time, with its largest gaps marked and named, and below it what its end
    waited for, where that is known."""
    start, end = int(steps["start_ns"][number]), int(steps["end_ns"][number])
    lanes = [Lane(label="device", intervals=intervals_of(booked.pieces[booked.pieces["step"] == number], start, end))]
    if critical_path is not None:
        awaited = critical_path[critical_path["step"] == number]
        lanes.append(
            Lane(label="critical path", heading=message("view.awaited"), intervals=intervals_of(awaited, start, end))
        )
    gaps = booked.gaps[booked.gaps["step"] == number]
    largest = gaps.assign(ns=gaps["end_ns"] - gaps["start_ns"]).nlargest(MARKED_GAPS, "ns").sort_values("start_ns")
    marks = []
    for begin, finish, path, following in zip(
        largest["start_ns"].tolist(), largest["end_ns"].tolist(), largest["path"], largest["next"].tolist(), strict=True
    ):
        if following >= 0:
            label = message("view.gap", kernel=_called(device.iloc[following]))
            marks.append(StretchMark(start=begin - start, end=finish - start, label=label, path=str(path)))
    step = int(steps["step"][number])
    return StripView(
        id=f"strip-rank{rank}-step{step}",
        purpose="step",
        title=message(STRIPS[window if step >= 0 else "recording"], rank=rank, step=step),
        unit="ns",
        rank=rank,
        data=Strip(
            start=0,
            end=end - start,
            origin_ns=start,
            lanes=lanes,
            marks=marks,
        ),
    )


def _called(kernel: pd.Series) -> str:
    """The name of a kernel or, of a signature with template arguments, its type."""
    name, kind = str(kernel["name"]), str(kernel["type"])
    return kind if kind and len(name) > LONGEST_NAME else name


def intervals_of(
    pieces: pd.DataFrame, start: int, end: int, columns: int = STRIP_COLUMNS
) -> list[tuple[int, int, str]]:
    """What takes most of each column of a strip, from ``start``; neighbours that are alike are one."""
    paths = pieces["path"].cat
    keys = np.array([_strip_key(str(path)) for path in paths.categories])[paths.codes.to_numpy()]
    starts, ends = pieces["start_ns"].to_numpy(), pieces["end_ns"].to_numpy()
    edges = np.linspace(start, end, columns + 1).astype(np.int64)
    distinct = np.unique(keys)
    # Column x key: ns of the column that the key takes.
    shares = np.stack([_covered(starts[keys == key], ends[keys == key], edges) for key in distinct], axis=1)
    winner = distinct[shares.argmax(axis=1)]
    change = np.flatnonzero(np.concatenate([[True], winner[1:] != winner[:-1]]))
    stops = np.append(change[1:], columns)
    return [(int(edges[a] - start), int(edges[b] - start), str(winner[a])) for a, b in zip(change, stops, strict=True)]


def phase_strip(phases: Mapping[int, pd.DataFrame], steps: Mapping[int, pd.DataFrame]) -> StripView | None:
    """The phases of the slowest step over time, a lane for each rank (facts ``phases`` and ``steps``), each from the
    start of its own step, as clocks of hosts need not agree. ``None`` where there are fewer than two phases."""
    if not steps or len({name for found in phases.values() for name in found["phase"].unique().tolist()}) < 2:
        return None
    ranks = sorted(rank for rank in phases if rank in steps)[:SHOWN_LANES]
    walls = {
        (rank, number): int(ns)
        for rank in ranks
        for number, ns in enumerate((steps[rank]["end_ns"] - steps[rank]["start_ns"]).tolist())
    }
    slowest, number = max(walls, key=lambda lane: (walls[lane], -lane[0]))
    lanes = []
    for rank in ranks:
        own = phases[rank][phases[rank]["step"] == number]
        begins = own["start_ns"] - (int(steps[rank]["start_ns"].iloc[number]) if len(own) else 0)
        lasts = own["end_ns"] - own["start_ns"]
        intervals = zip(begins.tolist(), (begins + lasts).tolist(), own["phase"].tolist(), strict=True)
        lanes.append(Lane(label=f"rank {rank}", intervals=[(int(a), int(b), str(name)) for a, b, name in intervals]))
    step = int(steps[slowest]["step"].iloc[number])
    return StripView(
        id=f"phases-step{step}",
        purpose="phases",
        title=message("view.phases", step=step if step >= 0 else "-"),
        unit="ns",
        data=Strip(start=0, end=walls[slowest, number], lanes=lanes),
    )


def _covered(starts: np.ndarray, ends: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """ns of each column [edges[i], edges[i+1]) that disjoint pieces cover."""
    before = np.concatenate([[0], np.cumsum(ends - starts)])
    place = np.searchsorted(starts, edges, side="right") - 1
    inside = np.where(place >= 0, np.minimum(edges, ends[np.maximum(place, 0)]) - starts[np.maximum(place, 0)], 0)
    measured = np.where(place >= 0, before[np.maximum(place, 0)] + inside, 0)
    return np.diff(measured)


def _strip_key(path: str) -> str:
    """compute, communication/transmit, communication/wait, idle/host, idle/sync ...: two levels are enough to see."""
    parts = path.split("/")
    return "compute" if parts[0] == "compute" else "/".join(parts[:2])


def _times(count: float) -> str:
    """How often per step: a whole number, or with a decimal what is rarer than ten times and no whole number."""
    return f"{count:.1f} x" if count < 10 and count != round(count) else f"{count:.0f} x"


def operator_bars(rank: int, device: pd.DataFrame, steps: pd.DataFrame, window: LedgerWindow = "step") -> BarsView:
    """Device time per step by operator type, the largest first; overlapping kernels count in full."""
    starts, lasts = device["start_ns"], (device["end_ns"] - device["start_ns"])
    inside = (starts >= steps["start_ns"].min()) & (starts < steps["end_ns"].max()) & ~device["communication"]
    types, classes = (device[name][inside].astype(object).to_numpy() for name in ("type", "operator_class"))
    grouped = lasts[inside].groupby(np.where(types != "", types, classes))
    totals, counts = grouped.sum(), grouped.size()
    largest = totals.sort_values(ascending=False, kind="stable").head(SHOWN_OPERATORS)
    rows = [
        BarRow(label=str(name), value=int(total) // len(steps), note=_times(counts[name] / len(steps)))
        for name, total in largest.items()
    ]
    return BarsView(
        id=f"operators-rank{rank}",
        purpose="operators",
        title=message(OPERATORS[window], rank=rank),
        unit="ns",
        rank=rank,
        data=Bars(rows=rows),
    )
