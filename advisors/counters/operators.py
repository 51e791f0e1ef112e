"""Operator types as a table: count, times, share, and what was counted of them beside the times of pipes."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from advisor_core.api import Text
from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import CORE_COUNTERS, L2_CACHE, PROFILE, Facts
from advisor_core.api.renderers import Cell, Grid, TableColumn, TableView, View
from advisors.messages import message
from advisors.step_kernels import StepKernels, step_kernels

SHOWN = 30
"""Rows of the table, those with most time; the title says of how many."""

_KEY: Final = ["start_ns", "stream", "task"]


@drawing("counters.operators", needs=(step_kernels, PROFILE), wants=(L2_CACHE, CORE_COUNTERS))
def operators(facts: Facts) -> list[View]:
    """Operator types by time: calls, mean, share, hits of the L2 cache and other counters of the cores."""
    own, rank = facts[step_kernels], facts[PROFILE].rank
    table = _times(own)
    columns = [
        TableColumn(label=message("counters.column.operator")),
        TableColumn(label=message("counters.column.core")),
        TableColumn(label=message("counters.column.count")),
        TableColumn(label=message("counters.column.total"), unit="ns"),
        TableColumn(label=message("counters.column.average"), unit="ns"),
        TableColumn(label=message("counters.column.share"), unit="ratio"),
    ]
    shown = ["type", "core", "count", "total", "mean", "share"]
    if not (table["core"] != "").any():  # devices whose cores are all alike
        del columns[1], shown[1]
    for label, unit, values in (*_of_cache(facts, own), *_of_cores(facts, own)):
        name = f"counted {len(columns)}"
        table[name] = values.reindex(pd.MultiIndex.from_frame(table[["type", "core"]])).to_numpy()
        if table[name].head(SHOWN).notna().any():
            columns.append(TableColumn(label=label, unit=unit))
            shown.append(name)
    rows: list[list[Cell]] = [list(map(_cell, row)) for row in table[shown].head(SHOWN).to_numpy(dtype=object).tolist()]
    if not rows:
        return []
    title = message("counters.view.operators", rank=rank, shown=len(rows), count=len(table))
    data = Grid(columns=columns, rows=rows)
    return [TableView(id=f"operator-table-rank{rank}", purpose="operators", title=title, rank=rank, data=data)]


def _times(own: StepKernels) -> pd.DataFrame:
    """By type and core, most time first: per step, but for the mean of a kernel."""
    frame = own.frame.assign(type=own.frame["type"].astype(str), core=own.frame["core"].astype(str))
    lengths = frame.groupby(["type", "core"], sort=True)["duration_ns"]
    table = pd.DataFrame({"count": lengths.size() / own.steps, "total": lengths.sum() / own.steps}).reset_index()
    table["mean"] = table["total"] / table["count"]
    table["share"] = table["total"] / own.kernel_ns if own.kernel_ns else float("nan")
    return table.sort_values("total", ascending=False, kind="stable", ignore_index=True)


_Columns = list[tuple[Text, str, "pd.Series"]]  # in quotes: pandas is loaded when it is used
"""Heading, unit, and the values by type and core."""


def _of_cache(facts: Facts, own: StepKernels) -> _Columns:
    """Rates of l2_cache.csv, each kernel counting by its time.

    The file names tasks by stream and number, and numbers come again: the n-th kernel of a number is the n-th row of
    it. Where there are not as many of both, which is which is not known, and the kernels count as without a row."""
    rates = facts.get(L2_CACHE)
    if rates is None:
        return []
    task = ["stream", "task"]
    kernels = own.frame.sort_values("start_ns", kind="stable")
    kernels = kernels[(kernels["task"] >= 0).to_numpy()]
    of_kernels, of_rates = (frame.groupby(task)["source_row"] for frame in (kernels, rates))
    left = kernels.assign(turn=of_kernels.cumcount(), turns=of_kernels.transform("size"))
    right = rates.assign(turn=of_rates.cumcount(), turns=of_rates.transform("size"))
    both = left.merge(right[[*task, "turn", "turns", "name", "hit_rate", "victim_rate"]], on=[*task, "turn", "turns"])
    both = both[(both["name_x"].astype(str) == both["name_y"].astype(str)).to_numpy()]
    found = (("counters.column.l2_hits", "hit_rate"), ("counters.column.l2_victims", "victim_rate"))
    return [(message(label), "ratio", _by_time(both, both[name])) for label, name in found]


def _by_time(kernels: pd.DataFrame, values: pd.Series) -> pd.Series:
    """The mean of a value by type and core, each kernel counting by its time."""
    known = np.isfinite(values.to_numpy(dtype=np.float64))
    frame = kernels[["type", "core", "duration_ns"]].astype({"type": str, "core": str})[known]
    frame["product"] = values.to_numpy(dtype=np.float64)[known] * frame["duration_ns"].to_numpy()
    sums = frame.groupby(["type", "core"])[["product", "duration_ns"]].sum()
    mean: pd.Series = sums["product"] / sums["duration_ns"]
    return mean


def _of_cores(facts: Facts, own: StepKernels) -> _Columns:
    """The counters that any kernel of the steps has: rates and ratios as a mean by time, FLOPs over the time, amounts
    and counts as a sum per step; hits and misses of the cache as the share of hits."""
    recorded = facts.get(CORE_COUNTERS)
    if recorded is None:
        return []
    values = recorded[(recorded["value"] > 0).to_numpy()]
    kernels = own.frame[[*_KEY, "type", "core", "duration_ns"]]
    rows = kernels.merge(values[[*_KEY, "counter", "value"]], on=_KEY).astype({"counter": str})
    names = sorted(rows["counter"].unique())
    flops = rows[rows["counter"].str.endswith("_fops")]
    accesses = [name for name in names if name.endswith(("_hit", "_miss", "_miss_allocate"))]
    columns: _Columns = []
    if accesses:
        columns.append((message("counters.column.l2_hits"), "ratio", _hit_share(rows, accesses)))
    if len(flops):
        counted = _sums(flops, 1)
        per_second = counted / _spent(own, counted.index) * 1e9
        columns.append((message("counters.column.flops"), "FLOP/s", per_second))
    for name in names:
        if name in accesses or name.endswith("_fops"):
            continue
        here = rows[rows["counter"] == name]
        heading = Text(en=name, zh=name)
        if name.endswith("_ratio") or "_bw" in name:
            everywhere = kernels.merge(here[[*_KEY, "value"]], on=_KEY, how="left")
            mean = _by_time(everywhere, everywhere["value"].fillna(0.0))
            columns.append((heading, "ratio" if name.endswith("_ratio") else "B/s", mean[mean > 0]))
        else:
            columns.append((heading, "B" if name.endswith("_datas") else "", _sums(here, own.steps)))
    return columns


def _sums(rows: pd.DataFrame, steps: int) -> pd.Series:
    by_kind = rows.astype({"type": str, "core": str}).groupby(["type", "core"])["value"]
    return by_kind.sum() / steps


def _spent(own: StepKernels, kinds: pd.Index) -> pd.Series:
    """The time of all kernels of these types and cores."""
    frame = own.frame[["type", "core", "duration_ns"]].astype({"type": str, "core": str})
    return frame.groupby(["type", "core"])["duration_ns"].sum().reindex(kinds)


def _hit_share(rows: pd.DataFrame, accesses: list[str]) -> pd.Series:
    """Hits over hits and misses, all ways to the cache together."""
    counted = rows[rows["counter"].isin(accesses)]
    hits = counted[counted["counter"].str.endswith("_hit")]
    every = _sums(counted, 1)
    return _sums(hits, 1).reindex(every.index).fillna(0.0) / every


def _cell(value: object) -> Cell:
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    return round(number, 4) if np.isfinite(number) else None


DRAWINGS: tuple[Drawing, ...] = (operators,)
