"""Tables and numbers of the pages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table, as Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def percent(value: float, digits: int = 0) -> str:
    """A share; ``-`` for one that there is not."""
    return "-" if value != value else f"{100 * value:.{digits}f} %"
