"""Charts as hand-written SVG: no script, no dependency, readable in print, in the dark and without colour.

Colour comes from classes that the style sheet defines (`f-compute`, `f-communication`, ...), each with its own pattern,
so that a chart reads the same in grey. Every mark has a `<title>`; above `MAX_MARKS` marks a chart is aggregated and
its note says how. Every value passes through `el`, which escapes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from markupsafe import Markup

from advisor_core.result.view import (
    BarsView,
    CurveView,
    HeatmapView,
    StackedBarsView,
    StackRow,
    StretchMark,
    StripView,
    View,
)
from reports.labels import Labels, one_line, prettify, shorten
from reports.ledgers import CLASSES, Ledger, Node
from reports.prose import trusted

MAX_MARKS = 256
WIDTH = 940
GUTTER = 150
"""Left column of row labels."""

FAMILIES = (*CLASSES, "overlap")
VARIANTS = 4
"""Fills within a family, for its causes side by side."""

CURVE_HEIGHT = 170
EXTRA_FILLS = 6
"""Fills for keys that belong to no family."""

_ALIASES = {
    "computing": "compute",
    "comm": "communication",
    "uncovered": "communication",
    "uncovered_communication": "communication",
    "overlapped": "overlap",
    "free": "idle",
    "bubble": "idle",
}


def el(tag: str, children: str | Sequence[str] = "", **attributes: object) -> str:
    """An element. Attribute values are escaped here, text by `text`; ``class_`` and ``_`` read as in HTML."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    body = children if isinstance(children, str) else "".join(children)
    return f"<{tag}{written}>{body}</{tag}>" if body else f"<{tag}{written}/>"


def _attribute(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def text(content: str, x: float, y: float, class_: str = "", **attributes: object) -> str:
    return el("text", escape(one_line(content)), x=float(x), y=float(y), class_=class_ or None, **attributes)


def width_of(content: str, size: float = 12.5) -> float:
    """About how wide a text is: Chinese characters are square, Latin ones a little over half as wide as high."""
    return sum(size if ord(char) > 0x2E7F else size * 0.56 for char in content)


def fit(content: str, width: float) -> str:
    """``content`` shortened in its middle to fit ``width``."""
    if width_of(content) <= width:
        return content
    length = len(content)
    while length > 3 and width_of(shorten(content, length)) > width:
        length -= 1
    return shorten(content, length)


def _svg(height: float, children: Sequence[str], label: str) -> Markup:
    return trusted(
        el(
            "svg",
            children,
            viewBox=f"0 0 {WIDTH} {round(height)}",
            class_="chart",
            role="img",
            aria_label=one_line(label),
        )
    )


def _mark(title: str, class_: str, x: float, y: float, width: float, height: float) -> str:
    return el(
        "rect",
        el("title", escape(one_line(title))),
        class_=class_,
        x=float(x),
        y=float(y),
        width=max(width, 0.4),
        height=float(height),
    )


# --- keys: which fill, which label


class Keys:
    """Fills of the keys of one chart: a family keeps its own everywhere, its causes and all others take the next."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._seen: dict[str | None, list[str]] = {}

    def family(self, key: str) -> str | None:
        head = key.partition("/")[0].lower()
        head = _ALIASES.get(head, head)
        return head if head in FAMILIES else None

    def fill(self, key: str) -> str:
        family = self.family(key)
        if family and "/" not in key:
            return f"f f-{family}"
        seen = self._seen.setdefault(family, [])
        if key not in seen:
            seen.append(key)
        number = seen.index(key)
        return f"f f-{family}-{number % VARIANTS}" if family else f"f f-x{number % EXTRA_FILLS}"

    def label(self, key: str) -> str:
        family = self.family(key)
        if family and "/" not in key:
            return self._labels(f"key.{family}")
        return self._labels.trail(key) if family else prettify(one_line(key))


@dataclass(frozen=True)
class LegendEntry:
    fill: str
    label: str


@dataclass(frozen=True)
class Chart:
    """A drawing with what belongs to it."""

    title: str
    svg: Markup
    legend: tuple[LegendEntry, ...] = ()
    note: str = ""
    rank: int | None = None


# --- the bars of the first screen


def ledger_bars(ledgers: Sequence[Ledger], labels: Labels, names: Sequence[str]) -> Markup:
    """One bar per rank to a common scale: the trunk of the ledger, below it a thin strip with the causes by name."""
    scale = (WIDTH - GUTTER) / max([ledger.wall_ns for ledger in ledgers] + [1])
    keys = Keys(labels)
    out: list[str] = []
    y = 2.0
    for ledger, name in zip(ledgers, names, strict=True):
        out.append(text(fit(name, GUTTER - 28), 0, y + 11, "t-strong"))
        out.append(text(labels.wall(ledger.wall_ns), 0, y + 27, "t-muted"))
        x = float(GUTTER)
        for root in ledger.roots:
            fill = keys.fill(root.path)
            width = root.ns * scale
            value = f"{labels.path(root.path)}{labels('word.colon')}{labels.time(root.ns)} ({labels.share(root.share)})"
            out.append(_mark(value, fill, x, y, width, 24))
            said = f"{labels.time(root.ns)} · {labels.share(root.share)}"
            said = said if width_of(said) + 10 < width else labels.share(root.share)
            if width_of(said) + 4 < width:
                middle = x + width / 2
                out.append(_plate(said, middle, y))
            out += _causes(root, fill, x, y + 26, scale, ledger, labels)
            x += width
        y += 62
    return _svg(y - 6, out, labels("first.where"))


def _plate(said: str, middle: float, y: float) -> str:
    """A label on a patterned bar, on a plate of its own so that it reads on any fill."""
    width = width_of(said) + 8
    plate = el("rect", class_="plate", x=middle - width / 2, y=y + 4, width=width, height=16.0, rx=2)
    return plate + text(said, middle, y + 16.5, "t-value", text_anchor="middle")


def _causes(root: Node, fill: str, x: float, y: float, scale: float, ledger: Ledger, labels: Labels) -> Iterator[str]:
    """The strip of causes below a bar. A name is written where it fits under its part of the bar, the largest first;
    all are in the tooltips and in the table."""
    end = x + root.ns * scale
    free = x
    for number, leaf in enumerate(sorted(root.leaves(), key=lambda leaf: (-leaf.ns, leaf.path))):
        width = leaf.ns * scale
        if width < 0.2:
            continue
        name, time = labels.trail(leaf.path), labels.time(leaf.ns)
        tooltip = f"{name}{labels('word.colon')}{time} ({labels.share(ledger.share(leaf.ns))})"
        yield _mark(tooltip, f"{fill} cause tint{min(number, 3)}", x, y, width, 6)
        room = (end - x if number == 0 else width) + 4
        wordings = (f"{name} {time}", name, labels.path(leaf.path))
        said = next((said for said in wordings if width_of(said, 11.5) <= room), "")
        if said and x >= free:
            yield text(said, x + 1, y + 19, "t-small")
            free = x + width_of(said, 11.5) + 10
        x += width


# --- views


def draw(view: View, labels: Labels) -> Chart:
    """Draw a view."""
    title = labels.of(view.title)
    match view:
        case BarsView():
            chart = _bars(view, labels)
        case StackedBarsView():
            chart = _stacked(view, labels)
        case StripView():
            chart = _strip(view, labels)
        case HeatmapView():
            chart = _heatmap(view, labels)
        case CurveView():
            chart = _curve(view, labels)
    named = view.rank is not None and labels("word.rank", rank=view.rank) in title
    title = f"{view.role} · {title}" if view.role else title
    return replace(chart, title=title, rank=None if named else view.rank)


def _axis(end: float, bottom: float, unit: str, labels: Labels) -> list[str]:
    """Vertical hairlines at round values from 0 to ``end``, with their values."""
    out = []
    step = _round_step(end / 5)
    for number in range(int(end / step + 1e-9) + 1):
        value = number * step
        x = GUTTER + (WIDTH - GUTTER) * value / end
        said = labels.quantity(round(value) if float(value).is_integer() else value, unit) if value else "0"
        anchor = "start" if number == 0 else "end" if x + width_of(said) / 2 > WIDTH else "middle"
        out.append(el("line", class_="grid", x1=x, x2=x, y1=0, y2=bottom))
        out.append(text(said, x, bottom + 13, "t-small", text_anchor=anchor))
    return out


def _round_step(least: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def _pick(rows: Sequence[Any], limit: int, size: Callable[[Any], float]) -> list[Any]:
    """At most ``limit`` rows, evenly chosen by size, in their own order; the largest and the smallest are there."""
    if len(rows) <= limit:
        return list(rows)
    by_size = sorted(range(len(rows)), key=lambda number: (-size(rows[number]), number))
    chosen = {by_size[round(step * (len(rows) - 1) / (limit - 1))] for step in range(limit)}
    return [rows[number] for number in sorted(chosen)]


def _stacked(view: StackedBarsView, labels: Labels) -> Chart:
    rows = view.data.rows
    most = max((len(row.parts) for row in rows), default=1) or 1

    def total(row: StackRow) -> float:
        return float(sum(part.value for part in row.parts))

    shown = _pick(rows, max(3, min(32, MAX_MARKS // most)), total)
    top = max([total(row) for row in shown] + [1e-12])
    keys = Keys(labels)
    pitch, bar = (22, 16) if len(shown) <= 16 else (14, 11)
    bottom = len(shown) * pitch + 4
    out = _axis(top, bottom, view.unit, labels)
    seen: dict[str, LegendEntry] = {}
    for number, row in enumerate(shown):
        y = number * pitch + 3.0
        x = float(GUTTER)
        out.append(text(fit(one_line(row.label), GUTTER - 12), 0, y + bar - 4, "t-label"))
        for part in row.parts:
            key = part.key
            width = (WIDTH - GUTTER) * part.value / top
            value = labels.quantity(part.value, view.unit)
            out.append(_mark(f"{row.label} · {keys.label(key)}: {value}", keys.fill(key), x, y, width, bar))
            seen.setdefault(key, LegendEntry(keys.fill(key), keys.label(key)))
            x += width
    note = labels("chart.sampled", shown=len(shown), total=len(rows)) if len(shown) < len(rows) else ""
    return Chart("", _svg(bottom + 18, out, labels.of(view.title)), tuple(seen.values()), note)


def _bars(view: BarsView, labels: Labels) -> Chart:
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
        out.append(_mark(f"{name}: {value} {note}", "f f-compute", gutter, y, width, 15))
        out.append(text(value, gutter + width + 6, y + 12, "t-value"))
        out.append(text(fit(note, 180 - width_of(value)), gutter + width + 16 + width_of(value), y + 12, "t-small"))
    more = labels("chart.largest", shown=len(shown), total=len(rows)) if len(shown) < len(rows) else ""
    return Chart("", _svg(len(shown) * 22 + 4, out, labels.of(view.title)), (), more)


def _strip(view: StripView, labels: Labels) -> Chart:
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
    seen: dict[str, LegendEntry] = {}
    for lane, intervals in zip(lanes, keyed, strict=True):
        out.append(text(fit(one_line(lane.label), GUTTER - 12), 0, y + 14, "t-label"))
        out.append(el("rect", class_="track", x=float(GUTTER), y=y, width=float(WIDTH - GUTTER), height=20.0))
        blocks = _shares(intervals, span, bins) if bins else [(a, b, key, 0.0, 1.0) for a, b, key in intervals]
        for a, b, key, low, high in blocks:
            tooltip = f"{keys.label(key)}: {labels.time((b - a) * (high - low))} @ {labels.time(a)}"
            at, width = GUTTER + a * scale, (b - a) * scale
            out.append(_mark(tooltip, keys.fill(key), at, y + 20 * (1 - high), width, 20 * (high - low)))
            seen.setdefault(key, LegendEntry(keys.fill(key), keys.label(key)))
        y += 26
    bottom = y
    out += _strip_marks(marks, bottom, scale, labels)
    below = bottom + 16 * (1 + _levels(marks, scale, labels)) if marks else bottom
    axis = _axis(span, below, "ns", labels)
    note = labels("chart.binned_strip", total=total, bins=bins) if bins else ""
    return Chart("", _svg(below + 18, [*axis, *out], labels.of(view.title)), tuple(seen.values()), note)


def _place_marks(marks: Sequence[StretchMark], scale: float, labels: Labels) -> list[tuple[float, float, str, int]]:
    """Each mark with its extent, its text and the line it is written on, so that texts do not run into each other."""
    ends: list[float] = []
    placed = []
    for mark in sorted(marks, key=lambda mark: mark.start):
        said = fit(_mark_text(mark, labels), 420)
        x0 = GUTTER + mark.start * scale
        x1 = GUTTER + mark.end * scale
        at = min(x0, WIDTH - width_of(said, 11.5))
        level = next((number for number, end in enumerate(ends) if end <= at), len(ends))
        ends[level : level + 1] = [at + width_of(said, 11.5) + 10]
        placed.append((x0, x1, said, level))
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
    for x0, x1, said, level in _place_marks(marks, scale, labels):
        middle = y + 4
        line = middle + 14 + 16 * level
        at = min(x0, WIDTH - width_of(said, 11.5))
        yield el("path", class_="bracket", fill="none", d=f"M{x0:.1f} {y - 2:.1f}V{middle:.1f}H{x1:.1f}V{y - 2:.1f}")
        yield el("path", class_="leader", fill="none", d=f"M{x0:.1f} {middle:.1f}V{line - 9:.1f}") if level else ""
        yield text(said, at, line, "t-mark")


def _shares(
    intervals: Sequence[tuple[int, int, str]], span: int, bins: int
) -> list[tuple[float, float, str, float, float]]:
    """Equal stretches of a lane, each filled from below in proportion to what its keys take: start, end, key, from, to.

    The area of a key is its time: a lane of many short intervals looks as busy as it is.
    """
    width = span / bins
    taken: list[dict[str, float]] = [{} for _ in range(bins)]
    for a, b, key in intervals:
        for number in range(max(0, int(a / width)), min(bins - 1, int((b - 1) / width)) + 1):
            part = min(b, (number + 1) * width) - max(a, number * width)
            taken[number][key] = taken[number].get(key, 0.0) + part / width
    blocks = []
    for number, shares in enumerate(taken):
        level = 0.0
        for key, share in sorted(shares.items()):
            top = min(1.0, level + share)
            blocks.append((number * width, (number + 1) * width, key, level, top))
            level = top
    return blocks


def _heatmap(view: HeatmapView, labels: Labels) -> Chart:
    rows = [one_line(row) for row in view.data.rows]
    columns = [one_line(column) for column in view.data.columns]
    values: Sequence[Sequence[float | None]] = view.data.values
    rows, columns, values, step = _shrink(rows, columns, values)
    known = [value for line in values for value in line if value is not None]
    low, high = min([0.0, *known]), max([0.0, *known])
    cell = min(86.0, (WIDTH - GUTTER) / max(1, len(columns)))
    written, short = _cell_text(values, cell, view.unit, labels)
    widest = max((width_of(column, 11.5) + 8 for column in columns), default=cell)
    stride = 1 if written else math.ceil(widest / cell)
    out = [
        text(fit(column, stride * cell - 4), GUTTER + (number + 0.5) * cell, 12, "t-small", text_anchor="middle")
        for number, column in enumerate(columns)
        if number % stride == 0
    ]
    for number, (row, line) in enumerate(zip(rows, values, strict=True)):
        y = 18.0 + number * 22
        out.append(text(fit(row, GUTTER - 12), 0, y + 14, "t-label"))
        for place, value in enumerate(line):
            x = GUTTER + place * cell
            said = "–" if value is None else labels.quantity(value, view.unit)
            level = "none" if value is None else str(min(8, math.ceil(8 * (value - low) / (high - low or 1))))
            out.append(_mark(f"{row} · {columns[place]}: {said}", f"h h{level}", x + 0.5, y, cell - 1, 20))
            if written:
                ink = "t-cell" + (" t-inverse" if level in "5678" else "")
                out.append(text(said.split(" ")[0] if short else said, x + cell / 2, y + 14, ink, text_anchor="middle"))
    note = labels("chart.binned_heat", rows=step[0], columns=step[1]) if step != (1, 1) else ""
    scale = (
        LegendEntry("h h0", labels.quantity(low, view.unit)),
        LegendEntry("h h8", labels.quantity(high, view.unit)),
    )
    return Chart("", _svg(20 + len(rows) * 22, out, labels.of(view.title)), scale if short or not written else (), note)


def _cell_text(values: Sequence[Sequence[float | None]], cell: float, unit: str, labels: Labels) -> tuple[bool, bool]:
    """Whether values fit into their cells, and whether they do so only without their unit."""
    said = [labels.quantity(value, unit) for line in values for value in line if value is not None]
    widths = [(width_of(text, 11.5), width_of(text.split(" ")[0], 11.5)) for text in said]
    if all(whole <= cell - 4 for whole, _ in widths):
        return True, False
    same_unit = len({text.partition(" ")[2] for text in said}) == 1
    return same_unit and all(number <= cell - 4 for _, number in widths), True


def _shrink(
    rows: list[str], columns: list[str], values: Sequence[Sequence[float | None]]
) -> tuple[list[str], list[str], Sequence[Sequence[float | None]], tuple[int, int]]:
    """Join neighbouring rows and columns until at most `MAX_MARKS` cells are left; a cell keeps the maximum."""
    high, wide = 1, 1
    while -(-len(rows) // high) * -(-len(columns) // wide) > MAX_MARKS:
        if len(rows) / high >= len(columns) / wide:
            high += 1
        else:
            wide += 1
    if (high, wide) == (1, 1):
        return rows, columns, values, (1, 1)

    def joined(names: list[str], step: int) -> list[str]:
        parts = [names[at : at + step] for at in range(0, len(names), step)]
        return [part[0] if len(part) == 1 else f"{part[0]} … {part[-1]}" for part in parts]

    def largest(top: int, left: int) -> float | None:
        cells = (value for line in values[top : top + high] for value in line[left : left + wide] if value is not None)
        return max(cells, default=None)

    small = [[largest(top, left) for left in range(0, len(columns), wide)] for top in range(0, len(rows), high)]
    return joined(rows, high), joined(columns, wide), small, (high, wide)


def _curve(view: CurveView, labels: Labels) -> Chart:
    """Areas that share their ground, one in front of the other; a value holds until the next."""
    data = view.data
    span = max(1, data.end - data.start)
    times = [time - data.start for time in data.times]
    top = max([float(value) for one in data.series for value in one.values] + [1e-12])
    scale, ground, head = (WIDTH - GUTTER) / span, CURVE_HEIGHT + 6.0, 6.0
    keys = Keys(labels)
    out: list[str] = []
    step = _round_step(top / 6)
    for number in range(int(top / step + 1e-9) + 1):
        y = ground - CURVE_HEIGHT * number * step / top
        said = labels.quantity(number * step, view.unit) if number else "0"
        out.append(el("line", class_="grid", x1=float(GUTTER), x2=float(WIDTH), y1=y, y2=y))
        out.append(text(said, GUTTER - 8, y + 4, "t-small", text_anchor="end"))
    seen = []
    for one in data.series:
        values = [float(value) for value in one.values]
        said = labels.of(one.label)
        points = [f"{GUTTER:.1f},{ground:.1f}"]
        for time, until, value in zip(times, [*times[1:], span], values, strict=True):
            y = ground - CURVE_HEIGHT * value / top
            points += [f"{GUTTER + time * scale:.1f},{y:.1f}", f"{GUTTER + until * scale:.1f},{y:.1f}"]
        points.append(f"{WIDTH:.1f},{ground:.1f}")
        most = max(values)
        tip = f"{said}: {labels.quantity(most, view.unit)} @ {labels.time(times[values.index(most)])}"
        fill = keys.fill(one.key)
        out.append(el("polygon", el("title", escape(one_line(tip))), class_=fill, points=" ".join(points)))
        seen.append(LegendEntry(fill, one_line(said)))
    free = 0.0
    for mark in data.marks:
        x = GUTTER + (mark.start - data.start) * scale
        out.append(el("line", class_="tick", x1=x, x2=x, y1=head, y2=ground))
        said = labels.of(mark.label)
        if x >= free:  # a label that would cover the one before is left out
            out.append(text(said, x + 3, ground + 29, "t-small"))
            free = x + width_of(said, 11.5) + 10
    return Chart("", _svg(ground + 34, [*_axis(span, ground, "ns", labels), *out], labels.of(view.title)), tuple(seen))


_HATCH = el("path", class_="ink", d="M-1 1l2-2M0 6l6-6M5 7l2-2")
_BACK = el("path", class_="ink", d="M-1 5l2 2M0 0l6 6M5-1l2 2")
_DOTS = el("path", class_="dot", d="M1 1h1.3v1.3h-1.3zM4 4h1.3v1.3h-1.3z")
_LEVEL = el("path", class_="ink", d="M0 3h6")
_UPRIGHT = el("path", class_="ink", d="M3 0v6")
_PLAIN = ""

_PATTERNS: Mapping[str, Sequence[str]] = {
    "compute": (_PLAIN, _DOTS, _UPRIGHT, _LEVEL),
    "communication": (_HATCH, _PLAIN, _LEVEL, _BACK),
    "idle": (_DOTS, _UPRIGHT, _BACK, _PLAIN),
    "overlap": (_LEVEL, _UPRIGHT, _DOTS, _BACK),
}
_EXTRA_PATTERNS = (_PLAIN, _HATCH, _DOTS, _UPRIGHT, _LEVEL, _BACK)


def patterns() -> Markup:
    """The fills of all charts of a document, defined once: each differs from its neighbours in grey too."""
    drawn = {
        f"{family}-{number}": (family, drawing)
        for family, own in _PATTERNS.items()
        for number, drawing in enumerate(own)
    }
    drawn |= {f"x{number}": (f"x{number}", drawing) for number, drawing in enumerate(_EXTRA_PATTERNS)}
    fills = [
        el(
            "pattern",
            [el("rect", class_="ground", width=6, height=6), drawing],
            id=f"p-{name}",
            class_=f"g-{ground}",
            width=6,
            height=6,
            patternUnits="userSpaceOnUse",
        )
        for name, (ground, drawing) in drawn.items()
    ]
    return trusted(el("svg", el("defs", fills), class_="defs", width=0, height=0, aria_hidden="true"))
