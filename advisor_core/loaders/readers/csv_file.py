"""Read CSV files into canonical frames: in bounded blocks cut at record borders, typed, with the line of every row.

A block that does not fit its types or has ragged records is read again as bytes and converted value by value, on whole
columns; the rest of the file keeps the fast way. ``source_row`` is the 1-based physical line on which a record starts;
a line break inside quotes (call stacks) does not start one.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import Int64Array, TableSchema
from advisor_core.loaders import ascend_words as vocabulary
from advisor_core.loaders.readers import times
from advisor_core.loaders.readers.columns import Interner
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.problems import SHOWN, Problems, quoted
from advisor_core.text.messages import message

if TYPE_CHECKING:
    import numpy.typing as npt

BLOCK_BYTES: Final = 2 << 20
LONGEST_RECORD: Final = 8 << 20
"""A record that does not end within this many bytes has lost a quote; bounds the memory."""

_MOST_BROKEN: Final = 100
"""Lines with an unclosed quote after which a file is given up: each costs a scan of `LONGEST_RECORD`."""

_LONGEST_HEADER = 1 << 20
_BOM = b"\xef\xbb\xbf"
_NUMBER = r"^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$"
_INTEGER = r"^[+-]?\d{1,18}$"

Mask: TypeAlias = "npt.NDArray[np.bool_]"
Kind = Literal["point", "span", "int", "float", "text"]


@dataclass(frozen=True)
class Column:
    """The CSV column that a canonical column is read from.

    ``kind``: ``point`` (us to int64 ns), ``span`` (us to int64 ns), ``int``, ``float`` (times ``factor``) or ``text``.
    A row without a usable value in an ``essential`` column is left out; elsewhere the value counts as absent.
    ``least``, ``most``: bounds of a possible number, in the unit of the file. ``none``: a number that means 'none'.
    """

    field: str
    names: tuple[str, ...]
    kind: Kind = "text"
    essential: bool = False
    factor: float = 1.0
    least: float = -math.inf
    most: float = math.inf
    none: int | None = None
    clean: Callable[[str], str] = vocabulary.tidy


@dataclass(frozen=True)
class CsvTable:
    """A file and the table it holds. Several columns may give the same field: the first that the file has is read.

    ``interval``: fields for start and end; a row that ends before it starts is left out. ``more``: further columns that
    some files have, which `read_csv` gives. ``others``: columns that the documentation names and nothing is read from,
    where a column that it does not name is told; ``None`` where it is not.
    """

    schema: TableSchema
    columns: tuple[Column, ...]
    interval: tuple[str, str] | None = None
    more: tuple[Column, ...] = ()
    others: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Block:
    """Whole records: their bytes, the offset and the 1-based line at which each starts. Empty lines are no records."""

    data: bytes
    starts: Int64Array
    lines: Int64Array


@dataclass
class _Parts:
    """The values of the blocks, by canonical field."""

    values: dict[str, list[npt.NDArray[Any]]] = field(default_factory=dict)
    interners: dict[str, Interner] = field(default_factory=dict)

    def add(self, name: str, values: npt.NDArray[Any]) -> None:
        self.values.setdefault(name, []).append(values)


def read_csv(file: HashedFile, table: CsvTable, problems: Problems) -> tuple[pd.DataFrame, dict[str, npt.NDArray[Any]]]:
    """The canonical frame of a file, and of its rows the ``more`` columns that the file has. Raises `Unavailable` where
    the file holds no such table."""
    head = file.read(BLOCK_BYTES)
    header, skip = _header(head, problems.file)
    chosen = _choose(table, header, problems.file)
    if table.others is not None:
        documented = {name for column in table.columns for name in column.names} | set(table.others)
        if unknown := [quoted(name) for name in header if name and name not in documented]:
            problems.say("info", message("loader.unknown_columns", file=problems.file, columns=", ".join(unknown)))
    parts = _Parts()
    for block in blocks(file, head[skip:], 1 + head[:skip].count(b"\n"), problems):
        _convert(block, header, chosen, table, parts, problems)
    if not sum(map(len, parts.values.get("source_row", []))):
        raise Unavailable(message("loader.no_rows", file=problems.file))
    frame = _together({name: np.concatenate(arrays) for name, arrays in parts.values.items()}, chosen, problems)
    more = {column.field: frame.pop(column.field) for column in table.more if column.field in frame}
    columns: dict[str, Any] = dict(frame)
    for column in chosen.values():
        if column.kind == "text":
            columns[column.field] = parts.interners[column.field].categorical(frame[column.field], column.clean)
    return table.schema.conform(pd.DataFrame(columns, copy=False)), more


def _together(
    frame: dict[str, npt.NDArray[Any]], chosen: Mapping[int, Column], problems: Problems
) -> dict[str, npt.NDArray[Any]]:
    """The rows without those whose time cannot be of the same profile as the others'."""
    for column in chosen.values():
        if column.kind != "point" or not column.essential:
            continue
        far = times.astray(frame[column.field])
        if far.any():
            where = np.flatnonzero(far)
            shown = [(int(frame["source_row"][row]), f"{frame[column.field][row]} ns") for row in where[:SHOWN]]
            problems.count("loader.rows_astray", column.names[0], len(where), shown)
            frame = {name: values[~far] for name, values in frame.items()}
    return frame


def header_of(head: bytes) -> list[str]:
    """Column names on the first line, without byte order mark, blanks and tabs; ValueError where it is no text."""
    line = head.removeprefix(_BOM).split(b"\n", 1)[0]
    if b"\0" in line or len(line) > _LONGEST_HEADER:
        raise ValueError("not text")
    rows = list(csv.reader([line.decode("utf-8").rstrip("\r")]))
    return [name.strip() for name in rows[0]] if rows else []


def _header(head: bytes, file: str) -> tuple[list[str], int]:
    """The names and the number of bytes of the header line."""
    if not head.strip():
        raise Unavailable(message("loader.empty", file=file))
    try:
        names = header_of(head)
    except (ValueError, csv.Error):
        raise Unavailable(message("loader.not_csv", file=file)) from None
    end = head.find(b"\n")
    return names, len(head) if end < 0 else end + 1


def _choose(table: CsvTable, header: Sequence[str], file: str) -> dict[int, Column]:
    """The column of the table for each place in the file that gives one."""
    chosen: dict[int, Column] = {}
    found: set[str] = set()
    for column in (*table.columns, *table.more):
        place = next((header.index(name) for name in column.names if name in header), None)
        if place is not None and column.field not in found:
            chosen[place] = column
            found.add(column.field)
    for column in table.columns:
        if column.essential and column.field not in found:
            raise Unavailable(message("loader.no_column", file=file, column=column.names[0]))
    return chosen


def blocks(file: HashedFile, data: bytes, line: int, problems: Problems, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Cut the rest of a file, ``data`` being what was read of it, into blocks of whole records.

    A line break ends a record where an even number of quotes precedes it. A quote that is never closed spoils its
    line, which is left out, and not the rest of the file.
    """
    broken = 0
    wanted = size
    while True:
        if len(data) < wanted:
            data += file.read(wanted - len(data))
        if not data:
            return
        at_end = len(data) < wanted
        block, used, used_lines = _cut(data, line, at_end)
        if block is not None:
            yield block
        elif not at_end and len(data) < LONGEST_RECORD:
            wanted = 2 * len(data)
            continue
        else:
            broken += 1
            end = data.find(b"\n")
            problems.count("loader.unclosed_quote", "", 1, [(line, _shown(data[: end if end >= 0 else None]))])
            if end < 0 or broken > _MOST_BROKEN:
                if not at_end:
                    problems.say("error", message("loader.given_up", file=problems.file, line=line))
                return
            used, used_lines = end + 1, 1
        data = data[used:]
        line += used_lines
        wanted = size


def _cut(data: bytes, line: int, at_end: bool) -> tuple[Block | None, int, int]:
    """The whole records at the front of ``data``, their bytes and their lines; (None, 0, 0) where there is none."""
    raw = np.frombuffer(data, np.uint8)
    breaks = np.flatnonzero(raw == ord("\n"))
    quotes = np.flatnonzero(raw == ord('"'))
    closed = (np.searchsorted(quotes, breaks) & 1) == 0
    ends = breaks[closed] + 1
    line_of_end = np.flatnonzero(closed) + 1
    if at_end and (len(ends) == 0 or ends[-1] < len(data)) and len(quotes) % 2 == 0:
        ends = np.append(ends, len(data))
        line_of_end = np.append(line_of_end, len(breaks) + 1)
    if len(ends) == 0:
        return None, 0, 0
    used, used_lines = int(ends[-1]), int(line_of_end[-1])
    starts = np.concatenate(([0], ends[:-1]))
    lines = line + np.concatenate(([0], line_of_end[:-1]))
    length = ends - starts
    first, second = raw[starts], raw[np.minimum(starts + 1, used - 1)]
    empty = ((length == 1) & ((first == 10) | (first == 13))) | ((length == 2) & (first == 13) & (second == 10))
    if empty.any():
        starts, lines = starts[~empty], lines[~empty]
    return Block(data[:used], starts, lines), used, used_lines


def _convert(
    block: Block,
    header: Sequence[str],
    chosen: Mapping[int, Column],
    table: CsvTable,
    parts: _Parts,
    problems: Problems,
) -> None:
    """Add the rows of a block to ``parts``."""
    if len(block.starts) == 0:
        return
    try:
        read = _parse(block.data, len(header), {place: _type(column.kind) for place, column in chosen.items()})
        strict = read.num_rows == len(block.starts)
    except pa.ArrowInvalid:
        strict = False
    if not strict:
        block = _regular(block, len(header), problems)
        if len(block.starts) == 0:
            return
        try:
            read = _parse(
                block.data, len(header), {place: _type_of_bytes(column.kind) for place, column in chosen.items()}
            )
            lost = "" if read.num_rows == len(block.starts) else f"{read.num_rows} / {len(block.starts)}"
        except pa.ArrowInvalid as error:
            lost = str(error).splitlines()[0]
        if lost:
            first, last = int(block.lines[0]), int(block.lines[-1])
            said = message("loader.block_lost", file=problems.file, first=first, last=last, why=lost[:200])
            problems.say("error", said)
            return

    keep = np.ones(len(block.lines), np.bool_)
    values: dict[str, npt.NDArray[Any]] = {}
    for place, column in chosen.items():
        array = read.column(str(place)).combine_chunks()
        if column.kind == "text":
            interner = parts.interners.setdefault(column.field, Interner())
            converted, bad = _codes(array, interner), _blank(array) & column.essential
        else:
            converted, bad = (_typed if strict else _tolerant)(array, column)
        if column.essential:
            keep &= ~bad
        if bad.any():
            where = np.flatnonzero(bad)
            kind = "loader.rows_dropped" if column.essential else "loader.values_absent"
            shown = [(int(block.lines[i]), _value(array[int(i)])) for i in where[:SHOWN]]
            problems.count(kind, header[place], len(where), shown)
        values[column.field] = converted
    if table.interval is not None:
        keep &= ~_backward(values, table.interval, keep, block.lines, problems)
    values["source_row"] = block.lines
    for name, array in values.items():
        parts.add(name, array if keep.all() else array[keep])


def _backward(
    values: Mapping[str, npt.NDArray[Any]], interval: tuple[str, str], keep: Mask, lines: Int64Array, problems: Problems
) -> Mask:
    """The rows that end before they start."""
    if not set(interval) <= values.keys():
        return ~keep
    start, end = values[interval[0]], values[interval[1]]
    backward: Mask = keep & (start != times.NO_TIME) & (end != times.NO_TIME) & (end < start)
    where = np.flatnonzero(backward)
    if len(where):
        shown = [(int(lines[row]), f"{start[row]} > {end[row]}") for row in where[:SHOWN]]
        problems.count("loader.ends_before_start", "", len(where), shown)
    return backward


@cache
def _type(kind: Kind) -> pa.DataType:
    match kind:
        case "point":
            return times.point_type()
        case "int":
            return pa.int64()
        case "text":
            return pa.dictionary(pa.int32(), pa.string())
        case _:
            return pa.float64()


@cache
def _type_of_bytes(kind: Kind) -> pa.DataType:
    return pa.dictionary(pa.int32(), pa.binary()) if kind == "text" else pa.binary()


def _parse(data: bytes, width: int, types: Mapping[int, pa.DataType]) -> pa.Table:
    """Columns by place (their names are the places, so that equal names in a header do no harm)."""
    import pyarrow.csv as arrow_csv

    return arrow_csv.read_csv(
        pa.BufferReader(data),
        read_options=arrow_csv.ReadOptions(
            column_names=[str(place) for place in range(width)], block_size=max(len(data) + 1, 1024)
        ),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types={str(place): kind for place, kind in types.items()},
            include_columns=[str(place) for place in types],
            null_values=list(vocabulary.NULLS),
            strings_can_be_null=False,
        ),
    )


def _regular(block: Block, width: int, problems: Problems) -> Block:
    """The block without records that have too few or too many values, or a stray carriage return."""
    raw = np.frombuffer(block.data, np.uint8)
    quotes = np.flatnonzero(raw == ord('"'))
    commas = np.flatnonzero(raw == ord(","))
    commas = commas[(np.searchsorted(quotes, commas) & 1) == 0]
    stray = np.flatnonzero((raw[:-1] == 13) & (raw[1:] != 10))
    stray = stray[(np.searchsorted(quotes, stray) & 1) == 0]
    borders = np.append(block.starts, len(block.data))
    fields = np.diff(np.searchsorted(commas, borders)) + 1
    ragged = (fields != width) | (np.diff(np.searchsorted(stray, borders)) > 0)
    where = np.flatnonzero(ragged)
    if len(where) == 0:
        return block
    shown = [(int(block.lines[i]), _shown(block.data[borders[i] : borders[i + 1]])) for i in where[:SHOWN]]
    problems.count("loader.ragged", str(width), len(where), shown)
    kept = np.flatnonzero(~ragged)
    pieces = [block.data[borders[i] : borders[i + 1]] for i in kept]
    starts = np.cumsum([0, *map(len, pieces)])[:-1].astype(np.int64)
    return Block(b"".join(pieces), starts, block.lines[kept])


def _codes(array: pa.Array, interner: Interner) -> npt.NDArray[np.int32]:
    texts = [
        text.decode("utf-8", "replace") if isinstance(text, bytes) else text for text in array.dictionary.to_pylist()
    ]
    lookup = interner.codes(texts)
    indices = array.indices.to_numpy(zero_copy_only=False)
    return lookup[indices] if len(lookup) else np.zeros(0, np.int32)


def _blank(array: pa.Array) -> Mask:
    """Mask of the texts that are empty."""
    blank = np.array([not text.strip() for text in array.dictionary.to_pylist()], np.bool_)
    return blank[array.indices.to_numpy(zero_copy_only=False)] if len(blank) else np.zeros(len(array), np.bool_)


def _typed(array: pa.Array, column: Column) -> tuple[npt.NDArray[Any], Mask]:
    """Values in canonical units, and which of them are impossible (or absent where they must not be)."""
    import pyarrow.compute as pc

    absent = array.is_null().to_numpy(zero_copy_only=False)
    if column.kind == "point":
        values = times.decimals_ns(array)
        return values, (values == times.NO_TIME) & (~absent | column.essential)
    if column.kind == "int":
        integers = pc.fill_null(array, -1).to_numpy(zero_copy_only=False)
        bad = ~absent & ((integers < column.least) | (integers > column.most))
        if column.none is not None:
            integers = np.where(integers == column.none, -1, integers)
        return np.where(bad, -1, integers), bad | (absent & column.essential)
    floats = pc.fill_null(array, np.nan).to_numpy(zero_copy_only=False)
    if column.kind == "span":
        spans = times.spans_ns(floats, min(column.most, 2.0**52))
        return spans, (spans == times.NO_TIME) & (~absent | column.essential)
    with np.errstate(over="ignore"):
        scaled = floats * column.factor
    bad = ~absent & ~((floats >= column.least) & (floats <= column.most) & np.isfinite(scaled))
    return np.where(bad, np.nan, scaled), bad | (absent & column.essential)


def _tolerant(array: pa.Array, column: Column) -> tuple[npt.NDArray[Any], Mask]:
    """As `_typed`, from bytes: what is no number is impossible."""
    import pyarrow.compute as pc

    ascii_only = pc.match_substring_regex(array, r"^[ -~\t\r]*$")
    text = pc.utf8_trim_whitespace(pc.if_else(ascii_only, array, pa.scalar(b"?")).cast(pa.string()))
    absent = pc.is_in(text, value_set=pa.array(vocabulary.NULLS))
    if column.kind == "int":  # 12.0 is an int
        text = pc.replace_substring_regex(text, r"\.0*$", "")
    number = pc.match_substring_regex(text, _INTEGER if column.kind == "int" else _NUMBER)
    text = pc.if_else(pc.and_(number, pc.invert(absent)), text, pa.scalar(None, pa.string()))
    wrong = pc.and_(pc.invert(number), pc.invert(absent)).to_numpy(zero_copy_only=False)
    if column.kind == "point":
        points = times.points_ns(text.to_pylist())
        return points, wrong | (
            (points == times.NO_TIME) & (text.is_valid().to_numpy(zero_copy_only=False) | column.essential)
        )
    values, bad = _typed(text.cast(_type(column.kind)), column)
    return values, bad | wrong


def _value(scalar: pa.Scalar) -> str:
    value = scalar.as_py()
    if value is None:
        return ""
    return _shown(value) if isinstance(value, bytes) else str(value)


def _shown(data: bytes) -> str:
    return data[:400].decode("utf-8", "replace").strip()
