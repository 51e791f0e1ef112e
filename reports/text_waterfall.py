"""A waterfall in characters, for what cannot draw."""

from __future__ import annotations

from reports.blocks import Waterfall
from reports.comparison.words import signed
from reports.labels import Labels, one_line, shorten
from reports.prose import wide

BAR = 24
NAME = 44


def text_waterfall(data: Waterfall, t: Labels) -> list[str]:
    """A line for each total and each part; a part's bar is as long as the part, from left to right."""
    largest = max((abs(part.ns) for part in data.parts), default=0)
    names = [shorten(one_line(part.name), NAME) for part in data.parts]
    width = max(map(wide, (*names, *data.ends)))
    values = [signed(part.ns, t) for part in data.parts]
    totals = [t.wall(data.before_ns), t.wall(data.after_ns)]
    room = max(map(len, (*values, *totals)), default=0)
    lines = [f"{_padded(data.ends[0], width)}  {totals[0]:>{room}}"]
    for part, name, value in zip(data.parts, names, values, strict=True):
        length = max(1, round(BAR * abs(part.ns) / largest)) if part.ns else 0
        lines.append(f"{_padded(name, width)}  {value:>{room}}  {('█' if part.ns > 0 else '░') * length}")
    return [*lines, f"{_padded(data.ends[1], width)}  {totals[1]:>{room}}"]


def _padded(name: str, width: int) -> str:
    return name + " " * (width - wide(name))
