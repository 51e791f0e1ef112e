"""Views of a rank's memory: allocated and reserved over time, and the holders at the peak."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.facts.memory import GIB, PeakMemory
from advisor_core.result.view import BarRow, Bars, BarsView, Curve, CurveView, MomentMark, Series
from advisor_core.text.messages import message

CURVE_COLUMNS = 180
"""A curve is this many columns wide; a column shows the most that was reached in it."""
SHOWN_HOLDERS = 12
LEAST_SHARE = 0.001
"""Of the peak: what holds less is not drawn."""
SHOWN_STEPS = 40
MIB = 1024 * 1024


def memory_curve_view(rank: int, curve: pd.DataFrame, steps: pd.DataFrame | None) -> CurveView | None:
    """Allocated and reserved over the profile, GiB, with the steps of the host marked; ``None`` for a single moment."""
    times = curve["time_ns"].to_numpy()
    start, end = int(times[0]), int(times[-1])
    if end <= start:
        return None
    edges = np.unique(np.linspace(start, end, CURVE_COLUMNS + 1).astype(np.int64))
    # a column begins with the value that it inherits
    first = np.maximum(np.searchsorted(times, edges[:-1], side="right") - 1, 0)
    behind = np.maximum(np.searchsorted(times, edges[1:], side="left"), first + 1)
    behind[-1] = len(times)
    series = [
        Series(
            key=name,
            label=message(f"view.memory_{name}"),
            values=np.round(_highest(curve[f"{name}_bytes"].to_numpy(), first, behind) / GIB, 3).tolist(),
        )
        for name in ("reserved", "allocated")
    ]
    marks = []
    if steps is not None and len(steps) <= SHOWN_STEPS:
        inside = steps[(steps["end_ns"] > start) & (steps["start_ns"] < end)]
        marks = [
            MomentMark(start=max(0, int(begin) - start), label=message("view.memory_step", step=int(step)))
            for step, begin in zip(inside["step"], inside["start_ns"], strict=True)
        ]
    return CurveView(
        id=f"memory-rank{rank}",
        purpose="memory",
        title=message("view.memory", rank=rank),
        unit="GiB",
        rank=rank,
        data=Curve(
            start=0,
            end=end - start,
            origin_ns=start,
            times=(edges[:-1] - start).tolist(),
            series=series,
            marks=marks,
        ),
    )


def _highest(values: np.ndarray, first: np.ndarray, behind: np.ndarray) -> np.ndarray:
    """The largest of ``values[first:behind]`` for each pair."""
    borders = np.stack([first, behind], axis=1).ravel()
    highest: np.ndarray = np.fmax.reduceat(np.append(values, np.nan), borders)[::2]
    return highest


def memory_peak_view(rank: int, peak: PeakMemory) -> BarsView:
    """Memory that was alive when most was allocated, MiB: by operator, and the part that the profile does not tell."""
    largest = peak.by_operator.head(SHOWN_HOLDERS)
    shown = largest[largest["bytes"] >= LEAST_SHARE * peak.allocated_bytes]
    rows = [
        BarRow(label=str(name), value=round(nbytes / MIB, 1), note=f"{count} x")
        for name, nbytes, count in zip(shown["name"], shown["bytes"], shown["tensors"], strict=True)
    ]
    if peak.earlier_bytes:
        rows.append(BarRow(label=message("view.memory_earlier"), value=round(peak.earlier_bytes / MIB, 1)))
    return BarsView(
        id=f"memory-peak-rank{rank}",
        purpose="memory_peak",
        title=message("view.memory_peak", rank=rank),
        unit="MiB",
        rank=rank,
        data=Bars(rows=rows),
    )
