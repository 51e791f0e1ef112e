"""Calls of CANN by API, as the exporter sums them up."""

from __future__ import annotations

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import API_STATISTIC, PROFILE, Facts
from advisor_core.api.renderers import Cell, Grid, TableColumn, TableView, View
from advisors.messages import message

SHOWN = 40
"""Rows of the table, those with most time; the title says of how many."""

_COLUMNS = (
    ("host_dispatch.api.name", ""),
    ("host_dispatch.api.level", ""),
    ("host_dispatch.api.calls", ""),
    ("host_dispatch.api.total", "ns"),
    ("host_dispatch.api.mean", "ns"),
    ("host_dispatch.api.longest", "ns"),
)


@drawing("host_dispatch.apis", needs=(API_STATISTIC, PROFILE))
def apis(facts: Facts) -> list[View]:
    """Calls of CANN by API over the whole recording: how many, and their time."""
    table, rank = facts[API_STATISTIC], facts[PROFILE].rank
    largest = table.sort_values(["total_ns", "level", "name"], ascending=[False, True, True], kind="stable").head(SHOWN)
    if largest.empty:
        return []
    texts = zip(largest["name"].astype(str), largest["level"].astype(str), strict=True)
    numbers = largest[["count", "total_ns", "mean_ns", "max_ns"]].to_numpy().tolist()
    rows: list[list[Cell]] = [
        [*text, *(value if value >= 0 else None for value in values)]
        for text, values in zip(texts, numbers, strict=True)
    ]
    title = message("host_dispatch.view.apis", rank=rank, shown=len(rows), count=len(table))
    columns = [TableColumn(label=message(name), unit=unit) for name, unit in _COLUMNS]
    return [TableView(id=f"apis-rank{rank}", title=title, rank=rank, data=Grid(columns=columns, rows=rows))]


DRAWINGS: tuple[Drawing, ...] = (apis,)
