"""Tables of values as blocks, and what is said where one does not show all."""

from __future__ import annotations

from collections.abc import Iterator

from reports import tables
from reports.blocks import Block, Code, Column, Paragraph, Row, Table, line
from reports.labels import Labels


def grid(table: tables.Table) -> Table:
    """A table of values: names are code, numbers are set flush right."""
    columns = tuple(
        Column(name, numeric, style="" if numeric else table.style(place))
        for place, (name, numeric) in enumerate(zip(table.columns, table.numeric, strict=True))
    )
    rows = tuple(
        Row(
            tuple(
                line(value) if numeric else line(Code(value, "cell"))
                for value, numeric in zip(row, table.numeric, strict=True)
            )
        )
        for row in table.rows
    )
    return Table(columns, rows)


def cut(total: int, shown: int, t: Labels) -> Iterator[Block]:
    """That a table does not show all."""
    if total > shown:
        yield Paragraph(line(t("chart.largest", shown=shown, total=total)), "small")
