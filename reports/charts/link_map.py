"""The matrix of links: a row for who sends, a column for who receives; the darker the faster, a frame for the slow."""

from __future__ import annotations

import math

from reports.blocks import LinkMap
from reports.charts.chart import Chart, LegendEntry
from reports.charts.shades import SHADES, cell_text, merged, shade_of
from reports.charts.svg import GUTTER, MAX_MARKS, SMALL, WIDTH, box_path, drawing, fit, rect, text, width_of
from reports.labels import Labels

_CELL, _HIGH = 60.0, 20.0
"""Widest and highest cell."""

_HEAD = 18.0

_UNITS = (("TB/s", 1e12), ("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3))


def draw_link_map(links: LinkMap, title: str, labels: Labels) -> Chart:
    """``title``: what the values are. Up to `MAX_MARKS` cells say it in digits where these fit; of more of them all of
    one shade are one mark."""
    count = len(links.names)
    cell = min(_CELL, (WIDTH - GUTTER) / count)
    most = max(bandwidth for *_, bandwidth, _ in links.cells)
    unit, factor = next(((unit, factor) for unit, factor in _UNITS if most >= factor), ("B/s", 1.0))
    written = {bandwidth: f"{bandwidth / factor:.1f}" for *_, bandwidth, _ in links.cells}
    many = len(links.cells) > MAX_MARKS
    has_digits = not many and max(width_of(digits, SMALL) for digits in written.values()) <= cell - 4
    high = _HIGH if has_digits else min(_HIGH, cell)
    stride = math.ceil(max(width_of(name, SMALL) + 8 for name in links.names) / cell)
    out = [
        text(fit(name, stride * cell), GUTTER + (place + 0.5) * cell, 12, "t-small", text_anchor="middle")
        for place, name in enumerate(links.names)
        if place % stride == 0
    ]
    out += [
        text(fit(labels("links.row", name=name), GUTTER - 12), 0, _HEAD + (place + 0.5) * high + 4, "t-label")
        for place, name in enumerate(links.names)
        if high >= 12 or place % math.ceil(12 / high) == 0
    ]
    of_shade: dict[str, str] = {}
    frames: list[str] = []
    for row, column, bandwidth, slow in links.cells:
        x, y = GUTTER + column * cell, _HEAD + row * high
        shade = shade_of(bandwidth / most)
        if many:
            of_shade[shade] = of_shade.get(shade, "") + box_path(x + 0.5, y + 0.5, cell - 1, high - 1)
        else:
            tip = labels("links.tip", source=links.names[row], target=links.names[column])
            tip += f"{labels('word.colon')}{labels.quantity(bandwidth, 'B/s')}"
            out.append(rect(tip, f"h h{shade}", x + 0.5, y + 0.5, cell - 1, high - 1))
        if has_digits:
            out.append(cell_text(written[bandwidth], x + cell / 2, y + 14, shade))
        if slow:
            frames += (rect("", kind, x + 1, y + 1, cell - 2, high - 2) for kind in ("slow-ground", "slow"))
    out += merged(of_shade)
    ends = (LegendEntry("h h0", "0"), LegendEntry(f"h h{SHADES}", labels.quantity(most, "B/s")))
    legend = (*(() if has_digits else ends), *((LegendEntry("slow", labels("links.slow")),) if frames else ()))
    return Chart(f"{title} ({unit})", drawing(_HEAD + count * high + 2, [*out, *frames], title), legend)
