"""Strips: intervals on lanes over time, with marks below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor_core.api.renderers import StretchMark, StripView
from reports.charts.axis import value_axis
from reports.charts.chart import Chart, LegendEntry
from reports.charts.keys import Keys
from reports.charts.svg import GUTTER, MAX_MARKS, SMALL, WIDTH, drawing, el, fit, rect, text, width_of
from reports.labels import Labels, one_line


def draw_strip(view: StripView, labels: Labels) -> Chart:
    data = view.data
    span = max(1, data.end - data.start)
    lanes, marks = data.lanes, data.marks[:24]
    scale = (WIDTH - GUTTER) / span
    keys = Keys(labels)
    total = sum(len(lane.intervals) for lane in lanes)
    keyed = [[(a, b, key) for a, b, key in lane.intervals if b > a] for lane in lanes]
    most = max((len({key for *_, key in intervals}) for intervals in keyed), default=1)
    bins = max(24, MAX_MARKS // max(1, len(lanes) * most)) if total > MAX_MARKS else 0
    y = 3.0
    out: list[str] = []
    legend: dict[str, LegendEntry] = {}
    for lane, intervals in zip(lanes, keyed, strict=True):
        out.append(text(fit(one_line(labels.either(lane.heading or lane.label)), GUTTER - 12), 0, y + 14, "t-label"))
        out.append(el("rect", class_="track", x=float(GUTTER), y=y, width=float(WIDTH - GUTTER), height=20.0))
        blocks = _shares(intervals, span, bins) if bins else [(a, b, key, 0.0, 1.0) for a, b, key in intervals]
        for a, b, key, low, high in blocks:
            tooltip = f"{keys.label(key)}: {labels.time((b - a) * (high - low))} @ {labels.time(a)}"
            at, width = GUTTER + a * scale, (b - a) * scale
            out.append(rect(tooltip, keys.fill(key), at, y + 20 * (1 - high), width, 20 * (high - low)))
            legend.setdefault(key, LegendEntry(keys.fill(key), keys.label(key)))
        y += 26
    bottom = y
    out += _strip_marks(marks, bottom, scale, labels)
    below = bottom + 16 * (1 + _levels(marks, scale, labels)) if marks else bottom
    axis = value_axis(span, below, "ns", labels)
    note = labels("chart.binned_strip", total=total, bins=bins) if bins else ""
    return Chart("", drawing(below + 18, [*axis, *out], labels.of(view.title)), tuple(legend.values()), note)


def _place_marks(marks: Sequence[StretchMark], scale: float, labels: Labels) -> list[tuple[float, float, str, int]]:
    """Each mark with its extent, its text and the line it is written on, so that texts do not run into each other."""
    ends: list[float] = []
    placed = []
    for mark in sorted(marks, key=lambda mark: mark.start):
        label = fit(_mark_text(mark, labels), 420)
        x0 = GUTTER + mark.start * scale
        x1 = GUTTER + mark.end * scale
        at = min(x0, WIDTH - width_of(label, SMALL))
        level = next((number for number, end in enumerate(ends) if end <= at), len(ends))
        ends[level : level + 1] = [at + width_of(label, SMALL) + 10]
        placed.append((x0, x1, label, level))
    return placed


def _mark_text(mark: StretchMark, labels: Labels) -> str:
    """What is written at a mark: its label; where it names a ledger path, how long it is and why before that."""
    label = one_line(labels.of(mark.label))
    if mark.path is None:
        return label
    return f"{labels.time(mark.end - mark.start)} {labels.trail(mark.path)}{labels('word.clause')}{label}"


def _levels(marks: Sequence[StretchMark], scale: float, labels: Labels) -> int:
    return 1 + max((level for *_, level in _place_marks(marks, scale, labels)), default=-1)


def _strip_marks(marks: Sequence[StretchMark], y: float, scale: float, labels: Labels) -> Iterator[str]:
    for x0, x1, label, level in _place_marks(marks, scale, labels):
        middle = y + 4
        line = middle + 14 + 16 * level
        at = min(x0, WIDTH - width_of(label, SMALL))
        yield el("path", class_="bracket", fill="none", d=f"M{x0:.1f} {y - 2:.1f}V{middle:.1f}H{x1:.1f}V{y - 2:.1f}")
        yield el("path", class_="leader", fill="none", d=f"M{x0:.1f} {middle:.1f}V{line - 9:.1f}") if level else ""
        yield text(label, at, line, "t-mark")


def _shares(
    intervals: Sequence[tuple[int, int, str]], span: int, bins: int
) -> list[tuple[float, float, str, float, float]]:
    """Equal stretches of a lane, each filled from below in proportion to what its keys take: start, end, key, from, to.

    The area of a key is its time: a lane of many short intervals looks as busy as it is.
    """
    width = span / bins
    shares_of_bin: list[dict[str, float]] = [{} for _ in range(bins)]
    for a, b, key in intervals:
        for number in range(max(0, int(a / width)), min(bins - 1, int((b - 1) / width)) + 1):
            part = min(b, (number + 1) * width) - max(a, number * width)
            shares_of_bin[number][key] = shares_of_bin[number].get(key, 0.0) + part / width
    blocks = []
    for number, shares in enumerate(shares_of_bin):
        level = 0.0
        for key, share in sorted(shares.items()):
            top = min(1.0, level + share)
            blocks.append((number * width, (number + 1) * width, key, level, top))
            level = top
    return blocks
