"""Tables of a rank among the views of a report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api import Text
from advisor_core.api.renderers import Cell, Grid, TableColumn, TableView
from advisors.messages import message

Heads = Sequence[tuple[str, str]]
"""Of each column the message that heads it, and the unit."""


def rank_table(name: str, title: Text, rank: int, heads: Heads, rows: Sequence[Sequence[Cell]]) -> TableView:
    """A table without the columns that no row has. ``name``: with the rank its id."""
    places = [place for place in range(len(heads)) if any(row[place] is not None for row in rows)]
    columns = [TableColumn(label=message(heads[place][0]), unit=heads[place][1]) for place in places]
    grid = Grid(columns=columns, rows=[[row[place] for place in places] for row in rows])
    return TableView(id=f"{name}-rank{rank}", title=title, rank=rank, data=grid)


def known(value: float) -> float | None:
    """The value as a cell: ``None`` where it is not known."""
    return float(value) if np.isfinite(value) else None
