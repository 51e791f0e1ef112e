"""The pieces of a page that there are thousands of, without the way through a template; every value is escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from markupsafe import Markup, escape

from reports.labels import visible
from reports.prose import KEPT, trusted

_UNIT_SPACE = re.compile(r"(?<=\d) (?=(?:%|ns|µs|ms|s|B|kB|MB|GB)(?:\W|$))")
_BARE = ("value", "extra")
"""Styles of words that look as any others in a page."""


def finalized(value: Any) -> Any:
    """Plain text on its way into the page: nothing invisible, and no line break between a number and its unit."""
    if type(value) is not str:
        return value
    shown = visible(value)
    return _UNIT_SPACE.sub("\u00a0", shown) if " " in shown else shown


@lru_cache(KEPT)
def words(text: str, style: str) -> Markup:
    """Plain text in a style."""
    shown = escape(finalized(text))
    if style == "strong":
        return trusted(f"<b>{shown}</b>")
    return trusted(f'<span class="{escape(style)}">{shown}</span>') if style and style not in _BARE else shown


@lru_cache(KEPT)
def code(text: str, style: str) -> Markup:
    """A name from the recording or the code; in a cell it looks as the rest of its table."""
    shown = escape(finalized(text))
    if style == "cell":
        return shown
    classes = f' class="{escape(style)}"' if style else ""
    return trusted(f"<code{classes}>{shown}</code>")


def cells(contents: Sequence[Markup], classes: Sequence[str], *, headed: bool) -> Markup:
    """The cells of a row of a table, each with the classes of its column; ``headed``: the first says what the row is
    about."""
    written = [f"{_opened(classes[place])}{content}</td>" for place, content in enumerate(contents)]
    if headed and written:
        written[0] = f'<th scope="row">{contents[0]}</th>'
    return trusted("".join(written))


@cache
def _opened(classes: str) -> str:
    return f'<td class="{escape(classes)}">' if classes else "<td>"
