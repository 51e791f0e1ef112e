"""Axes with round values."""

from __future__ import annotations

import math

from reports.charts.svg import GUTTER, WIDTH, el, text, width_of
from reports.labels import Labels


def value_axis(end: float, bottom: float, unit: str, labels: Labels) -> list[str]:
    """Vertical hairlines at round values from 0 to ``end``, with their values."""
    out = []
    step = round_step(end / 5)
    for number in range(int(end / step + 1e-9) + 1):
        value = number * step
        x = GUTTER + (WIDTH - GUTTER) * value / end
        label = labels.quantity(round(value) if float(value).is_integer() else value, unit) if value else "0"
        anchor = "start" if number == 0 else "end" if x + width_of(label) / 2 > WIDTH else "middle"
        out.append(el("line", class_="grid", x1=x, x2=x, y1=0, y2=bottom))
        out.append(text(label, x, bottom + 13, "t-small", text_anchor=anchor))
    return out


def round_step(least: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
