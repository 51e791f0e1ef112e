"""Curves: values over time."""

from __future__ import annotations

from html import escape

from advisor_core.api.renderers import CurveView
from reports.charts.axis import round_step, value_axis
from reports.charts.chart import Chart, LegendEntry
from reports.charts.keys import Keys
from reports.charts.svg import GUTTER, SMALL, WIDTH, drawing, el, text, width_of
from reports.labels import Labels, one_line

CURVE_HEIGHT = 170


def draw_curve(view: CurveView, labels: Labels) -> Chart:
    """Areas that share their ground, one in front of the other; a value holds until the next."""
    data = view.data
    span = max(1, data.end - data.start)
    times = [time - data.start for time in data.times]
    top = max([float(value) for one in data.series for value in one.values] + [1e-12])
    scale, ground, head = (WIDTH - GUTTER) / span, CURVE_HEIGHT + 6.0, 6.0
    keys = Keys(labels)
    out: list[str] = []
    step = round_step(top / 6)
    for number in range(int(top / step + 1e-9) + 1):
        y = ground - CURVE_HEIGHT * number * step / top
        label = labels.quantity(number * step, view.unit) if number else "0"
        out.append(el("line", class_="grid", x1=float(GUTTER), x2=float(WIDTH), y1=y, y2=y))
        out.append(text(label, GUTTER - 8, y + 4, "t-small", text_anchor="end"))
    legend = []
    for one in data.series:
        values = [float(value) for value in one.values]
        label = labels.of(one.label)
        points = [f"{GUTTER:.1f},{ground:.1f}"]
        for time, until, value in zip(times, [*times[1:], span], values, strict=True):
            y = ground - CURVE_HEIGHT * value / top
            points += [f"{GUTTER + time * scale:.1f},{y:.1f}", f"{GUTTER + until * scale:.1f},{y:.1f}"]
        points.append(f"{WIDTH:.1f},{ground:.1f}")
        most = max(values)
        tip = f"{label}: {labels.quantity(most, view.unit)} @ {labels.time(times[values.index(most)])}"
        fill = keys.fill(one.key)
        out.append(el("polygon", el("title", escape(one_line(tip))), class_=fill, points=" ".join(points)))
        legend.append(LegendEntry(fill, one_line(label)))
    free = 0.0
    for mark in data.marks:
        x = GUTTER + (mark.start - data.start) * scale
        out.append(el("line", class_="tick", x1=x, x2=x, y1=head, y2=ground))
        label = labels.of(mark.label)
        if x >= free:  # a label that would cover the one before is left out
            out.append(text(label, x + 3, ground + 29, "t-small"))
            free = x + width_of(label, SMALL) + 10
    return Chart(
        "", drawing(ground + 34, [*value_axis(span, ground, "ns", labels), *out], labels.of(view.title)), tuple(legend)
    )
