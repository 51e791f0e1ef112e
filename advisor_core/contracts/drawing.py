"""The drawing type: views of a rank, made from declared facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from advisor_core.contracts.facts import Facts
from advisor_core.contracts.keys import AnyKey

if TYPE_CHECKING:
    from advisor_core.result.view import View


@dataclass(frozen=True)
class Drawing:
    """Views of a rank, by name ``module.what``. Where a needed fact is not known there is nothing to draw."""

    name: str
    meaning: str
    needs: tuple[AnyKey, ...]
    wants: tuple[AnyKey, ...]
    draw: Callable[[Facts], Sequence[View]] = field(repr=False)


def drawing(
    name: str, *, needs: Iterable[AnyKey], wants: Iterable[AnyKey] = ()
) -> Callable[[Callable[[Facts], Sequence[View]]], Drawing]:
    """Declare the decorated function as the drawing ``name``. Its docstring's first line is its meaning."""
    given = tuple(needs), tuple(wants)

    def declare(draw: Callable[[Facts], Sequence[View]]) -> Drawing:
        lines = (draw.__doc__ or "").strip().splitlines()
        return Drawing(name, lines[0] if lines else "", *given, draw)

    return declare
