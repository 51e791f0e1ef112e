"""Ways in which a database loses or doubles what it holds and stays a sound database: rows and tables. The same seed
does the same damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

OfTable = Callable[[sqlite3.Connection, str, Random], None]


def drop_table(database: sqlite3.Connection, table: str, chance: Random) -> None:
    database.execute(f"DROP TABLE {table}")


def empty_table(database: sqlite3.Connection, table: str, chance: Random) -> None:
    database.execute(f"DELETE FROM {table}")


def drop_rows(database: sqlite3.Connection, table: str, chance: Random) -> None:
    """Three of ten rows are gone, anywhere."""
    rows = [row for (row,) in database.execute(f"SELECT rowid FROM {table}")]
    gone = [(row,) for row in rows if chance.random() < 0.3]
    database.executemany(f"DELETE FROM {table} WHERE rowid = ?", gone)


def cut_rows(database: sqlite3.Connection, table: str, chance: Random) -> None:
    """The second half of the rows is gone."""
    rows = [row for (row,) in database.execute(f"SELECT rowid FROM {table} ORDER BY rowid")]
    database.executemany(f"DELETE FROM {table} WHERE rowid = ?", [(row,) for row in rows[len(rows) // 2 :]])


def double_rows(database: sqlite3.Connection, table: str, chance: Random) -> None:
    """All rows stand twice; keys are no keys any more."""
    database.execute(f"CREATE TABLE doubled AS SELECT * FROM {table} UNION ALL SELECT * FROM {table}")
    database.execute(f"DROP TABLE {table}")
    database.execute(f"ALTER TABLE doubled RENAME TO {table}")


OF_TABLES: tuple[OfTable, ...] = (drop_table, empty_table, drop_rows, cut_rows, double_rows)


def tables_of(path: Path) -> list[str]:
    """The tables that hold rows."""
    with closing(sqlite3.connect(path)) as database:
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        names = [name for (name,) in database.execute(tables)]
        return [name for name in sorted(names) if database.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()]


def damage_table(path: Path, table: str, change: OfTable, chance: Random) -> None:
    """Change one table of a database in place."""
    with closing(sqlite3.connect(path)) as database, database:
        change(database, table, chance)
