"""A waterfall: what leads from one step time to another."""

from __future__ import annotations

from collections.abc import Iterator

from reports.blocks import Waterfall
from reports.charts.chart import Chart
from reports.charts.keys import Keys
from reports.charts.svg import WIDTH, drawing, el, fit, rect, text
from reports.comparison.words import signed
from reports.labels import Labels

GUTTER = 250.0
REACH = WIDTH - GUTTER - 110.0
ROW = 24
BAR = 15.0
LEAST = 0.06
"""Share of the width that the scale begins before the smallest total, so that this is still a bar."""


def draw_waterfall(data: Waterfall, title: str, labels: Labels) -> Chart:
    """The totals at top and bottom, and between them each part from where the one before it ended. The scale begins
    near the smallest total: of two steps of 140 ms the parts would not be seen."""
    keys = Keys(labels)
    totals = [data.before_ns]
    for part in data.parts:
        totals.append(totals[-1] + part.ns)
    low, high = min(totals), max(totals)
    begin = max(0.0, low - max(high - low, 1) * LEAST / (1 - LEAST)) if low > (high - low) else 0.0
    scale = REACH / max(high - begin, 1.0)

    def at(ns: float) -> float:
        return GUTTER + (ns - begin) * scale

    out = list(_total(data.ends[0], data.before_ns, at(data.before_ns), 0, labels))
    for number, (part, start) in enumerate(zip(data.parts, totals, strict=False), 1):
        left, right = sorted((at(start), at(start + part.ns)))
        y = number * ROW + 3.0
        value = signed(part.ns, labels)
        fill = keys.fill(part.path.partition("/")[0]) if part.path else "f f-x0"
        out.append(el("path", d=f"M{at(start):.1f} {y - 6:.1f}v6", class_="axis"))
        out.append(text(fit(part.name, GUTTER - 12), 0, y + 12, "t-label"))
        out.append(rect(f"{part.name}{labels('word.colon')}{value}", fill, left, y, right - left, BAR))
        out.append(text(value, right + 6, y + 12, "t-value"))
    last = len(data.parts) + 1
    out += _total(data.ends[1], data.after_ns, at(data.after_ns), last, labels)
    note = labels("compare.scale", time=labels.time(begin)) if begin else ""
    return Chart(title, drawing((last + 1) * ROW, out, title), (), note)


def _total(name: str, ns: int, end: float, number: int, labels: Labels) -> Iterator[str]:
    y = number * ROW + 3.0
    yield text(name, 0, y + 12, "t-strong")
    yield rect(f"{name}{labels('word.colon')}{labels.wall(ns)}", "f f-total", GUTTER, y, end - GUTTER, BAR)
    yield text(labels.wall(ns), end + 6, y + 12, "t-value")
