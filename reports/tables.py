"""Evidence and settings as tables of text, the same for every format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor_core.models.base import Scalar
from advisor_core.models.evidence import Evidence, Source
from advisor_core.models.finding import Finding
from advisor_core.models.run import RunResult
from reports.labels import Labels, is_number, one_line, prettify, shorten

SHOWN_ROWS = 10
CELL = 160
"""Longest text in a cell; the whole is in report.json."""

SHORT = 28
"""Up to so many characters a column is not broken into lines."""

_PLACES = ("line", "offset", "rowid")
_ENDINGS = {
    "_ns": "ns",
    "_us": "us",
    "_ms": "ms",
    "_bytes": "bytes",
    "_mhz": "MHz",
    "_share": "ratio",
    "_ratio": "ratio",
}
"""What the ending of a name says about its unit."""


@dataclass(frozen=True)
class Table:
    """A titled table; ``numeric`` says which columns are set flush right, ``place`` where the rows were read."""

    kind: str
    title: str
    place: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def style(self, column: int) -> str:
        """How a column is set: ``n`` flush right, ``short`` on one line, ``long`` broken where it must be."""
        if self.numeric[column]:
            return "n"
        return "short" if max((len(row[column]) for row in self.rows), default=0) <= SHORT else "long"


def evidence(item: Evidence, result: RunResult, labels: Labels) -> Table:
    """One piece of evidence with its values in readable units."""
    rows = _interval(item, result, labels) if item.kind == "interval" else item.rows
    units = {**item.units, **({"duration": "ns"} if item.kind == "interval" else {})}
    columns = list(dict.fromkeys(name for row in rows for name in row))
    columns.sort(key=lambda name: name not in _PLACES)
    shown = rows[:SHOWN_ROWS] if item.kind != "stack" else rows
    total = item.total_rows or len(rows)
    return Table(
        kind=item.kind,
        title=labels.of(item.title),
        place=place(item.source, labels, item.rank, with_position=not any(name in _PLACES for name in columns)),
        columns=tuple(heading(name, units.get(name), labels) for name in columns),
        numeric=tuple(_is_numeric([row.get(name) for row in shown]) for name in columns),
        rows=tuple(tuple(cell(row.get(name), units.get(name), labels) for name in columns) for row in shown),
        note=labels("evidence.shown", shown=len(shown), total=total) if total > len(shown) else "",
    )


def place(source: Source | None, labels: Labels, rank: int | None = None, with_position: bool = True) -> str:
    """Where evidence was read: file, and line, byte offset or rowid; a table of a database after the file."""
    parts = [labels("word.rank", rank=rank)] if rank is not None else []
    if source is None:
        return labels.join(parts)
    file = one_line(source.file)
    parts.append(f"{file} › {one_line(source.table)}" if source.rowid is not None else file)
    for name in _PLACES if with_position else ():
        if (value := getattr(source, name)) is not None:
            parts.append(labels(f"evidence.at_{name}", n=value))
    return labels.join(parts)


def heading(name: str, unit: str | None, labels: Labels) -> str:
    """A column's heading: the unit stands with each value, so an ending that repeats it goes."""
    if name in _PLACES:
        return labels(f"evidence.{name}")
    if f"evidence.{name}" in labels:
        return labels(f"evidence.{name}")
    repeats = unit in ("ns", "us", "ms", "bytes") and name.endswith(f"_{unit}")
    return prettify(one_line(name.removesuffix(f"_{unit}") if repeats else name))


def cell(value: Scalar, unit: str | None, labels: Labels) -> str:
    """A value; a number without a unit (an id, a line) stays as it is."""
    if value is None:
        return "–"
    if isinstance(value, float) and not unit:
        return f"{value:.6g}" if math.isfinite(value) else "–"
    if unit or isinstance(value, bool):
        return shorten(labels.quantity(value, unit or ""), CELL)
    return shorten(one_line(str(value)), CELL)


def _is_numeric(values: Sequence[Scalar]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(is_number(value) for value in known)


def _interval(item: Evidence, result: RunResult, labels: Labels) -> list[dict[str, Scalar]]:
    """Start and end read from the start of the step they fall in; the recorded start stands beside them."""
    row: dict[str, Scalar] = {}
    if item.lane:
        row["lane"] = item.lane
    if item.start_ns is not None and item.end_ns is not None:
        row["duration"] = item.end_ns - item.start_ns
    for name, value in (("start", item.start_ns), ("end", item.end_ns)):
        if value is not None:
            row[name] = _relative(value, item.rank, result, labels)
    if item.start_ns is not None:
        row["recorded"] = f"{item.start_ns} ns"
    return [{**row, **extra} for extra in item.rows] or [row]


def _relative(ns: int, rank: int | None, result: RunResult, labels: Labels) -> str:
    steps = [step for step in result.profile.steps if rank is None or step.rank == rank]
    for step in steps:
        if step.start_ns <= ns <= step.end_ns and step.step is not None:
            return f"{labels.time(ns - step.start_ns)} {labels('evidence.into_step', step=step.step)}"
    first = min((step.start_ns for step in steps), default=None)
    return f"{labels.time(ns - first)} {labels('evidence.into_rank')}" if first is not None else f"{ns} ns"


def observation(finding: Finding, labels: Labels) -> list[tuple[str, str]]:
    """What was measured, name and value."""
    return [
        (heading(name, finding.units.get(name), labels), cell(value, finding.units.get(name), labels))
        for name, value in finding.observation.items()
    ]


def pairs(values: Mapping[str, Scalar], labels: Labels) -> list[tuple[str, str]]:
    """A mapping of settings or details as names and values; a name that ends in a unit gives the unit."""
    found = []
    for name, value in values.items():
        ending = next((ending for ending in _ENDINGS if name.endswith(ending)), "") if is_number(value) else ""
        label = name if ending in ("_share", "_ratio") else name.removesuffix(ending)
        found.append((prettify(one_line(label)), cell(value, _ENDINGS.get(ending), labels)))
    return found
