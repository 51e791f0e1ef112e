"""The inside of kernels as a table: time in which no pipe works, computing while loading, and balance of the cores.

Exports have the time of each pipe and of the cores, each as a mean over the cores that the kernel uses; when a pipe
works they do not say. So each of the three is told by what it is at least, or at most:

- no pipe works for at least what is left of the duration if the pipes worked one after the other, and at most what the
  busiest pipe leaves;
- computing and loading overlap for at least what both together take longer than the cores, of the shorter of the two;
- the core that works longest does so for the whole duration at most: the balance, mean over longest, is at least the
  mean over the duration. The mean is that of the cycles over the clock and the cores in use: where there are more
  blocks than cores the exporter's own time of the cores is another number (docs/sources.md#inside-of-kernels).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import PROFILE, Chip, Facts, chip, pipes
from advisor_core.api.renderers import Cell, View
from advisors.messages import message
from advisors.rank_tables import known, rank_table
from advisors.step_kernels import LONG_ENOUGH_NS, step_kernels

Floats = npt.NDArray[np.float64]

GOOD_BUBBLES, POOR_BUBBLES = 0.15, 0.3
GOOD_BALANCE = 0.9
"""Shares that the guide calls good and poor (docs/sources.md#inside-of-kernels)."""

SHOWN = 20
"""Rows of the table, those with most time; the title says of how many."""

_SIDES = (
    ("aic_ns", "aic_mac", "aic_mte2", ("aic_mac", "aic_scalar", "aic_mte1", "aic_mte2", "aic_fixpipe")),
    ("aiv_ns", "aiv_vec", "aiv_mte2", ("aiv_vec", "aiv_scalar", "aiv_mte2", "aiv_mte3")),
)
"""Of the cube and of the vector cores: the time of the cores, and the pipes that compute, that load, and all."""

_COLUMNS = (
    ("counters.column.operator", ""),
    ("counters.column.core", ""),
    ("counters.column.total", "ns"),
    ("pipeline_bound.bubble_least", "ratio"),
    ("pipeline_bound.bubble_most", "ratio"),
    ("pipeline_bound.overlap_least", "ratio"),
    ("pipeline_bound.balance_least", "ratio"),
)


_LEADING = {"AI_CORE": "aic", "MIX_AIC": "aic", "AI_VECTOR_CORE": "aiv", "MIX_AIV": "aiv"}
"""The cores that the blocks of a kernel are divided among."""


def inside_of(frame: pd.DataFrame, ratios: pd.DataFrame, cores: Chip | None) -> pd.DataFrame:
    """Of each kernel, ns: ``bubble_least``, ``bubble_most``; ``overlap_least`` of ``overlap_of``, the shorter of
    computing and loading; ``cores_least``, the mean time of the cores in use, NaN unknown. Nothing of kernels without
    counters. ``frame``: rows of the table ``kernels``; ``ratios``: their rows of the fact ``pipes``."""
    duration = frame["duration_ns"].to_numpy(dtype=np.float64)
    every = ratios[[pipe for *_, all_of in _SIDES for pipe in all_of]].to_numpy(dtype=np.float64)
    overlap, shorter = np.zeros(len(frame)), np.zeros(len(frame))
    for core, computes, loads, _ in _SIDES:
        works = np.nan_to_num(np.minimum(frame[core].to_numpy(dtype=np.float64), duration))
        own = [np.nan_to_num(ratios[pipe].to_numpy(dtype=np.float64)) * duration for pipe in (computes, loads)]
        overlap += np.where(works > 0, np.maximum(own[0] + own[1] - works, 0.0), 0.0)
        shorter += np.where(works > 0, np.minimum(*own), 0.0)
    found = pd.DataFrame(
        {
            "duration": duration,
            "bubble_least": np.maximum(1 - np.nansum(every, axis=1), 0.0) * duration,
            "bubble_most": (1 - np.max(np.nan_to_num(every), axis=1, initial=0.0)) * duration,
            "overlap_least": np.minimum(overlap, shorter),
            "overlap_of": shorter,
            "cores_least": _mean_of_cores(frame, cores),
        }
    )
    found.loc[~np.isfinite(every).any(axis=1)] = np.nan
    return found


def _mean_of_cores(frame: pd.DataFrame, cores: Chip | None) -> Floats:
    """The time in which the cores in use work, the mean of them, at most the duration; NaN unknown."""
    mean = np.full(len(frame), np.nan)
    if cores is None:
        return mean
    led = frame["core"].astype(str).map(_LEADING).to_numpy(dtype=object)
    for side, count in (("aic", cores.cube_cores), ("aiv", cores.vector_cores)):
        used = np.minimum(frame["block_dim"].to_numpy(dtype=np.float64), count)
        with np.errstate(divide="ignore", invalid="ignore"):
            ns = frame[f"{side}_cycles"].to_numpy(dtype=np.float64) / (used * cores.mhz) * 1e3
        own = (led == side) & (used > 0) & (ns > 0)
        mean[own] = np.minimum(ns, frame["duration_ns"])[own]
    return mean


@drawing("pipeline_bound.inside", needs=(step_kernels, pipes, PROFILE), wants=(chip,))
def inside(facts: Facts) -> list[View]:
    """Operator types by time: bubbles, overlap and balance inside of their kernels, of those that are long enough."""
    own, rank = facts[step_kernels], facts[PROFILE].rank
    frame = own.frame
    found = inside_of(frame, facts[pipes].iloc[frame["row"].to_numpy()].reset_index(drop=True), facts.get(chip))
    chosen = found["duration"].notna().to_numpy() & (frame["duration_ns"] >= LONG_ENOUGH_NS).to_numpy()
    found = found[chosen]
    if found.empty:
        return []
    keys = [frame[name].astype(str).to_numpy()[chosen] for name in ("type", "core")]
    found = found.assign(timed=found["duration"].where(found["cores_least"].notna()))
    sums = found.groupby(keys, sort=True).sum().sort_values("duration", ascending=False, kind="stable")
    rows = [_row(operator, core, sums.loc[(operator, core)], own.steps) for operator, core in sums.index[:SHOWN]]
    title = message(
        "pipeline_bound.view.inside",
        rank=rank,
        shown=len(rows),
        count=len(sums),
        long=f"{LONG_ENOUGH_NS / 1_000:.0f} µs",
        good=_share(found, found["bubble_most"] < GOOD_BUBBLES * found["duration"]),
        poor=_share(found, found["bubble_least"] > POOR_BUBBLES * found["duration"]),
        balanced=_share(found, found["cores_least"] > GOOD_BALANCE * found["duration"]),
        good_bubbles=f"{100 * GOOD_BUBBLES:.0f} %",
        poor_bubbles=f"{100 * POOR_BUBBLES:.0f} %",
        good_balance=f"{100 * GOOD_BALANCE:.0f} %",
    )
    return [rank_table("inside-kernels", title, rank, _COLUMNS, rows)]


def _share(found: pd.DataFrame, chosen: pd.Series) -> str:
    """Of the time of these kernels, that of the chosen ones."""
    return f"{100 * found['duration'][chosen].sum() / found['duration'].sum():.0f} %"


def _row(operator: str, core: str, line: pd.Series, steps: int) -> list[Cell]:
    took = float(line["duration"])
    overlap = float(line["overlap_least"]) / float(line["overlap_of"]) if line["overlap_of"] > 0 else float("nan")
    shares = (*(float(line[name]) / took for name in ("bubble_least", "bubble_most")), overlap)
    balance = float(line["cores_least"]) / float(line["timed"]) if line["timed"] > 0 else float("nan")
    return [operator, core, took / steps, *(known(round(share, 4)) for share in (*shares, balance))]


DRAWINGS: tuple[Drawing, ...] = (inside,)
