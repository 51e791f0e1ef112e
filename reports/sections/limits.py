"""How much of a result a format has room for. All else is in report.json."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """``trees``: problems that are written out with their causes; ``further``: problems that are listed after them.
    ``rows``: of one table. ``inputs``: profiles whose files are listed. ``charts``: drawings behind those of the first
    page."""

    trees: int
    further: int
    rows: int
    inputs: int
    diagnostics: int
    charts: int
