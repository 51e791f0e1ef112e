"""Spreads as boxes: a line from the least to the most, a box for the middle half of the ranks, a mark for the median
and a ring for each outlier."""

from __future__ import annotations

from reports.blocks import Boxes
from reports.charts.axis import value_axis
from reports.charts.chart import Chart, LegendEntry
from reports.charts.svg import GUTTER, WIDTH, drawing, el, fit, rect, text
from reports.labels import Labels

MARGIN = 1.02
"""Length of the axis over the longest time: a ring at its end is whole."""

_HIGH, _BOX = 26.0, 14.0


def draw_boxes(boxes: Boxes, title: str, labels: Labels) -> Chart:
    end = MARGIN * max(1, *(box.most.ns for box in boxes.rows))
    scale = (WIDTH - GUTTER) / end
    bottom = len(boxes.rows) * _HIGH
    out = value_axis(end, bottom, "ns", labels)
    for number, box in enumerate(boxes.rows):
        middle = number * _HIGH + _HIGH / 2
        top = middle - _BOX / 2
        out.append(text(fit(boxes.names[number], GUTTER - 12), 0, middle + 4, "t-label"))
        start, stop = (GUTTER + time.ns * scale for time in (box.least, box.most))
        out.append(el("path", class_="whisker", fill="none", d=_whisker(start, stop, middle)))
        if box.quartiles is not None:
            low, median, high = (GUTTER + ns * scale for ns in box.quartiles)
            tip = f"{boxes.names[number]}{labels('word.colon')}{labels.time(box.quartiles[1])}"
            out.append(rect(tip, "box", low, top, high - low, _BOX))
            out.append(el("path", class_="median", fill="none", d=f"M{median:.1f} {top - 2:.1f}v{_BOX + 4:.1f}"))
        for time in box.outliers:
            tip = f"{labels('word.rank', rank=time.rank)}{labels('word.colon')}{labels.time(time.ns)}"
            place = {"cx": GUTTER + time.ns * scale, "cy": middle, "r": 4.0}
            out.append(el("circle", el("title", tip), class_="outlier", **place))
    keys = {"median": "spread.median", "outlier": "spread.outlier"}
    shown = {
        "median": any(box.quartiles is not None for box in boxes.rows),
        "outlier": any(box.outliers for box in boxes.rows),
    }
    legend = tuple(LegendEntry(key, labels(name)) for key, name in keys.items() if shown[key])
    return Chart(title, drawing(bottom + 18, out, title), legend)


def _whisker(start: float, end: float, y: float) -> str:
    """A line with a stop at both ends."""
    return f"M{start:.1f} {y - 4:.1f}v8M{start:.1f} {y:.1f}H{end:.1f}M{end:.1f} {y - 4:.1f}v8"
