"""A SQLite file that is written once, in one transaction, so that equal rows give equal bytes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType

from .schema import ENUM, TABLES

Value = int | float | str | None


class Strings:
    """The ids that stand for strings in the tables, counted from ``first`` in the order of first use."""

    def __init__(self, first: int = 0) -> None:
        self._first = first
        self._ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        """The id of a string."""
        return self._ids.setdefault(text, self._first + len(self._ids))

    @property
    def rows(self) -> list[Sequence[Value]]:
        """Their rows of ``STRING_IDS``."""
        return [(number, text) for text, number in self._ids.items()]


class Database:
    """A new file; one that is there already is replaced."""

    def __init__(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA page_size = 4096")
        self._connection.execute("BEGIN")

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._connection.execute("COMMIT")
        self._connection.close()

    def table(self, name: str, rows: Iterable[Sequence[Value]], *, newer: bool = False) -> None:
        """Create a table with its rows, in their order; nothing without rows. ``newer``: with the added columns."""
        table, content = TABLES[name], list(rows)
        if not content:
            return
        columns = [*table.leading, *table.columns, *table.added] if newer else list(table.columns)
        self._fill(name, columns, content)
        if table.index is not None:
            index, indexed = table.index
            self._connection.execute(f"CREATE INDEX {index} ON {name} ({indexed})")

    def enumeration(self, name: str, members: dict[int, str]) -> None:
        """Create the table of an enumeration."""
        self._fill(name, list(ENUM.columns), members.items())

    def _fill(self, name: str, columns: list[str], rows: Iterable[Sequence[Value]]) -> None:
        self._connection.execute(f"CREATE TABLE {name} ({','.join(columns)})")
        self._connection.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * len(columns))})", rows)
