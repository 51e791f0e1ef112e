"""SVG by hand: elements, texts that fit their place, marks with a tooltip. Every value passes through `el`, which
escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from html import escape

from markupsafe import Markup

from reports.labels import one_line, shorten
from reports.prose import trusted

MAX_MARKS = 256
WIDTH = 940

GUTTER = 150
"""Left column of row labels."""

_SQUARE = re.compile(r"[\u2e80-\U0010ffff]")

SMALL = 11.5
"""Size of a text within a mark or beside it, and of names above columns, px; other texts: see `width_of`."""


def el(tag: str, children: str | Sequence[str] = "", **attributes: object) -> str:
    """An element. Attribute values are escaped here, text by `text`; ``class_`` and ``_`` read as in HTML."""
    written = "".join(
        [f' {_name(name)}="{_attribute(value)}"' for name, value in attributes.items() if value is not None]
    )
    body = children if isinstance(children, str) else "".join(children)
    return f"<{tag}{written}>{body}</{tag}>" if body else f"<{tag}{written}/>"


@cache
def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _attribute(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else escape(str(value))


def text(content: str, x: float, y: float, class_: str = "", **attributes: object) -> str:
    return el("text", escape(one_line(content)), x=float(x), y=float(y), class_=class_ or None, **attributes)


def mark_text(content: str, x: float, y: float, *, dark: bool) -> str:
    """A text in the middle of a mark, light where the mark is ``dark``."""
    return text(content, x, y, "t-cell t-inverse" if dark else "t-cell", text_anchor="middle")


def box_path(x: float, y: float, wide: float, high: float) -> str:
    """A rectangle as a part of a path: many of one fill are one mark then."""
    return f"M{x:.1f} {y:.1f}h{wide:.1f}v{high:.1f}h{-wide:.1f}z"


def width_of(content: str, size: float = 12.5) -> float:
    """About how wide a text is: Chinese characters are square, Latin ones a little over half as wide as high."""
    wide = 0 if content.isascii() else len(_SQUARE.findall(content))
    return size * (wide + 0.56 * (len(content) - wide))


def fit(content: str, width: float) -> str:
    """``content`` shortened in its middle to fit ``width``."""
    if width_of(content) <= width:
        return content
    return shorten(content, most_letters(3, len(content), lambda length: width_of(shorten(content, length)) <= width))


def most_letters(least: int, most: int, fits: Callable[[int], bool]) -> int:
    """The largest number of letters that fits, at least ``least``; more letters are never narrower."""
    if most <= least or fits(most):
        return most
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if fits(middle) else (least, middle)
    return least


def drawing(height: float, children: Sequence[str], label: str) -> Markup:
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


def rect(title: str, class_: str, x: float, y: float, width: float, height: float) -> str:
    return el(
        "rect",
        el("title", escape(one_line(title))) if title else "",
        class_=class_,
        x=float(x),
        y=float(y),
        width=max(width, 0.4),
        height=float(height),
    )
