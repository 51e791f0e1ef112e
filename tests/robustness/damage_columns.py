"""Ways in which a table keeps all of its rows and is wrong nevertheless: a column that is gone, that is written in
another unit, or in which two rows have each other's values. The same seed does the same damage."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from random import Random

Cells = list[list[str]]
"""The rows of a CSV file, the header first."""

OfColumn = Callable[[Cells, int], Cells | None]
"""Rows and the place of a column to damaged rows; ``None`` where the column cannot be damaged so."""


def dropped(rows: Cells, place: int) -> Cells:
    return [row[:place] + row[place + 1 :] for row in rows]


def emptied(rows: Cells, place: int) -> Cells:
    return [rows[0], *([*row[:place], "", *row[place + 1 :]] for row in rows[1:])]


def thousandfold(rows: Cells, place: int) -> Cells | None:
    """Microseconds have become nanoseconds, and the heading says nothing of it."""
    if not rows[0][place].endswith("(us)"):
        return None
    return [rows[0], *([*row[:place], _thousandfold(row[place]), *row[place + 1 :]] for row in rows[1:])]


def in_ns(rows: Cells, place: int) -> Cells | None:
    """The same, and the heading says so."""
    changed = thousandfold(rows, place)
    if changed is not None:
        name = rows[0][place].replace("(us)", "(ns)")
        changed[0] = [*rows[0][:place], name, *rows[0][place + 1 :]]
    return changed


def exchanged(rows: Cells, place: int) -> Cells | None:
    """The rows with the largest and the smallest number have each other's."""
    numbers = [(value, number) for number, row in enumerate(rows[1:], 1) if (value := _number(row[place])) is not None]
    if not numbers or max(numbers)[0] == min(numbers)[0]:
        return None
    return _exchanged(rows, place, max(numbers)[1], min(numbers)[1])


OF_COLUMNS: Mapping[str, OfColumn] = {
    "dropped": dropped,
    "emptied": emptied,
    "thousandfold": thousandfold,
    "in ns": in_ns,
    "exchanged": exchanged,
}


def each_column(data: bytes) -> Iterator[tuple[str, bytes]]:
    """A CSV file with every damage to every column, each with its name: ``Duration(us)-dropped``."""
    rows = _cells(data)
    for place, name in enumerate(rows[0]):
        for how, damage in OF_COLUMNS.items():
            if (changed := damage(rows, place)) is not None:
                yield f"{name}-{how}", _csv(changed)


def rows_exchanged(data: bytes, column: str, chance: Random) -> bytes:
    """Two rows anywhere have each other's value of a column."""
    rows = _cells(data)
    one, other = chance.sample(range(1, len(rows)), 2)
    return _csv(_exchanged(rows, rows[0].index(column), one, other))


def _exchanged(rows: Cells, place: int, one: int, other: int) -> Cells:
    changed = [list(row) for row in rows]
    changed[one][place], changed[other][place] = rows[other][place], rows[one][place]
    return changed


def _cells(data: bytes) -> Cells:
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"))))


def _csv(rows: Cells) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None


def _thousandfold(cell: str) -> str:
    """The point moves; a time of 16 digits keeps all of them."""
    whole, _, part = cell.strip().partition(".")
    return cell if _number(cell) is None else f"{whole}{part[:3]:0<3}.{part[3:] or '0'}"
