"""The fills of charts as patterns, which differ in grey too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from reports.charts.svg import el
from reports.prose import trusted

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
        for family, drawings in _PATTERNS.items()
        for number, drawing in enumerate(drawings)
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
