"""How much of a result a format has room for. All else is in report.json."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """``written``: the numbers of the problems that are written out, ``None``: all; ``further``: problems that are
    listed after them. ``rows``: of one table. ``inputs``: profiles whose files are listed. ``charts``: drawings behind
    those of the first page. ``ids_only``: rules that found nothing, and need nothing, are listed by their ids."""

    written: frozenset[str] | None
    further: int
    rows: int
    inputs: int
    diagnostics: int
    charts: int
    ids_only: bool = False

    def writes(self, number: str) -> bool:
        """Whether the problem of this number is written out."""
        return self.written is None or number in self.written
