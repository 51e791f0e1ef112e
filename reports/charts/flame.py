"""Flame graphs: time or memory by call stack, callers above what they call, as wide as their time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from advisor_core.api.renderers import Flame, FlameView, FrameKind
from reports.charts.chart import Chart, LegendEntry
from reports.charts.svg import SMALL, WIDTH, drawing, most_letters, rect, text, width_of
from reports.labels import Labels, one_line

HIGH = 18.0
THINNEST = 4.0
"""A box of fewer px is not drawn."""

MOST = 96
"""Boxes that are drawn, the widest: what is smaller says little, and a page has three graphs for each rank."""

ROWS = 40
SAME = 0.99
"""A call that takes so much of its caller stands in one box with it; our choice: its edge is not seen."""

_NAMED = 4
"""Frames of a box that its tip names, from the innermost outwards."""

MODULE = "nn.Module: "
"""The begin of the name of a call of a module; its fill says as much."""

_PYTHON = re.compile(r"^(?:.*/)?([^/]+\(\d+\)): (.+)$")


class Box(Struct, frozen=True):
    """``nodes``: those of a chain, the innermost last; ``x`` and ``wide`` in px."""

    nodes: tuple[int, ...]
    row: int
    x: float
    wide: float


def draw_flame(view: FlameView, labels: Labels) -> Chart:
    flame = view.data
    boxes = sorted(_boxes(flame), key=lambda box: (-box.wide, box.row, box.x))
    shown = [box for box in boxes if box.wide >= THINNEST and box.row < ROWS][:MOST]
    below: Counter[int] = Counter()
    for caller, _, took in flame.nodes:
        below[caller] += took
    out = []
    kinds: dict[FrameKind, None] = {}
    for box in sorted(shown, key=lambda box: (box.row, box.x)):
        name, kind = flame.frames[flame.nodes[box.nodes[-1]][1]]
        kinds[kind] = None
        y = box.row * HIGH
        out.append(rect(_tip(view, box, below, labels), f"fl fl-{kind}", box.x, y, box.wide, HIGH - 1))
        if written := _fitting(_short(name, kind, labels), len(box.nodes) - 1, box.wide - 6):
            out.append(text(written, box.x + 3, y + 12.5, "t-cell t-inverse" if kind == "kernel" else "t-cell"))
    rows = 1 + max((box.row for box in shown), default=0)
    hidden = len(boxes) - len(shown)
    notes = [labels(f"flame.note.{flame.of}"), labels("flame.note")]
    if hidden:
        notes.append(labels("flame.cut", count=hidden))
    legend = tuple(LegendEntry(f"fl fl-{kind}", labels(f"flame.kind.{kind}")) for kind in kinds)
    return Chart("", drawing(rows * HIGH + 2, out, labels.of(view.title)), legend, " ".join(notes))


def _boxes(flame: Flame) -> Iterator[Box]:
    """All calls, those of a caller from the longest on; a chain whose calls take all of their callers is one."""
    below: dict[int, list[int]] = {}
    for place, (caller, _, _) in enumerate(flame.nodes):
        below.setdefault(caller, []).append(place)
    for places in below.values():
        places.sort(key=lambda place: (-flame.nodes[place][2], place))
    roots = below.get(-1, [])
    scale = WIDTH / max(1, sum(flame.nodes[place][2] for place in roots))
    waiting = [(roots, 0, 0.0)]
    while waiting:
        places, row, x = waiting.pop()
        for place in places:
            chain = [place]
            took = flame.nodes[place][2]
            while _is_one(flame, below, chain[-1]):
                chain.append(below[chain[-1]][0])
            yield Box(tuple(chain), row, x, took * scale)
            waiting.append((below.get(chain[-1], []), row + 1, x))
            x += took * scale


def _is_one(flame: Flame, below: dict[int, list[int]], place: int) -> bool:
    """Whether a call is drawn in one box with what it calls: frames alone, as the name of a thread or of an operator
    says more than what stands below it."""
    inner = below.get(place, [])
    if not inner or flame.nodes[inner[0]][2] < SAME * flame.nodes[place][2]:
        return False
    return all(flame.frames[flame.nodes[each][1]][1] == "python" for each in (place, inner[0]))


def _tip(view: FlameView, box: Box, below: Mapping[int, int], labels: Labels) -> str:
    """``below``: what the calls below each call take together, of the outermost ones below -1."""
    flame = view.data
    outer, inner = flame.nodes[box.nodes[0]], flame.nodes[box.nodes[-1]]
    own, total = inner[2] - below.get(box.nodes[-1], 0), max(1, below.get(-1, 0))
    names = [frame_name(*flame.frames[flame.nodes[place][1]], labels) for place in box.nodes[::-1]]
    trail = " < ".join(names[:_NAMED]) + (" < …" if len(names) > _NAMED else "")
    said = labels(
        "flame.tip", time=labels.time(outer[2]), share=f"{100 * outer[2] / total:.1f} %", own=labels.time(own)
    )
    return f"{trail}{labels('word.colon')}{said}"


def frame_name(name: str, kind: FrameKind, labels: Labels) -> str:
    """A frame as it is recorded, or what stands for it."""
    if kind == "thread":
        return labels("flame.thread", thread=name)
    return labels(f"flame.{kind}") if kind in ("unknown", "earlier", "left_out") else one_line(name)


def _short(name: str, kind: FrameKind, labels: Labels) -> tuple[str, str]:
    """The part of a frame that matters most, and the part that goes where there is no room."""
    if kind == "python" and (found := _PYTHON.match(name)):
        return one_line(found[2]), one_line(found[1])
    shown = frame_name(name, kind, labels)
    return (shown.removeprefix(MODULE) if kind == "module" else shown), ""


def _fitting(name: tuple[str, str], more: int, wide: float) -> str:
    """As much of a name as there is room for, with the number of ``more`` frames of its chain; '' for nothing."""
    first, place = name
    chain = f" (+{more})" if more else ""
    for written in (f"{first} {place}{chain}" if place else f"{first}{chain}", f"{first}{chain}", first):
        if width_of(written, SMALL) <= wide:
            return written
    length = most_letters(2, len(first), lambda length: width_of(first[:length] + "…", SMALL) <= wide)
    return f"{first[:length]}…" if length > 2 else ""
