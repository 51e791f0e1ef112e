"""A drawing with its title, legend and note."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup


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
