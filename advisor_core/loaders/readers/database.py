"""SQLite databases as numpy columns, read without touching them.

A database is opened as immutable: nothing is locked, and no ``-wal``, ``-shm`` or ``-journal`` file appears beside it,
also in a directory that cannot be written. That is only safe while nobody else writes, so a file with changes that are
not yet in it is refused, and one that changes while it is read can be told (`Database.unchanged`).

Columns are read with `numpy.fromiter` over the cursor of the standard library. Measured on an export of 24 MB (0.58
million rows): 0.44 to 0.54 s at 120 MiB; `fetchall` 0.74 s at 172 MiB; an Arrow driver (adbc-driver-sqlite) 0.26 to
0.40 s with its import at 150 MiB, for 20 MB more to install.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from advisor_core.contracts.missing import Unavailable
from advisor_core.contracts.tables import Int64Array, PositionKind
from advisor_core.loaders.readers.files import NotAFileError, regular_size
from advisor_core.remote.copies import here
from advisor_core.text.base import Text
from advisor_core.text.messages import message

if TYPE_CHECKING:
    import numpy.typing as npt

_MAGIC: Final = b"SQLite format 3\0"
_HOT_JOURNAL: Final = bytes.fromhex("d9d505f920a163d7")
"""The first bytes of a rollback journal of an unfinished change (sqlite.org/fileformat.html, 3)."""

_HEADER: Final = 100
_LARGEST: Final = 1e30
"""Beyond every quantity of an export, in whatever unit; scaling one such number could overflow."""


class RowidSource:
    """Rows of one or several tables of a database. Source rows number the rows in the order of `add`."""

    position: PositionKind = "rowid"

    def __init__(self, file: str, sha256: str | None = None) -> None:
        self.file = file
        self.sha256 = sha256
        self._names: list[str] = []
        self._rowids: list[Int64Array] = []
        self._starts = [0]

    def add(self, table: str, rowids: Int64Array) -> Int64Array:
        """The source rows of these rows of a table."""
        start = self._starts[-1]
        self._names.append(table)
        self._rowids.append(rowids)
        self._starts.append(start + len(rowids))
        return np.arange(start, start + len(rowids), dtype=np.int64)

    def positions(self, source_rows: Int64Array) -> Int64Array:
        """Rowids."""
        parts = self._parts(source_rows)
        found = np.empty(len(source_rows), np.int64)
        for part in np.unique(parts).tolist():
            here = parts == part
            found[here] = self._rowids[part][source_rows[here] - self._starts[part]]
        return found

    def tables(self, source_rows: Int64Array) -> Sequence[str]:
        return [self._names[part] for part in self._parts(source_rows).tolist()]

    def _parts(self, source_rows: Int64Array) -> Int64Array:
        # the last part that starts at or before the row: parts without rows start where the next one does
        return np.searchsorted(self._starts, source_rows, side="right").astype(np.int64) - 1


class Database:
    """An open database. ``file``: its name in messages. Names of tables and columns compare without case, as in SQL.

    Raises `Unavailable` for a file that cannot be read as a database, is cut off, or is being written.
    """

    def __init__(self, path: Path, file: str) -> None:
        self.path = path
        self.file = file
        self._stamp = _check(path, file)
        try:
            self._connection = sqlite3.connect(
                f"{here(path.absolute()).as_uri()}?mode=ro&immutable=1", uri=True, isolation_level=None
            )
        except (sqlite3.Error, OSError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise Unavailable(message("loader.unreadable", file=file, why=why)) from None
        try:
            self._connection.execute("PRAGMA cell_size_check=ON")
            self._connection.text_factory = _text
            names = [name for (name,) in self._run("SELECT name FROM sqlite_master WHERE type = 'table'")]
            self._names = {name.lower(): name for name in names}
        except BaseException:
            self._connection.close()
            raise
        self._columns: dict[str, dict[str, str]] = {}

    def has(self, table: str, *columns: str) -> bool:
        """Whether there is such a table with all these columns."""
        known = self._columns_of(table)
        return bool(known) and all(column.lower() in known for column in columns)

    def require(self, table: str, *columns: str) -> None:
        """Raises `Unavailable` where `has` is false, naming what is absent."""
        known = self._columns_of(table)
        if not known:
            raise Unavailable(message("loader.no_table", file=self.file, table=table))
        for column in columns:
            if column.lower() not in known:
                raise Unavailable(message("loader.no_column", file=f"{self.file} › {table}", column=column))

    def first_of(self, table: str, *columns: str) -> str | None:
        """The first of these columns that a table has."""
        known = self._columns_of(table)
        return next((column for column in columns if column.lower() in known), None)

    def integers(
        self, table: str, columns: Mapping[str, str | None], where: str = "", rowid: bool = True
    ) -> dict[str, Int64Array]:
        """Columns as int64 by the names in ``columns`` (name to column; None or a column that the table lacks gives
        -1), NULL as -1, texts of integers as integers, and ``rowid``. Raises `Unavailable`."""
        known = self._columns_of(table)
        wanted = {name: column for name, column in columns.items() if column and column.lower() in known}
        chosen = [self._integer(known, column) for column in wanted.values()]
        read = self._matrix(table, (["rowid"] if rowid else []) + chosen, where, np.int64)
        count = read.shape[0]
        names = (["rowid"] if rowid else []) + list(wanted)
        result = {name: np.ascontiguousarray(read[:, place]) for place, name in enumerate(names)}
        for name in columns.keys() - result.keys():
            result[name] = np.full(count, -1, np.int64)
        return result

    def floats(self, table: str, columns: Sequence[str], where: str = "") -> dict[str, npt.NDArray[np.float64]]:
        """Columns as float64; NULL, columns that the table lacks and what no quantity can be as NaN. Raises
        `Unavailable`."""
        known = self._columns_of(table)
        wanted = [column for column in columns if column.lower() in known]
        # 9e999 is infinity to SQLite: NULL itself cannot stand in a column of floats, NaN cannot be written in SQL
        read = self._matrix(
            table, [f'coalesce(CAST("{known[column.lower()]}" AS REAL), 9e999)' for column in wanted], where, np.float64
        )
        read[np.abs(read) > _LARGEST] = np.nan
        count = read.shape[0] if wanted else len(self.integers(table, {}, where)["rowid"])
        result = {column: np.ascontiguousarray(read[:, place]) for place, column in enumerate(wanted)}
        return {column: result.get(column, np.full(count, np.nan)) for column in columns}

    def texts(self, table: str, columns: Sequence[str]) -> dict[str, list[str]]:
        """Columns as text whatever they hold, NULL and columns that the table lacks as ''. Raises `Unavailable`."""
        self.require(table)
        known = self._columns_of(table)
        chosen = ", ".join(
            f"coalesce(CAST(\"{known[column.lower()]}\" AS TEXT), '')" if column.lower() in known else "''"
            for column in columns
        )
        found = self._run(f'SELECT {chosen} FROM "{self._names[table.lower()]}" ORDER BY rowid')
        return {column: [row[place] for row in found] for place, column in enumerate(columns)}

    def distinct(self, table: str, column: str) -> Int64Array:
        """The ids that a column holds, each once; neither NULL nor what is negative. Raises `Unavailable`."""
        self.require(table, column)
        chosen = self._integer(self._columns_of(table), column)
        found = self._run(f'SELECT DISTINCT {chosen} FROM "{self._names[table.lower()]}"')
        ids = np.array([number for (number,) in found], np.int64)
        return ids[ids >= 0]

    def count(self, table: str) -> int:
        """Number of rows of a table. Raises `Unavailable`."""
        self.require(table)
        return int(self._run(f'SELECT count(*) FROM "{self._names[table.lower()]}"')[0][0])

    def unchanged(self) -> bool:
        """Whether the file is what it was when it was opened."""
        try:
            return _stamp(self.path) == self._stamp
        except OSError:
            return False

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def _columns_of(self, table: str) -> dict[str, str]:
        """Columns by their name in lower case; empty where there is no such table."""
        key = table.lower()
        if key not in self._columns:
            found = self._run(f'PRAGMA table_info("{self._names[key]}")') if key in self._names else []
            self._columns[key] = {name.lower(): name for _, name, *_ in found}
        return self._columns[key]

    def _integer(self, known: Mapping[str, str], column: str) -> str:
        # the exporter stores some times as text; the cast is exact and costs little where they are integers
        return f'coalesce(CAST("{known[column.lower()]}" AS INTEGER), -1)'

    def _matrix(self, table: str, chosen: Sequence[str], where: str, dtype: Any) -> npt.NDArray[Any]:
        self.require(table)
        if not chosen:
            return np.empty((0, 0), dtype)
        # one order for every query of a table, whatever indexes it has
        query = f'SELECT {", ".join(chosen)} FROM "{self._names[table.lower()]}" {where} ORDER BY rowid'
        try:
            cursor = self._connection.execute(query)
            flat = np.fromiter(chain.from_iterable(cursor), dtype)
        except sqlite3.Error as error:
            raise Unavailable(self._damaged(error)) from None
        return flat.reshape(-1, len(chosen))

    def _run(self, query: str) -> list[Any]:
        try:
            return self._connection.execute(query).fetchall()
        except sqlite3.Error as error:
            raise Unavailable(self._damaged(error)) from None

    def _damaged(self, error: sqlite3.Error) -> Text:
        return message("loader.db_damaged", file=self.file, why=str(error)[:200])


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _check(path: Path, file: str) -> tuple[int, int]:
    """Size and time of a file that can be read as a database. Raises `Unavailable`."""
    try:
        if regular_size(path) is None:
            path.stat()
            raise NotAFileError(f"not a regular file: {path}")
        stamp = _stamp(path)
        header = _start_of(path, _HEADER)
        journal, log = (path.with_name(path.name + suffix) for suffix in ("-journal", "-wal"))
        hot = bool(regular_size(journal)) and _start_of(journal, len(_HOT_JOURNAL)) == _HOT_JOURNAL
    except OSError as error:
        why = error.strerror or str(error)
        raise Unavailable(message("loader.unreadable", file=file, why=why)) from None
    if not header:
        raise Unavailable(message("loader.empty", file=file))
    if header[:16] != _MAGIC or len(header) < _HEADER:
        raise Unavailable(message("loader.not_database", file=file))
    for beside, unfinished in ((log, (regular_size(log) or 0) > 0), (journal, hot)):
        if unfinished:
            raise Unavailable(message("loader.db_unfinished", file=file, beside=beside.name))
    page = int.from_bytes(header[16:18], "big")
    page = 65536 if page == 1 else page
    pages = int.from_bytes(header[28:32], "big")
    # the number of pages holds only where the last writer was one that keeps it (fileformat.html, 1.3.7)
    if header[24:28] == header[92:96] and stamp[0] < page * pages:
        raise Unavailable(message("loader.db_cut_off", file=file, bytes=stamp[0], expected=page * pages))
    return stamp


def _start_of(path: Path, size: int) -> bytes:
    with here(path).open("rb") as file:
        return file.read(size)


def _stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns
