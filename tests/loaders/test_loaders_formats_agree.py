"""The same job as text and as DB: the same tables, the same ledger, the same findings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.result.run import RunResult
from tests.once import ResultOf

FORMATS = ("text", "db")


@pytest.fixture(scope="module")
def jobs(advisor_sample: Path, shared_sample: Callable[..., Path]) -> dict[str, Path]:
    return {"text": advisor_sample, "db": shared_sample(format="db")}


@pytest.fixture(scope="module")
def results(result_of: ResultOf, jobs: dict[str, Path]) -> dict[str, RunResult]:
    return {name: result_of(folder) for name, folder in jobs.items()}


def test_tables(jobs: dict[str, Path]) -> None:
    text, db = (discover([AscendPytorchLoader()], jobs[name]) for name in FORMATS)
    assert [source.rank for source in text] == [source.rank for source in db] and len(text) > 1
    read, again = (AscendPytorchLoader().load(sources[0]).tables for sources in (text, db))
    kernels, others = read["kernels"].frame, again["kernels"].frame
    kernels = kernels.sort_values("start_ns", kind="stable", ignore_index=True)
    for column in ("step", "name", "type", "core", "stream", "task", "block_dim", "input_shapes", "output_dtypes"):
        assert kernels[column].tolist() == others[column].tolist(), column
    for column in ("start_ns", "duration_ns", "wait_ns"):
        assert (kernels[column] - others[column]).abs().max() <= 2, column
    for table in ("device_tasks", "communication_tasks", "collectives", "collective_bandwidth", "links", "step_trace"):
        assert len(read[table].frame) == len(again[table].frame), table
    events, calls = read["host_events"].frame, again["host_events"].frame
    assert events.groupby("category", observed=True).size().to_dict() == (
        calls.groupby("category", observed=True).size().to_dict()
    )
    assert set(events["name"]) == set(calls["name"])


def test_findings(results: dict[str, RunResult]) -> None:
    text, db = (results[name] for name in FORMATS)
    assert {rule.rule: rule.state for rule in text.rules} == {rule.rule: rule.state for rule in db.rules}
    assert {finding.fingerprint for finding in text.findings} == {finding.fingerprint for finding in db.findings}
    assert len(text.findings) > 10 and text.diagnostics == db.diagnostics == []
    assert (text.environment.chip["cube_cores"], text.environment.chip["vector_cores"]) == (
        db.environment.chip["cube_cores"],
        db.environment.chip["vector_cores"],
    )


def test_ledger(results: dict[str, RunResult]) -> None:
    """Idle time may move a little between its causes: a DB has no arrows, so that a launch counts from where in its
    call arrows start in the middle; here that is 0.2 us after or before, for some 350 launches of a step."""
    for text, db in zip(results["text"].ledger, results["db"].ledger, strict=True):
        assert (text.rank, text.step) == (db.rank, db.step) and abs(text.wall_ns - db.wall_ns) <= 2
        ours, theirs = ({entry.path: entry.ns for entry in step.entries} for step in (text, db))
        for path in ours.keys() | theirs.keys():
            bound = 1000 if path.startswith(("compute", "communication")) else 0.0005 * text.wall_ns
            assert abs(ours.get(path, 0) - theirs.get(path, 0)) <= bound, path


def test_evidence_names_table_and_rowid(results: dict[str, RunResult]) -> None:
    sources = [
        e.source for finding in results["db"].findings for e in finding.evidence if e.kind == "rows" and e.source
    ]
    assert sources and all(source.rowid is not None and source.file.endswith(".db") for source in sources)
    assert {"COMPUTE_TASK_INFO", "COMMUNICATION_OP", "PYTORCH_API"} <= {source.table for source in sources}
