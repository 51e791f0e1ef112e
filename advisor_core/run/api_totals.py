"""Calls of the host by API: the exporter's totals of each rank, of all together, and the ranks side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from advisor_core.contracts.tables import API_STATISTIC
from advisor_core.facts.grouping import aggregated
from advisor_core.facts.store import FactStore
from advisor_core.result.view import Cell, Grid, TableColumn, TableView
from advisor_core.result.work import ApiTime
from advisor_core.text.messages import message

LISTED = 200
"""So many APIs are kept, those with most time; a recording of a training step has about 60."""

SHOWN = 40
"""Rows of the view, those in which the ranks differ most."""

QUARTILES = 5
"""Ranks from which quartiles are shown: of fewer the least, the median and the most say as much; our choice."""

_KEY = ["level", "name"]


@dataclass(frozen=True)
class RankApis:
    """The totals of one rank. ``table``: ``level``, ``name``, ``calls``, ``ns``; ``steps``: how many were recorded."""

    steps: int
    table: pd.DataFrame


def rank_apis(store: FactStore, steps: int) -> RankApis | None:
    """The totals of a rank over the whole recording; ``None`` where the exporter wrote none."""
    given = store.get(API_STATISTIC)
    if given is None or given.empty:
        return None
    rows = pd.DataFrame(
        {
            "level": given["level"].astype(str),
            "name": given["name"].astype(str),
            "calls": given["count"].clip(lower=0),
            "ns": given["total_ns"].clip(lower=0),
        }
    )
    return RankApis(steps, _summed(rows))


def _summed(rows: pd.DataFrame) -> pd.DataFrame:
    summed: pd.DataFrame = aggregated(rows, _KEY, calls=("calls", "sum"), ns=("ns", "sum"))
    return summed


def summed_apis(ranks: Sequence[RankApis]) -> list[ApiTime]:
    """The totals of all ranks together, most time first, the `LISTED` longest."""
    if not ranks:
        return []
    every = _summed(pd.concat([rank.table for rank in ranks]))
    every = every.sort_values(["ns", *_KEY], ascending=[False, True, True], kind="stable").head(LISTED)
    return [
        ApiTime(level=level, name=name, calls=calls, ns=ns)
        for level, name, calls, ns in zip(*(every[column].tolist() for column in (*_KEY, "calls", "ns")), strict=True)
    ]


def api_view(ranks: Mapping[int, RankApis]) -> list[TableView]:
    """The totals of several ranks side by side, per step: where they differ most comes first."""
    if len(ranks) < 2:
        return []
    per_step = pd.DataFrame(
        {rank: found.table.set_index(_KEY)["ns"] / max(found.steps, 1) for rank, found in sorted(ranks.items())}
    ).fillna(0.0)
    least, most, median = per_step.min(axis=1), per_step.max(axis=1), per_step.median(axis=1)
    low, high = (per_step.quantile(part, axis=1) for part in (0.25, 0.75))
    has_quartiles = len(ranks) >= QUARTILES
    spread = (most - least).sort_values(ascending=False, kind="stable")
    rows: list[list[Cell]] = [
        [
            str(key[1]),
            str(key[0]),
            round(median[key]),
            *((round(low[key]), round(high[key])) if has_quartiles else ()),
            round(least[key]),
            int(per_step.loc[key].idxmin()),
            round(most[key]),
            int(per_step.loc[key].idxmax()),
        ]
        for key in spread.index[:SHOWN].tolist()
    ]
    heads = (
        ("apis.name", ""),
        ("apis.level", ""),
        ("apis.median", "ns"),
        *((("apis.low", "ns"), ("apis.high", "ns")) if has_quartiles else ()),
        ("apis.least", "ns"),
        ("apis.least_rank", ""),
        ("apis.most", "ns"),
        ("apis.most_rank", ""),
    )
    title = message("apis.view", ranks=len(ranks), shown=len(rows), count=len(per_step))
    columns = [TableColumn(label=message(name), unit=unit) for name, unit in heads]
    return [TableView(id="apis-by-rank", title=title, data=Grid(columns=columns, rows=rows))]
