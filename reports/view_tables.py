"""Views as tables, for what cannot draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from advisor_core.api import Text
from advisor_core.api.renderers import (
    BarsView,
    Cell,
    CurveView,
    Flame,
    FlameView,
    HeatmapView,
    StackedBarsView,
    StripView,
    TableView,
    View,
)
from reports.blocks import Block, Code, Column, Line, Row, Table, line
from reports.charts.flame import frame_name
from reports.charts.keys import Keys
from reports.labels import Labels, is_number
from reports.sections.grid import cut

ROWS = 24
KEYS = 12
LARGEST = 6
"""Parts of a lane that are named."""

FRAMES = 4
"""Frames of a stack that are named, from the innermost outwards."""


def view_tables(view: View, t: Labels) -> Iterator[Block]:
    """The numbers that a drawing of the view shows."""
    match view:
        case BarsView(data=bars):
            rows = [_row(t.either(row.label), t.quantity(row.value, view.unit), row.note) for row in bars.rows]
            yield from _table(["chart.label", "chart.value", "chart.note"], rows, t, (1,))
        case StackedBarsView(data=stacked):
            keys = list(dict.fromkeys(part.key for row in stacked.rows for part in row.parts))[:KEYS]
            rows = []
            for stack in stacked.rows:
                parts = {part.key: t.quantity(part.value, view.unit) for part in stack.parts}
                rows.append(_row(stack.label, *(parts.get(key, "–") for key in keys)))
            yield from _named([Keys(t).label(key) for key in keys], rows, t)
        case StripView(data=strip):
            rows = [
                _row(t.either(lane.heading or lane.label), t.join(_largest(lane.intervals, t))) for lane in strip.lanes
            ]
            yield from _table(["evidence.lane", "chart.lane_total"], rows, t)
            if strip.marks:
                marks = [
                    (line(t.time(mark.start)), line(t.time(mark.end - mark.start)), line(t.of(mark.label)))
                    for mark in strip.marks
                ]
                yield from _table(["evidence.start", "evidence.duration", "chart.mark"], marks, t, (0, 1))
        case CurveView(data=curve):
            rows = []
            for series in curve.series:
                values = series.values
                most = max(values)
                first, highest, last = (t.quantity(value, view.unit) for value in (values[0], most, values[-1]))
                when = t.time(curve.times[values.index(most)])
                rows.append(_row(t.of(series.label), first, highest, when, last))
            heads = [f"chart.{name}" for name in ("label", "first", "most", "when", "last")]
            yield from _table(heads, rows, t, (1, 2, 3, 4))
        case HeatmapView(data=heat):
            rows = [
                _row(t.either(name), *(t.quantity(value, view.unit) for value in values[:KEYS]))
                for name, values in zip(heat.rows, heat.values, strict=True)
            ]
            yield from _named([t.either(column) for column in heat.columns[:KEYS]], rows, t)
        case FlameView(data=flame):
            yield from _table(
                ["flame.stack", "flame.own", "flame.share"], _most_by_themselves(flame, view.unit, t), t, (1, 2)
            )
        case TableView():
            yield written(view, t)


def _most_by_themselves(flame: Flame, unit: str, t: Labels) -> list[tuple[Line, ...]]:
    """The stacks that take most time, or hold most memory, themselves, with their innermost frames."""
    own = [took for _, _, took in flame.nodes]
    for caller, _, took in flame.nodes:
        if caller >= 0:
            own[caller] -= took
    total = max(1, sum(own))
    rows = []
    for place in sorted(range(len(own)), key=lambda place: (-own[place], place))[:ROWS]:
        if own[place]:
            names: list[str] = []
            at = place
            while at >= 0 and len(names) < FRAMES:
                names.append(frame_name(*flame.frames[flame.nodes[at][1]], t))
                at = flame.nodes[at][0]
            rows.append(_row(" < ".join(names), t.quantity(own[place], unit), f"{100 * own[place] / total:.1f} %"))
    return rows


def written(view: TableView, t: Labels) -> Table:
    """All rows of a table, its numbers in the unit of their column."""
    columns = view.data.columns
    numeric = [any(is_number(row[place]) for row in view.data.rows) for place in range(len(columns))]
    heads = tuple(Column(t.of(column.label), is_wide) for column, is_wide in zip(columns, numeric, strict=True))
    rows = (
        Row(tuple(_cell(cell, column.unit, t) for cell, column in zip(row, columns, strict=True)))
        for row in view.data.rows
    )
    return Table(heads, tuple(rows))


def _cell(cell: Cell, unit: str, t: Labels) -> Line:
    if isinstance(cell, str):
        return line(Code(cell)) if cell else ()
    if isinstance(cell, Text):
        return line(t.of(cell))
    return line("–" if cell is None else t.quantity(cell, unit))


def _largest(intervals: Sequence[tuple[int, int, str]], t: Labels) -> list[str]:
    """The keys that take most of a lane, each with its time."""
    keys = Keys(t)
    return [f"{keys.label(key)} {t.time(ns)}" for key, ns in longest_first(time_by_key(intervals))[:LARGEST]]


def time_by_key(intervals: Sequence[tuple[int, int, str]]) -> Counter[str]:
    """The time of each key, ns."""
    sums: Counter[str] = Counter()
    for start, end, key in intervals:
        sums[key] += end - start
    return sums


def longest_first(sums: Counter[str]) -> list[tuple[str, int]]:
    """The keys with their times, those of one time by name."""
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))


def _row(label: str, *cells: str) -> tuple[Line, ...]:
    return (line(Code(label)), *(line(cell) for cell in cells))


def _table(
    heads: Sequence[str], rows: Sequence[tuple[Line, ...]], t: Labels, numeric: Sequence[int] = ()
) -> Iterator[Block]:
    columns = tuple(Column(t(head), numeric=place in numeric) for place, head in enumerate(heads))
    yield Table(columns, tuple(Row(row) for row in rows[:ROWS]))
    yield from cut(len(rows), ROWS, t)


def _named(heads: Sequence[str], rows: Sequence[tuple[Line, ...]], t: Labels) -> Iterator[Block]:
    columns = (Column(t("chart.label")), *(Column(head, numeric=True) for head in heads))
    yield Table(columns, tuple(Row(row) for row in rows[:ROWS]))
    yield from cut(len(rows), ROWS, t)
