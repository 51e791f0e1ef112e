"""Rows over time: of each row all spans of one kind are one mark, so that hundreds of them stay light."""

from __future__ import annotations

from reports.blocks import Times
from reports.charts.axis import value_axis
from reports.charts.chart import Chart, LegendEntry
from reports.charts.keys import Keys
from reports.charts.svg import GUTTER, SMALL, WIDTH, box_path, drawing, el, fit, mark_text, text, width_of
from reports.labels import Labels

_HIGH, _ROW = 20.0, 26.0

PASSES = {"forward": "h h7", "backward": "h h3"}
"""Fills of keys that are no paths of the ledger."""

DARK = ("forward",)
"""Keys whose fill takes light digits."""


def draw_times(times: Times, title: str, labels: Labels) -> Chart:
    scale = (WIDTH - GUTTER) / max(1, times.end)
    keys = Keys(labels)
    out: list[str] = []
    legend: dict[str, LegendEntry] = {}
    for number, row in enumerate(times.rows):
        y = 3.0 + number * _ROW
        out.append(text(fit(row.name, GUTTER - 12), 0, y + 14, "t-label"))
        out.append(el("rect", class_="track", x=float(GUTTER), y=y, width=float(WIDTH - GUTTER), height=_HIGH))
        shapes: dict[str, str] = {}
        for start, end, key in row.spans:
            wide = (end - start) * scale
            shapes[key] = shapes.get(key, "") + box_path(GUTTER + start * scale, y, wide, _HIGH)
        for key, shape in shapes.items():
            fill = PASSES[key] if key in PASSES else keys.fill(key)
            out.append(el("path", class_=fill, d=shape))
            legend.setdefault(key, LegendEntry(fill, times.labels.get(key) or keys.label(key)))
        for (start, end, key), written in zip(row.spans, row.texts, strict=False):
            if width_of(written, SMALL) + 2 <= (end - start) * scale:
                out.append(mark_text(written, GUTTER + (start + end) / 2 * scale, y + 14, dark=key in DARK))
    bottom = 3.0 + len(times.rows) * _ROW
    axis = value_axis(max(1, times.end), bottom, "ns", labels)
    return Chart(title, drawing(bottom + 18, [*axis, *out], title), tuple(legend.values()))
