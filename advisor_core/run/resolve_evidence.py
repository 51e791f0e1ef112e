"""Turn an advisor's references into evidence: file, position, values. Done only for rows that became findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from advisor_core.contracts.advisor import Interval, Metric, Reference, Rows, Setting, Stack
from advisor_core.contracts.tables import Table
from advisor_core.facts.host.call_site import call_site
from advisor_core.result.evidence import Evidence, Source
from advisor_core.text.base import Scalar

SHOWN_ROWS = 10
"""Rows of a table that one piece of evidence shows; how many there are is always said."""

_TEXT_LIMIT = 2_000


def resolve(references: Sequence[Reference], tables: Mapping[str, Table], rank: int | None) -> list[Evidence]:
    """Evidence for the references of one finding. Raises KeyError for a table or column that does not exist."""
    return [_resolve(reference, tables, rank) for reference in references]


def _resolve(reference: Reference, tables: Mapping[str, Table], rank: int | None) -> Evidence:
    if isinstance(reference, Rows):
        return _rows(reference, tables[reference.table.name], rank)
    if isinstance(reference, Interval):
        return Evidence(
            kind="interval",
            title=reference.title,
            rank=rank,
            start_ns=int(reference.start_ns),
            end_ns=int(reference.end_ns),
            lane=reference.lane,
        )
    if isinstance(reference, Metric):
        rows = [{name: scalar(value) for name, value in row.items()} for row in reference.rows]
        return Evidence(kind="metric", title=reference.title, rank=rank, rows=rows, units=dict(reference.units))
    if isinstance(reference, Setting):
        return Evidence(
            kind="setting",
            title=reference.title,
            rank=rank,
            source=Source(file=reference.file, table="settings") if reference.file else None,
            rows=[{"name": reference.name, "value": scalar(reference.value)}],
        )
    assert isinstance(reference, Stack)
    frames: list[dict[str, Scalar]] = [{"frame": frame[:_TEXT_LIMIT]} for frame in reference.frames[:SHOWN_ROWS]]
    return Evidence(
        kind="stack",
        title=reference.title,
        rank=rank,
        rows=frames,
        total_rows=len(reference.frames),
        place=call_site(reference.frames)[:_TEXT_LIMIT],
    )


def _rows(reference: Rows, table: Table, rank: int | None) -> Evidence:
    numbers = np.asarray(reference.rows, dtype=np.int64)[:SHOWN_ROWS]
    positions = table.positions(numbers)
    kind = table.source.position
    places = table.tables(numbers)
    frame = table.frame
    units = table.schema.units()
    columns = [_values(frame[name].array.take(numbers), units.get(name, "")) for name in reference.columns]
    rows: list[dict[str, Scalar]] = [
        {kind: int(place)} | dict(zip(reference.columns, values, strict=True))
        for place, *values in zip(positions, *columns, strict=True)
    ]
    if len(set(places)) > 1:
        rows = [{"table": place, **row} for place, row in zip(places, rows, strict=True)]
    first = int(positions[0]) if len(positions) else None
    times = frame["start_ns"].to_numpy()[numbers] if "start_ns" in frame and len(numbers) else None
    ends = times + frame["duration_ns"].to_numpy()[numbers] if times is not None and "duration_ns" in frame else None
    return Evidence(
        kind="rows",
        title=reference.title,
        rank=rank,
        source=Source(
            file=table.source.file,
            table=places[0] if places else table.schema.name,
            sha256=table.source.sha256,
            **{kind: first},
        ),
        units={name: units[name] for name in reference.columns if units[name]},
        rows=rows,
        total_rows=len(reference.rows),
        start_ns=int(times.min()) if times is not None else None,
        end_ns=int(ends.max()) if ends is not None else None,
    )


def _values(column: pd.api.extensions.ExtensionArray, unit: str) -> list[Scalar]:
    """The values of a column; a time of -1 is one that the export does not have."""
    values = [scalar(value) for value in column.tolist()]
    return [None if unit == "ns" and value == -1 else value for value in values]


def scalar(value: object) -> Scalar:
    """A value that JSON can carry: NaN becomes ``None``, numpy types become Python's, long text is cut."""
    if value is None or value is pd.NA:
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    text = str(value)
    return text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + "…"
