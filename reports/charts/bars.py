"""Bars by size, each with its value and a note."""

from __future__ import annotations

from advisor_core.api.renderers import BarsView
from reports.charts.chart import Chart
from reports.charts.svg import WIDTH, drawing, fit, rect, text, width_of
from reports.labels import Labels, one_line


def draw_bars(view: BarsView, labels: Labels) -> Chart:
    rows = view.data.rows
    shown = rows[:32]
    top = max([float(row.value) for row in shown] + [1e-12])
    gutter, reach = 250.0, WIDTH - 250 - 190.0
    out = []
    for number, row in enumerate(shown):
        y = number * 22 + 3.0
        value = labels.quantity(row.value, view.unit)
        note = one_line(row.note)
        width = reach * max(0.0, row.value) / top
        name = labels.either(row.label)
        out.append(text(fit(one_line(name), gutter - 12), 0, y + 12, "t-label"))
        out.append(rect(f"{name}: {value} {note}", "f f-compute", gutter, y, width, 15))
        out.append(text(value, gutter + width + 6, y + 12, "t-value"))
        out.append(text(fit(note, 180 - width_of(value)), gutter + width + 16 + width_of(value), y + 12, "t-small"))
    more = labels("chart.largest", shown=len(shown), total=len(rows)) if len(shown) < len(rows) else ""
    return Chart("", drawing(len(shown) * 22 + 4, out, labels.of(view.title)), (), more)
