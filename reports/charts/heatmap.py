"""Heat maps: a value for each row and column."""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor_core.api.renderers import HeatmapView
from reports.charts.chart import Chart, LegendEntry
from reports.charts.shades import SHADES, cell_text
from reports.charts.svg import GUTTER, MAX_MARKS, SMALL, WIDTH, drawing, fit, rect, text, width_of
from reports.labels import Labels, one_line

_CELL = 86.0
"""Widest cell."""


def draw_heatmap(view: HeatmapView, labels: Labels) -> Chart:
    rows = [one_line(labels.either(row)) for row in view.data.rows]
    columns = [one_line(labels.either(column)) for column in view.data.columns]
    values: Sequence[Sequence[float | None]] = view.data.values
    rows, columns, values, step = _shrink(rows, columns, values)
    numbers = [value for line in values for value in line if value is not None]
    low, high = min([0.0, *numbers]), max([0.0, *numbers])
    gutter = _gutter(rows, len(columns))
    cell = min(_CELL, (WIDTH - gutter) / max(1, len(columns)))
    written, short = _cell_text(values, cell, view.unit, labels)
    widest = max((width_of(column, SMALL) + 8 for column in columns), default=cell)
    stride = 1 if written else math.ceil(widest / cell)
    out = [
        text(fit(column, stride * cell - 4), gutter + (number + 0.5) * cell, 12, "t-small", text_anchor="middle")
        for number, column in enumerate(columns)
        if number % stride == 0
    ]
    for number, (row, line) in enumerate(zip(rows, values, strict=True)):
        y = 18.0 + number * 22
        out.append(text(fit(row, gutter - 12), 0, y + 14, "t-label"))
        for place, value in enumerate(line):
            x = gutter + place * cell
            label = "–" if value is None else labels.quantity(value, view.unit)
            level = "none" if value is None else str(min(SHADES, math.ceil(SHADES * (value - low) / (high - low or 1))))
            # what is written in the cell needs no tip
            tip = "" if written and not short else f"{row} · {columns[place]}: {label}"
            out.append(rect(tip, f"h h{level}", x + 0.5, y, cell - 1, 20))
            if written:
                shown = label.split(" ")[0] if short else label
                out.append(cell_text(shown, x + cell / 2, y + 14, level))
    note = labels("chart.binned_heat", rows=step[0], columns=step[1]) if step != (1, 1) else ""
    scale = (
        LegendEntry("h h0", labels.quantity(low, view.unit)),
        LegendEntry(f"h h{SHADES}", labels.quantity(high, view.unit)),
    )
    return Chart(
        "", drawing(20 + len(rows) * 22, out, labels.of(view.title)), scale if short or not written else (), note
    )


def _gutter(rows: Sequence[str], columns: int) -> float:
    """Room for the names of the rows: more of it where columns leave some."""
    needed = max((width_of(row, 12.5) for row in rows), default=0.0) + 16
    return max(GUTTER, min(needed, WIDTH - _CELL * columns))


def _cell_text(values: Sequence[Sequence[float | None]], cell: float, unit: str, labels: Labels) -> tuple[bool, bool]:
    """Whether values fit into their cells, and whether they do so only without their unit."""
    quantities = [labels.quantity(value, unit) for line in values for value in line if value is not None]
    widths = [(width_of(text, SMALL), width_of(text.split(" ")[0], SMALL)) for text in quantities]
    if all(whole <= cell - 4 for whole, _ in widths):
        return True, False
    same_unit = len({text.partition(" ")[2] for text in quantities}) == 1
    return same_unit and all(number <= cell - 4 for _, number in widths), True


def _shrink(
    rows: list[str], columns: list[str], values: Sequence[Sequence[float | None]]
) -> tuple[list[str], list[str], Sequence[Sequence[float | None]], tuple[int, int]]:
    """Join neighbouring rows and columns until at most `MAX_MARKS` cells are left; a cell keeps the maximum."""
    high, wide = 1, 1
    while -(-len(rows) // high) * -(-len(columns) // wide) > MAX_MARKS:
        if len(rows) / high >= len(columns) / wide:
            high += 1
        else:
            wide += 1
    if (high, wide) == (1, 1):
        return rows, columns, values, (1, 1)

    def joined(names: list[str], step: int) -> list[str]:
        parts = [names[at : at + step] for at in range(0, len(names), step)]
        return [part[0] if len(part) == 1 else f"{part[0]} … {part[-1]}" for part in parts]

    def largest(top: int, left: int) -> float | None:
        cells = (value for line in values[top : top + high] for value in line[left : left + wide] if value is not None)
        return max(cells, default=None)

    small = [[largest(top, left) for left in range(0, len(columns), wide)] for top in range(0, len(rows), high)]
    return joined(rows, high), joined(columns, wide), small, (high, wide)
