"""Stacked bars: a bar per row, a part per key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from advisor_core.api.renderers import StackedBarsView, StackRow
from reports.charts.axis import value_axis
from reports.charts.chart import Chart, LegendEntry
from reports.charts.keys import Keys
from reports.charts.svg import GUTTER, MAX_MARKS, WIDTH, drawing, fit, rect, text
from reports.labels import Labels, one_line


def _pick(rows: Sequence[Any], limit: int, size: Callable[[Any], float]) -> list[Any]:
    """At most ``limit`` rows, evenly chosen by size, in their own order; the largest and the smallest are there."""
    if len(rows) <= limit:
        return list(rows)
    by_size = sorted(range(len(rows)), key=lambda number: (-size(rows[number]), number))
    chosen = {by_size[round(step * (len(rows) - 1) / (limit - 1))] for step in range(limit)}
    return [rows[number] for number in sorted(chosen)]


def draw_stacked(view: StackedBarsView, labels: Labels) -> Chart:
    rows = view.data.rows
    most = max((len(row.parts) for row in rows), default=1) or 1

    def total(row: StackRow) -> float:
        return float(sum(part.value for part in row.parts))

    shown = _pick(rows, max(3, min(32, MAX_MARKS // most)), total)
    top = max([total(row) for row in shown] + [1e-12])
    keys = Keys(labels)
    pitch, bar = (22, 16) if len(shown) <= 16 else (14, 11)
    bottom = len(shown) * pitch + 4
    out = value_axis(top, bottom, view.unit, labels)
    legend: dict[str, LegendEntry] = {}
    for number, row in enumerate(shown):
        y = number * pitch + 3.0
        x = float(GUTTER)
        out.append(text(fit(one_line(row.label), GUTTER - 12), 0, y + bar - 4, "t-label"))
        for part in row.parts:
            key = part.key
            width = (WIDTH - GUTTER) * part.value / top
            value = labels.quantity(part.value, view.unit)
            out.append(rect(f"{row.label} · {keys.label(key)}: {value}", keys.fill(key), x, y, width, bar))
            legend.setdefault(key, LegendEntry(keys.fill(key), keys.label(key)))
            x += width
    note = labels("chart.sampled", shown=len(shown), total=len(rows)) if len(shown) < len(rows) else ""
    return Chart("", drawing(bottom + 18, out, labels.of(view.title)), tuple(legend.values()), note)
