"""Opening a database: what cannot be read is said, and nothing of the input is ever touched."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from advisor_core.contracts.missing import Unavailable
from advisor_core.loaders.readers.database import Database, RowidSource
from tests.loaders.databases import write

TABLE = {"T": ("a INTEGER, b TEXT, c NUMERIC", [(1, "1736408883688177930", 0.5), (None, None, None), (3, "7", 2)])}


def listing(directory: Path) -> list[tuple[str, int, int]]:
    return [(entry.name, entry.stat().st_mtime_ns, entry.stat().st_size) for entry in sorted(directory.iterdir())]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "in" / "x.db", TABLE)


def test_columns(path: Path) -> None:
    with Database(path, "x.db") as database:
        read = database.integers("t", {"a": "A", "b": "b", "gone": "gone", "none": None})
        assert {name: column.tolist() for name, column in read.items()} == {
            "rowid": [1, 2, 3],
            "a": [1, -1, 3],
            "b": [1736408883688177930, -1, 7],
            "gone": [-1, -1, -1],
            "none": [-1, -1, -1],
        }
        floats = database.floats("T", ["c", "gone"], "WHERE a > 0")
        assert floats["c"].tolist() == [0.5, 2.0] and np.isnan(floats["gone"]).all() and len(floats["gone"]) == 2
        assert database.texts("T", ["b", "gone"]) == {"b": ["1736408883688177930", "", "7"], "gone": [""] * 3}
        assert database.has("T", "A", "c") and not database.has("T", "d") and not database.has("U")
        assert database.first_of("T", "new", "B") == "B"
        for table, column, said in (("U", "a", "no table U"), ("T", "d", "no column d")):
            with pytest.raises(Unavailable) as reason:
                database.require(table, column)
            assert said in reason.value.reason.en


def test_rows_keep_their_place() -> None:
    source = RowidSource("x.db")
    first = source.add("A", np.array([10, 30, 20]))
    source.add("EMPTY", np.empty(0, np.int64))
    second = source.add("B", np.array([7, 2**62]))
    rows = np.concatenate([second[::-1], first])
    assert source.positions(rows).tolist() == [2**62, 7, 10, 30, 20]
    assert source.tables(rows) == ["B", "B", "A", "A", "A"]


def spoil(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: b"", "is empty"),
        (lambda data: b"hello, world" * 100, "not an SQLite database, or an encrypted one"),
        (lambda data: os.urandom(16) + data[16:], "encrypted"),
        (lambda data: data[:50], "not an SQLite database"),
        (lambda data: data[:-4096], "cut off"),
        (lambda data: data[:100] + b"\xff" * (len(data) - 100), "is damaged"),
    ],
)
def test_files_that_are_no_whole_database(path: Path, change: Callable[[bytes], bytes], said: str) -> None:
    spoil(path, change)
    with pytest.raises(Unavailable) as reason:
        Database(path, "x.db")
    assert said in reason.value.reason.en and "x.db" in reason.value.reason.en


def test_a_page_that_is_damaged_costs_its_table(path: Path) -> None:
    spoil(path, lambda data: data[:4096] + b"\xff" * 4096 + data[8192:])
    with Database(path, "x.db") as database, pytest.raises(Unavailable) as reason:
        database.integers("T", {"a": "a"})
    assert "damaged" in reason.value.reason.en


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    for what in (tmp_path, tmp_path / "gone.db"):
        with pytest.raises(Unavailable) as reason:
            Database(what, "x.db")
        assert "x.db cannot be read" in reason.value.reason.en


def test_a_locked_file_is_read_and_a_half_written_one_refused(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with Database(path, "x.db") as database:
            assert len(database.integers("T", {})["rowid"]) == 3
        writer.execute("PRAGMA cache_size=1")
        writer.execute("CREATE TABLE BIG AS SELECT zeroblob(100000) AS z FROM T")  # more than the cache: spills
        with pytest.raises(Unavailable) as reason:
            Database(path, "x.db")
        assert "x.db-journal" in reason.value.reason.en
        writer.execute("ROLLBACK")
    with Database(path, "x.db") as database:
        assert len(database.integers("T", {})["rowid"]) == 3


def test_changes_in_a_log_are_not_passed_over(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("INSERT INTO T VALUES (4, '4', 4)")
        with pytest.raises(Unavailable) as reason:
            Database(path, "x.db")
        assert "x.db-wal" in reason.value.reason.en
    with Database(path, "x.db") as database:  # the last one to close has written the log into the database
        assert len(database.integers("T", {})["rowid"]) == 4


def test_nothing_is_written_beside_a_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")  # a reader that is not immutable would make -wal and -shm
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        before = listing(path.parent)
        with Database(path, "x.db") as database:
            assert len(database.integers("T", {})["rowid"]) == 3
            assert listing(path.parent) == before and database.unchanged()
        assert listing(path.parent) == before
    finally:
        path.parent.chmod(0o755)


def test_a_file_that_changes_is_noticed(path: Path) -> None:
    with Database(path, "x.db") as database:
        os.utime(path, ns=(1, 1))
        assert not database.unchanged()


def test_names_with_special_characters(tmp_path: Path) -> None:
    path = write(tmp_path / "a ?#%20 b" / "x.db", TABLE)
    with Database(path, "x.db") as database:
        assert len(database.integers("T", {})["rowid"]) == 3
