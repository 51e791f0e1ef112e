"""How much of a result a format has room for. All else is in report.json."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reports.blocks import Block


@dataclass(frozen=True)
class Room:
    """What the drawings of ranks may take together: ``size``, in the unit in which ``weigh`` tells it of a block."""

    size: int
    weigh: Callable[[Block], int]


@dataclass(frozen=True)
class Limits:
    """``written``: the numbers of the problems that are written out, ``None``: all; ``further``: problems that are
    listed after them. ``rows``: of one table. ``inputs``: profiles whose files are listed. ``charts``: drawings behind
    those of the first page, ``None``: all; ``room``: what those of ranks share, ``None``: no such limit.
    ``ids_only``: rules that found nothing, and need nothing, are listed by their ids."""

    written: frozenset[str] | None
    further: int
    rows: int
    inputs: int
    diagnostics: int
    charts: int | None
    ids_only: bool = False
    room: Room | None = None

    def writes(self, number: str) -> bool:
        """Whether the problem of this number is written out."""
        return self.written is None or number in self.written
