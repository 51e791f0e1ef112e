"""The cells of maps, the darker the more."""

from __future__ import annotations

from collections.abc import Mapping

from reports.charts.svg import el, mark_text

SHADES = 8
"""Shades above the lightest, which is 0."""

_DARK = frozenset("5678")
"""Those on which a text is light."""


def shade_of(share: float) -> str:
    """The shade of a value at this share of the range that is drawn."""
    return str(min(SHADES, max(0, round(SHADES * share))))


def cell_text(content: str, x: float, y: float, shade: str) -> str:
    """A text in the middle of a cell of that shade."""
    return mark_text(content, x, y, dark=shade in _DARK)


def merged(of_shade: Mapping[str, str]) -> list[str]:
    """A mark for each shade, of the path of all its cells."""
    return [el("path", class_=f"h h{shade}", d=path) for shade, path in sorted(of_shade.items())]
