"""The databases are those of a real profile: tables, columns, enumerations, and the form of values."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.sample import write_sample
from tests.sample.database import Database, DbExport

Samples = Callable[..., list[DbExport]]

VIEWER = {"connectionCats", "status_info", "sqlite_sequence", "OVERLAP_ANALYSIS"}
"""Tables that a viewer wrote into the real file when it was opened."""
NOT_SIMULATED = {"HBM", "LLC", "ACC_PMU", "SOC_BANDWIDTH_LEVEL", "NPU_OP_MEM"}
"""Sampled hardware counters, and memory of graph operators."""
NEWER = {
    "COMPUTE_TASK_INFO": [("opState", "INTEGER", 0)],
    "COMMUNICATION_TASK_INFO": [("isMaster", "INTEGER", 0), ("bandwidth", "NUMERIC", 0)],
    "COMMUNICATION_OP": [("deviceId", "INTEGER", 0)],
    "StepTraceTime": [("deviceId", "INTEGER", 0)],
}


@pytest.fixture(scope="session")
def real(profiles: Path) -> DbExport:
    """A real DB export that no viewer has changed but for tables of its own."""
    root = profiles / "ascend" / "alexnet-ddp-db-level1" / "rank1_ascend_pt"
    if not root.is_dir():
        pytest.skip(f"no real DB profile at {root}")
    return DbExport(root)


def databases(export: DbExport) -> list[Database]:
    return [export.profile, export.analysis]


def test_tables_are_those_of_a_real_profile(db_sample: Samples, real: DbExport) -> None:
    written, (expected, expected_analysis) = db_sample("transformer-training")[1], databases(real)
    assert written.profile.tables == expected.tables - VIEWER - NOT_SIMULATED
    assert written.analysis.tables == expected_analysis.tables
    assert written.profile.path.name == expected.path.name

    def spaceless(statements: set[str]) -> set[str]:
        return {statement.replace(" ", "") for statement in statements}

    assert spaceless(written.profile.indexes) == spaceless(expected.indexes)


def test_columns_are_those_of_a_real_profile(db_sample: Samples, real: DbExport) -> None:
    for written, expected in zip(databases(db_sample("transformer-training")[1]), databases(real), strict=True):
        for table in written.tables:
            assert written.columns(table) == expected.columns(table), table


def test_values_have_the_types_of_a_real_profile(db_sample: Samples, real: DbExport) -> None:
    def types(database: Database, table: str, column: str) -> set[str]:
        return {row["type"] for row in database.rows(f"SELECT DISTINCT typeof({column}) AS type FROM {table}")}

    for written, expected in zip(databases(db_sample("transformer-training")[1]), databases(real), strict=True):
        for table in written.tables:
            for name, *_ in expected.columns(table):
                # A NUMERIC column turns a whole number into an integer: which of the two there are is chance.
                numbers = {"integer", "real"}
                found, known = types(written, table, name), types(expected, table, name)
                assert found <= known | (numbers if known & numbers else set()), (table, name)


def test_enumerations_are_those_of_a_real_profile(db_sample: Samples, real: DbExport) -> None:
    written = db_sample("transformer-training")[1].profile
    enumerations = {table for table in written.tables if table.startswith("ENUM_")}
    assert len(enumerations) == 7
    for table in enumerations:
        assert written.enumeration(table) == real.profile.enumeration(table), table


def test_names_in_tables_are_those_of_a_real_profile(db_sample: Samples, real: DbExport) -> None:
    queries = {
        "counters": "SELECT DISTINCT name AS id FROM TASK_PMU_INFO",
        "steps of collectives": "SELECT DISTINCT taskType AS id FROM COMMUNICATION_TASK_INFO",
        "types of tasks": "SELECT DISTINCT taskType AS id FROM TASK",
    }
    for what, query in queries.items():
        written, expected = (
            {export.profile.strings[row["id"]] for row in export.profile.rows(query)}
            for export in (db_sample("transformer-training")[1], real)
        )
        assert written <= expected, what
        assert len(written) >= 4


def test_newer_files_have_more_columns(db_sample: Samples) -> None:
    older = db_sample("transformer-training")[0]
    newer = db_sample("transformer-training", headers="2025")[0]
    for before, after in zip(databases(older), databases(newer), strict=True):
        assert before.tables == after.tables
        for table in before.tables:
            added = [column for column in after.columns(table) if column not in before.columns(table)]
            assert added == NEWER.get(table, [])
            assert [column for column in after.columns(table) if column not in added] == before.columns(table)
    assert older.profile.enumeration("ENUM_API_TYPE")[5500] == "hccl"
    assert newer.profile.enumeration("ENUM_API_TYPE")[5500] == "communication"
    assert not (older.root / "profiler_metadata.json").exists()
    assert (newer.root / "profiler_metadata.json").is_file()


def test_strings_lie_in_three_ranges(db_sample: Samples) -> None:
    database = db_sample("healthy-training")[0].profile
    ids = [row["id"] for row in database.table("STRING_IDS")]
    assert ids == sorted(ids)
    starts = [number for number in ids if number - 1 not in set(ids)]
    assert starts == [0, 1 << 28, 2 << 28]
    references = database.rows("SELECT name AS id FROM PYTORCH_API UNION SELECT stack FROM PYTORCH_CALLCHAINS")
    assert all(1 << 28 <= row["id"] < 2 << 28 for row in references)


def test_a_single_rank_has_no_number(db_sample: Samples) -> None:
    (export,) = db_sample("healthy-training-single")
    assert export.profile.path.name == "ascend_pytorch_profiler.db"
    assert export.analysis.tables == {"StepTraceTime"}
    assert not export.profile.tables & {"COMMUNICATION_OP", "COMMUNICATION_TASK_INFO", "RANK_DEVICE_MAP"}


def test_files_are_sound(db_sample: Samples) -> None:
    for database in databases(db_sample("transformer-training")[0]):
        assert database.rows("PRAGMA integrity_check") == [{"integrity_check": "ok"}]
        assert database.rows("PRAGMA page_size") == [{"page_size": 4096}]


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path, written: Callable[..., list[Path]]) -> None:
    before = written("transformer-training", format="db")
    again = write_sample(tmp_path, scenario="transformer-training", format="db")
    for left, right in zip(before, again, strict=True):
        files = sorted(path.relative_to(left) for path in left.rglob("*") if path.is_file())
        assert files == sorted(path.relative_to(right) for path in right.rglob("*") if path.is_file())
        assert len(files) == 3
        for file in files:
            assert (left / file).read_bytes() == (right / file).read_bytes()


def test_a_file_that_is_there_is_replaced(tmp_path: Path) -> None:
    (first,) = write_sample(tmp_path, scenario="healthy-training-single", format="db")
    path = first / "ASCEND_PROFILER_OUTPUT" / "analysis.db"
    before = path.read_bytes()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE left_over (id INTEGER)")
    connection.close()
    write_sample(tmp_path, scenario="healthy-training-single", format="db")
    assert path.read_bytes() == before
