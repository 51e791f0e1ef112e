"""A reader of exported databases that shares no code with their writer."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

Record = dict[str, Any]


@dataclass(frozen=True)
class Database:
    """One SQLite file, opened for reading alone."""

    path: Path

    def rows(self, query: str) -> list[Record]:
        connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(query)]
        finally:
            connection.close()

    def table(self, name: str) -> list[Record]:
        return self.rows(f"SELECT * FROM {name}")

    @cached_property
    def tables(self) -> set[str]:
        return {row["name"] for row in self.rows("SELECT name FROM sqlite_master WHERE type = 'table'")}

    @cached_property
    def indexes(self) -> set[str]:
        return {row["sql"] for row in self.rows("SELECT sql FROM sqlite_master WHERE type = 'index'")}

    def columns(self, table: str) -> list[tuple[str, str, int]]:
        """Name, type and place in the primary key of every column."""
        return [(row["name"], row["type"], row["pk"]) for row in self.rows(f"PRAGMA table_info({table})")]

    @cached_property
    def strings(self) -> dict[int | None, str]:
        return {None: "", **{row["id"]: row["value"] for row in self.table("STRING_IDS")}}

    def enumeration(self, name: str) -> dict[int, str]:
        return {row["id"]: row["name"] for row in self.table(name)}


@dataclass(frozen=True)
class DbExport:
    """The databases of one rank."""

    root: Path

    @cached_property
    def profile(self) -> Database:
        (path,) = (self.root / "ASCEND_PROFILER_OUTPUT").glob("ascend_pytorch_profiler*.db")
        return Database(path)

    @cached_property
    def analysis(self) -> Database:
        return Database(self.root / "ASCEND_PROFILER_OUTPUT" / "analysis.db")
