"""Values and files in the form of the text export."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..export.generation import Cell
from ..timeline import HostSpan

Row = Sequence[Cell]


def us_text(ns: int) -> str:
    """A time stamp in us with its nanoseconds, exact."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def us_column(ns: int) -> str:
    """A time stamp of a table: exports end these values with a tab."""
    return us_text(ns) + "\t"


def mean(values: Sequence[float]) -> float:
    """The arithmetic mean."""
    return sum(values) / len(values)


def has_device_work(span: HostSpan) -> bool:
    """Whether a span appears in operator tables at all: annotations of steps and Python frames do not."""
    return span.kind != "python" and not span.name.startswith("ProfilerStep#")


def write_table(path: Path, rows: Iterable[Row], line_end: str) -> None:
    """Write a CSV table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator=line_end).writerows(rows)
