"""Evidence and settings as tables of text, the same for every format."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

from advisor_core.api import Scalar
from advisor_core.api.renderers import Evidence, Finding, RunResult, Source, heading_key
from reports.labels import Labels, is_number, one_line, shorten
from reports.ledgers import Ledger

SHOWN_ROWS = 10
CELL = 160
"""Longest text in a cell; the whole is in report.json."""

STRETCH_LIMIT = 0.01
"""Share of the step from which the largest stretches of a ledger entry are told."""

SHORT = 28
"""Up to so many characters a column is not broken into lines."""

EPOCH_NS = 10**15
"""A time of so many ns is a moment, not a stretch: it is told from the start of its step."""

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


def evidence(items: Sequence[Evidence], result: RunResult, labels: Labels) -> list[Table]:
    """The evidence of a finding with its values in readable units; intervals of one kind share a table, and so do
    settings of one place."""
    groups = groupby(items, key=lambda item: item.model_copy(update={"start_ns": None, "end_ns": None, "rows": []}))
    tables: list[Table] = []
    for first, members in groups:
        alike = list(members)
        if first.kind == "interval":
            rows = [row for item in alike for row in _interval(item, result, labels)]
            tables.append(_table(first, rows, {**first.units, "duration": "ns"}, result, labels))
        elif first.kind == "setting":
            rows = [row for item in alike for row in item.rows]
            tables.append(_table(first, rows, first.units, result, labels))
        else:
            tables += [_table(item, item.rows, item.units, result, labels) for item in alike]
    return tables


def _table(
    item: Evidence, rows: Sequence[Mapping[str, Scalar]], units: Mapping[str, str], result: RunResult, labels: Labels
) -> Table:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    columns.sort(key=lambda name: name not in _PLACES)
    shown = rows[:SHOWN_ROWS] if item.kind != "stack" else rows
    total = item.total_rows or len(rows)
    title = labels.of(item.title)

    def value(row: Mapping[str, Scalar], name: str) -> str:
        content = row.get(name)
        if isinstance(content, int) and units.get(name) == "ns" and content >= EPOCH_NS:
            return _relative(content, item.rank, result, labels)
        return cell(content, units.get(name), labels)

    return Table(
        kind=item.kind,
        title=title[:1].upper() + title[1:] if labels.lang == "en" else title,  # Chinese can begin with a name
        place=place(item.source, labels, item.rank, with_position=not any(name in _PLACES for name in columns)),
        columns=tuple(heading(name, units.get(name), labels) for name in columns),
        numeric=tuple(_is_numeric([row.get(name) for row in shown]) for name in columns),
        rows=tuple(tuple(value(row, name) for name in columns) for row in shown),
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
    return labels.name(heading_key(name, unit))


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
    present = [value for value in values if value is not None]
    return bool(present) and all(is_number(value) for value in present)


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
    spans = [
        (step.start_ns, step.end_ns, step.step)
        for step in result.profile.steps
        if (rank is None or step.rank == rank) and step.start_ns is not None and step.end_ns is not None
    ]
    for start, end, number in spans:
        if start <= ns <= end and number is not None:
            return f"{labels.time(ns - start)} {labels('evidence.into_step', step=number)}"
    first = min((start for start, _, _ in spans), default=None)
    if first is None or ns < first:
        return f"{ns} ns"
    if result.profile.window == "recording":
        return f"{labels.time(ns - first)} {labels('evidence.into_recording')}"
    return f"{labels.time(ns - first)} {labels('evidence.into_rank')}"


def stretches(ledger: Ledger, result: RunResult, labels: Labels) -> Table:
    """The largest stretches of the ledger entries that matter, with what they point at in the files."""
    rows = []
    for path, ns in sorted(ledger.entries.items(), key=lambda entry: (-entry[1], entry[0])):
        if ledger.share(ns) >= STRETCH_LIMIT:
            rows += [
                (
                    labels.trail(path),
                    labels.time(int(piece.get("ns") or 0)),
                    _relative(int(piece.get("start_ns") or 0), ledger.rank, result, labels),
                    shorten(_pointer(piece, labels), 2 * CELL),
                )
                for piece in ledger.pieces.get(path, ())
            ]
    return Table(
        kind="rows",
        title=(f"{ledger.role} · " if ledger.role else "") + labels("ledger.stretches", rank=ledger.rank),
        place="",
        columns=(labels("ledger.entry"), labels("evidence.duration"), labels("evidence.start"), labels("ledger.at")),
        numeric=(False, True, False, False),
        rows=tuple(rows),
    )


def _pointer(piece: Mapping[str, Scalar], labels: Labels) -> str:
    """What a stretch points at: ``kernel Conv2D1 (kernel_details.csv line 4)``."""
    parts = []
    for name, value in piece.items():
        if name.endswith(("_line", "_offset", "_rowid", "_file", "_table", "ns")) or value is None:
            continue
        file = PurePosixPath(one_line(str(piece.get(f"{name}_file") or ""))).name
        places = (
            labels(f"evidence.at_{place}", n=piece[f"{name}_{place}"])
            for place in _PLACES
            if piece.get(f"{name}_{place}") is not None
        )
        table = one_line(str(piece.get(f"{name}_table") or ""))
        at = " ".join(part for part in (file, table, next(places, "")) if part)
        parts.append(f"{labels.name(name)} {one_line(str(value))}" + (f" ({at})" if at else ""))
    return labels("word.clause").join(parts)


def observation(finding: Finding, labels: Labels) -> list[tuple[str, str]]:
    """What was measured, name and value."""
    return [
        (heading(name, finding.units.get(name), labels), cell(value, finding.units.get(name), labels))
        for name, value in finding.observation.items()
    ]


def pairs(values: Mapping[str, Scalar], labels: Labels) -> list[tuple[str, str]]:
    """A mapping of settings or details as names and values; a name that ends in a unit gives the unit."""
    named_values = []
    for name, value in values.items():
        ending = next((ending for ending in _ENDINGS if name.endswith(ending)), "") if is_number(value) else ""
        label = name if ending in ("_share", "_ratio") else name.removesuffix(ending)
        named_values.append((labels.name(label), cell(value, _ENDINGS.get(ending), labels)))
    return named_values
