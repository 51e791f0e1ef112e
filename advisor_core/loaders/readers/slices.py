"""Join a table that an exporter cut into several files, with the file and position of every row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.contracts.tables import Int64Array, PositionKind, RowSource, Table, TableSchema

_FLOWS_PER_SLICE = 1 << 40
"""Flow ids beyond int64 are negative and numbered anew in every file: apart, they cannot be taken for each other."""


@dataclass(frozen=True)
class LineSource:
    """A text file whose source rows are its 1-based lines."""

    file: str
    sha256: str | None
    position: PositionKind = "line"

    def positions(self, source_rows: Int64Array) -> Int64Array:
        return source_rows

    def tables(self, source_rows: Int64Array) -> Sequence[str]:
        return ()


@dataclass(frozen=True, eq=False)
class SlicedSource:
    """Several files that hold one table. ``file``: their common name. Source rows of the part ``i`` lie between
    ``first[i]`` and ``first[i + 1]``; `tables` names the file of each row, so that evidence can."""

    file: str
    parts: tuple[RowSource, ...]
    first: Int64Array
    sha256: str | None = None

    @property
    def position(self) -> PositionKind:
        return self.parts[0].position

    def positions(self, source_rows: Int64Array) -> Int64Array:
        part = self._part(source_rows)
        places = np.zeros(len(source_rows), np.int64)
        for number in np.unique(part).tolist():
            here = part == number
            places[here] = self.parts[number].positions(source_rows[here] - self.first[number])
        return places

    def tables(self, source_rows: Int64Array) -> Sequence[str]:
        return [self.parts[number].file for number in self._part(source_rows).tolist()]

    def _part(self, source_rows: Int64Array) -> Int64Array:
        return np.searchsorted(self.first, source_rows, side="right") - 1


def join(
    schema: TableSchema, file: str, frames: Sequence[pd.DataFrame], sources: Sequence[RowSource]
) -> tuple[pd.DataFrame, RowSource]:
    """The frames of consecutive slices, each of ``schema``, as one. ``file``: what to call them together."""
    if len(frames) == 1:
        return frames[0], sources[0]
    ends = np.cumsum([int(frame["source_row"].max()) + 1 if len(frame) else 1 for frame in frames])
    first = np.concatenate(([0], ends[:-1])).astype(np.int64)
    columns: dict[str, object] = {}
    for column in schema.columns:
        parts = [frame[column.name] for frame in frames]
        if column.dtype == "text":
            columns[column.name] = pd.api.types.union_categoricals(parts)
        else:
            columns[column.name] = np.concatenate([part.to_numpy() for part in parts])
    if "flow" in columns:
        columns["flow"] = np.concatenate([_apart(frame["flow"].to_numpy(), i) for i, frame in enumerate(frames)])
    rows = [frame["source_row"].to_numpy() + start for frame, start in zip(frames, first, strict=True)]
    columns["source_row"] = np.concatenate(rows)
    return schema.conform(pd.DataFrame(columns, copy=False)), SlicedSource(file, tuple(sources), first)


def both(first: Table, second: Table) -> Table:
    """A table that two files have parts of."""
    files = f"{first.source.file}, {second.source.file}"
    frame, source = join(first.schema, files, [first.frame, second.frame], [first.source, second.source])
    return Table(first.schema, frame, source)


def _apart(flows: Int64Array, number: int) -> Int64Array:
    return np.where(flows < -1, flows - number * _FLOWS_PER_SLICE, flows)
