"""What a database says of itself by the ids with which its tables name one another."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover


@pytest.fixture(scope="module")
def sample(shared_sample: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    rank = min(shared_sample(format="db").iterdir())
    return Path(shutil.copytree(rank, tmp_path_factory.mktemp("db") / rank.name))


def said(rank: Path, file: str, *statements: str) -> list[str]:
    """The warnings of a rank after changes to one of its databases, which are taken back."""
    (path,) = rank.rglob(file)
    data = path.read_bytes()
    try:
        with closing(sqlite3.connect(path)) as database, database:
            for statement in statements:
                assert database.execute(statement).rowcount, statement
        (source,) = discover([AscendPytorchLoader()], rank)
        profile = AscendPytorchLoader().load(source)
    finally:
        path.write_bytes(data)
    return [each.message.en for each in profile.diagnostics if each.severity == "warning" and file[:6] in each.source]


def test_a_whole_database_says_nothing(sample: Path) -> None:
    assert said(sample, "ascend_pytorch_profiler_*.db", "UPDATE META_DATA SET value = value") == []


def first(table: str, rows: int = 1, where: str = "1") -> str:
    """A number of rows of a table, from its middle on."""
    middle = f"(SELECT count(*) / 2 FROM {table} WHERE {where})"
    return f"(SELECT rowid FROM {table} WHERE {where} ORDER BY rowid LIMIT {rows} OFFSET {middle})"


NOTIFY = "taskType = (SELECT id FROM STRING_IDS WHERE value = 'Notify Wait')"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"DELETE FROM COMPUTE_TASK_INFO WHERE rowid IN {first('COMPUTE_TASK_INFO', 2)}",
            ("2 tasks of the table TASK are not described in COMPUTE_TASK_INFO",)),
        (f"DELETE FROM COMMUNICATION_TASK_INFO WHERE rowid IN {first('COMMUNICATION_TASK_INFO', 3)}",
            ("3 tasks of the table TASK are not described in COMMUNICATION_TASK_INFO",)),
        (f"DELETE FROM TASK WHERE rowid IN {first('TASK', 1, NOTIFY)}",
            ("one id in the table COMMUNICATION_TASK_INFO names what is not in TASK",)),
        (f"DELETE FROM CONNECTION_IDS WHERE rowid IN {first('CONNECTION_IDS', 2)}",
            ("2 ids in the table PYTORCH_API name what is not in CONNECTION_IDS",)),
        ("DROP TABLE CONNECTION_IDS", ("PYTORCH_API name what is not in CONNECTION_IDS",)),
        ("DROP TABLE PYTORCH_API", ("CONNECTION_IDS name what is not in PYTORCH_API",)),
        ("DROP TABLE PYTORCH_CALLCHAINS", ("PYTORCH_API name what is not in PYTORCH_CALLCHAINS",)),
        ("DELETE FROM STRING_IDS WHERE id = (SELECT max(opType) FROM COMPUTE_TASK_INFO)",
            ("of texts in the table COMPUTE_TASK_INFO",)),
        ("DELETE FROM TASK_PMU_INFO WHERE globalTaskId = (SELECT max(globalTaskId) FROM TASK_PMU_INFO)",
            ("one kernel has fewer counters in TASK_PMU_INFO",)),
        ("DELETE FROM COMMUNICATION_OP WHERE opId = (SELECT max(opId) FROM COMMUNICATION_OP)",
            ("one id in the table COMMUNICATION_TASK_INFO names what is not in COMMUNICATION_OP",)),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)  # fmt: skip
def test_lost_rows_are_told_with_table_and_number(sample: Path, statement: str, words: tuple[str, ...]) -> None:
    told = said(sample, "ascend_pytorch_profiler_*.db", statement)
    for word in words:
        assert any(word in text for text in told), told


def test_calls_that_launched_are_missed_only_within_the_recording(sample: Path) -> None:
    kernels = "SELECT connectionId FROM TASK NATURAL JOIN (SELECT globalTaskId FROM COMPUTE_TASK_INFO)"
    launched = f"FROM CANN_API WHERE connectionId IN ({kernels})"
    middle = f"(SELECT connectionId {launched} ORDER BY connectionId LIMIT 1 OFFSET 500)"
    told = said(sample, "ascend_pytorch_profiler_*.db", f"DELETE FROM CANN_API WHERE connectionId = {middle}")
    assert any("in the table TASK" in text and "not in CANN_API" in text for text in told), told
    last = f"(SELECT max(connectionId) {launched})"
    told = said(
        sample, "ascend_pytorch_profiler_*.db", f"DELETE FROM CANN_API WHERE connectionId >= {last}"
    )  # recording of the host ended before the call
    assert not any("CANN_API" in text for text in told), told


def test_operations_of_both_tables_of_the_analysis(sample: Path) -> None:
    name = "(SELECT max(hccl_op_name) FROM CommAnalyzerBandwidth)"
    told = said(sample, "analysis.db", f"DELETE FROM CommAnalyzerBandwidth WHERE hccl_op_name = {name}")
    assert len(told) == 1 and "CommAnalyzerTime" in told[0] and "no row in CommAnalyzerBandwidth" in told[0]
