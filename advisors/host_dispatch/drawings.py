"""Calls of CANN by API, as the exporter sums them up, and marks of the user."""

from __future__ import annotations

from advisor_core.api.advisors import Drawing, drawing
from advisor_core.api.facts import API_STATISTIC, HOST_EVENTS, PROFILE, Facts, picked
from advisor_core.api.renderers import Cell, Grid, TableColumn, TableView, View
from advisors.messages import message
from advisors.rank_tables import rank_table

SHOWN = 40
"""Rows of the table, those with most time; the title says of how many."""

_MARKS = ("mstx", "user_annotation")
_STEP = "ProfilerStep#"
"""Categories of marks, and what marks of steps begin with: every step has its own, and a table of its own."""

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


_MARK_COLUMNS = (
    ("host_dispatch.mark.name", ""),
    ("host_dispatch.api.calls", ""),
    ("host_dispatch.api.total", "ns"),
    ("host_dispatch.api.mean", "ns"),
    ("host_dispatch.mark.median", "ns"),
    ("host_dispatch.mark.shortest", "ns"),
    ("host_dispatch.api.longest", "ns"),
)


@drawing("host_dispatch.marks", needs=(HOST_EVENTS, PROFILE))
def marks(facts: Facts) -> list[View]:
    """Marks of the user and of engines over the whole recording: how often, and how long."""
    events, rank = facts[HOST_EVENTS], facts[PROFILE].rank
    is_mark = events["category"].isin(_MARKS).to_numpy() & (events["duration_ns"] > 0).to_numpy()
    own = picked(events, is_mark, ("name", "duration_ns")).astype({"name": str})
    own = own[~own["name"].str.startswith(_STEP)]
    if own.empty:
        return []
    lengths = own.groupby("name", sort=True)["duration_ns"]
    found = lengths.agg(["size", "sum", "mean", "median", "min", "max"])
    largest = found.sort_values("sum", ascending=False, kind="stable").head(SHOWN)
    numbers = largest.round().astype("int64").to_numpy().tolist()
    rows: list[list[Cell]] = [[str(name), *row] for name, row in zip(largest.index, numbers, strict=True)]
    title = message("host_dispatch.view.marks", rank=rank, shown=len(rows), count=len(found))
    return [rank_table("marks", title, rank, _MARK_COLUMNS, rows)]


DRAWINGS: tuple[Drawing, ...] = (apis, marks)
