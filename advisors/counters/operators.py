"""Operator types as a table: count, times, share, and what was counted of them beside the times of pipes."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.api import Text
from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import CORE_COUNTERS, L2_CACHE, PROFILE, Facts, Groups, narrowed
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
    kinds = Groups(own.frame[["type", "core"]].astype(str), ["type", "core"])
    table = _times(own, kinds)
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
    for label, unit, values in (*_of_cache(facts, own, kinds), *_of_cores(facts, own, kinds)):
        name = f"counted {len(columns)}"
        table[name] = values[table["kind"].to_numpy()]
        if table[name].head(SHOWN).notna().any():
            columns.append(TableColumn(label=label, unit=unit))
            shown.append(name)
    rows: list[list[Cell]] = [list(map(_cell, row)) for row in table[shown].head(SHOWN).to_numpy(dtype=object).tolist()]
    if not rows:
        return []
    title = message("counters.view.operators", rank=rank, shown=len(rows), count=len(table))
    data = Grid(columns=columns, rows=rows)
    return [TableView(id=f"operator-table-rank{rank}", purpose="operators", title=title, rank=rank, data=data)]


def _times(own: StepKernels, kinds: Groups) -> pd.DataFrame:
    """By type and core, most time first: per step, but for the mean of a kernel. ``kind``: the number of the two."""
    count, total = kinds.sizes / own.steps, _sums(kinds.codes, own.frame["duration_ns"], kinds) / own.steps
    table = pd.DataFrame({**kinds.keys(), "kind": np.arange(len(kinds)), "count": count, "total": total})
    table["mean"] = table["total"] / table["count"]
    table["share"] = table["total"] / own.kernel_ns if own.kernel_ns else float("nan")
    return table.sort_values("total", ascending=False, kind="stable", ignore_index=True)


_Floats = npt.NDArray[np.float64]
_Columns = list[tuple[Text, str, _Floats]]
"""Heading, unit, and the value of each kind, NaN where it has none."""


def _sums(kind: pd.Series | npt.NDArray[np.int64], values: pd.Series, kinds: Groups) -> _Floats:
    """The sum of the values of each kind."""
    return np.asarray(np.bincount(kind, values.to_numpy(dtype=np.float64), len(kinds)), dtype=np.float64)


def _over(part: _Floats, whole: _Floats) -> _Floats:
    return np.asarray(np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


def _of_cache(facts: Facts, own: StepKernels, kinds: Groups) -> _Columns:
    """Rates of l2_cache.csv, each kernel counting by its time.

    The file names tasks by stream and number, and numbers come again: the n-th kernel of a number is the n-th row of
    it. Where there are not as many of both, which is which is not known, and the kernels count as without a row."""
    rates = facts.get(L2_CACHE)
    if rates is None:
        return []
    task = ["stream", "task"]
    kernels = narrowed(own.frame, [*task, "name", "start_ns", "duration_ns", "source_row"]).assign(kind=kinds.codes)
    kernels = kernels.sort_values("start_ns", kind="stable")
    kernels = kernels[(kernels["task"] >= 0).to_numpy()]
    of_kernels, of_rates = (frame.groupby(task)["source_row"] for frame in (kernels, rates))
    left = kernels.assign(turn=of_kernels.cumcount(), turns=of_kernels.transform("size"))
    right = rates.assign(turn=of_rates.cumcount(), turns=of_rates.transform("size"))
    both = left.merge(right[[*task, "turn", "turns", "name", "hit_rate", "victim_rate"]], on=[*task, "turn", "turns"])
    both = both[(both["name_x"].astype(str) == both["name_y"].astype(str)).to_numpy()]
    found = (("counters.column.l2_hits", "hit_rate"), ("counters.column.l2_victims", "victim_rate"))
    return [(message(label), "ratio", _by_time(both, both[name], kinds)) for label, name in found]


def _by_time(kernels: pd.DataFrame, values: pd.Series, kinds: Groups) -> _Floats:
    """The mean of a value that is known, each kernel counting by its time."""
    known = kernels[np.isfinite(values.to_numpy(dtype=np.float64))]
    ns = known["duration_ns"]
    return _over(_sums(known["kind"], values[known.index] * ns, kinds), _sums(known["kind"], ns, kinds))


def _of_cores(facts: Facts, own: StepKernels, kinds: Groups) -> _Columns:
    """The counters that any kernel of the steps has: rates and ratios as a mean by time, FLOPs over the time, amounts
    and counts as a sum per step; hits and misses of the cache as the share of hits."""
    recorded = facts.get(CORE_COUNTERS)
    if recorded is None:
        return []
    values = recorded[(recorded["value"] > 0).to_numpy()]
    kernels = own.frame[[*_KEY, "duration_ns"]].assign(kind=kinds.codes)
    rows = kernels.merge(values[[*_KEY, "counter", "value"]], on=_KEY).astype({"counter": str})
    names = sorted(rows["counter"].unique())
    flops = rows[rows["counter"].str.endswith("_fops")]
    accesses = [name for name in names if name.endswith(("_hit", "_miss", "_miss_allocate"))]
    whole_ns = _sums(kinds.codes, own.frame["duration_ns"], kinds)
    columns: _Columns = []
    if accesses:
        columns.append((message("counters.column.l2_hits"), "ratio", _hit_share(rows, accesses, kinds)))
    if len(flops):
        per_second = _over(_counted(flops["kind"], flops["value"], kinds), whole_ns) * 1e9
        columns.append((message("counters.column.flops"), "FLOP/s", per_second))
    for name in names:
        if name in accesses or name.endswith("_fops"):
            continue
        here = rows[rows["counter"] == name]
        heading = Text(en=name, zh=name)
        if name.endswith("_ratio") or "_bw" in name:  # of a kernel without a value it is 0
            mean = _over(_counted(here["kind"], here["value"] * here["duration_ns"], kinds), whole_ns)
            columns.append((heading, "ratio" if name.endswith("_ratio") else "B/s", mean))
        else:
            counted = _counted(here["kind"], here["value"], kinds) / own.steps
            columns.append((heading, "B" if name.endswith("_datas") else "", counted))
    return columns


def _counted(kind: pd.Series, values: pd.Series, kinds: Groups) -> _Floats:
    """The sum of positive values of each kind, NaN of one without any."""
    sums = _sums(kind, values, kinds)
    return np.where(sums > 0, sums, np.nan)


def _hit_share(rows: pd.DataFrame, accesses: list[str], kinds: Groups) -> _Floats:
    """Hits over hits and misses, all ways to the cache together."""
    counted = rows[rows["counter"].isin(accesses)]
    hits = counted[counted["counter"].str.endswith("_hit")]
    return _over(_sums(hits["kind"], hits["value"], kinds), _sums(counted["kind"], counted["value"], kinds))


def _cell(value: object) -> Cell:
    if isinstance(value, str):
        return value
    number = float(value)  # type: ignore[arg-type]
    return round(number, 4) if np.isfinite(number) else None


DRAWINGS: tuple[Drawing, ...] = (operators,)
