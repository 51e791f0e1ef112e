"""Traces of the host alone: a job on the CPU, or a recording without the activity CUDA."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor_core.cli.main import cli
from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from tests.loaders.kineto.build import MAIN, Recording, two_steps

NEXT = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def on_the_host(steps: int = 2, loader_us: float = 400) -> Recording:
    """Steps of 1000 us: the loader, from 100 us on; an operator of 300 us on the loop's thread from 600 us on, which
    calls one of 100 us; one of 200 us on another thread from 800 us on, of which 100 us are beside the first."""
    made = Recording(members={"schemaVersion": 1, "deviceProperties": []})
    for number in range(steps):
        begin = 1000 * number
        made.step(number + 5, begin, 990)
        if loader_us:
            made.event("user_annotation", NEXT, begin + 100, loader_us)
        made.operator("aten::linear", begin + 600, 300, 3 * number).operator(
            "aten::addmm", begin + 620, 100, 3 * number + 1
        )
        made.operator("aten::mm", begin + 800, 180, 3 * number + 2, tid=MAIN + 1)
    return made


def analysed(made: Recording, folder: Path) -> RunResult:
    return run([made.write(folder / "trace.json.gz")], RunOptions())


def state(result: RunResult, rule: str) -> str:
    return next(outcome.state for outcome in result.rules if outcome.rule == rule)


def test_a_step_on_the_host_is_divided(tmp_path: Path) -> None:
    result = analysed(on_the_host(), tmp_path)
    found = next(finding for finding in result.findings if finding.rule == "GHD013")
    parts = found.evidence[0].rows
    assert [row["step"] for row in parts] == [5, 6]
    # the first step ends where the next begins, the last where its mark ends
    assert [row["wall"] for row in parts] == [1_000_000, 990_000]
    assert [row["loader"] for row in parts] == [400_000, 400_000]
    assert [row["in_operators"] for row in parts] == [380_000, 380_000]
    assert [row["rest"] for row in parts] == [220_000, 210_000]
    operators = {row["operator"]: (row["calls"], row["self"]) for row in found.evidence[1].rows}
    assert operators == {"aten::linear": (2, 400_000), "aten::addmm": (2, 200_000), "aten::mm": (2, 360_000)}
    assert "40.2 %" in found.title.en and "40.2 %" in found.title.zh


def test_what_needs_the_gpu_cannot_answer_and_the_gpu_is_named_as_missing(tmp_path: Path) -> None:
    result = analysed(on_the_host(), tmp_path)
    assert not result.ledger
    assert state(result, "GDQ005") == "fail"
    for rule in ("GHD001", "GHD006", "GNS001", "GCO001"):
        outcome = next(outcome for outcome in result.rules if outcome.rule == rule)
        assert outcome.state == "cannot_answer"
        assert outcome.reason is not None and "device" in outcome.reason.en and outcome.reason.zh
    assert {diagnostic.severity for diagnostic in result.diagnostics} == {"warning"}


@pytest.mark.parametrize(("loader_us", "expected"), [(0, "not_applicable"), (9, "pass"), (12, "fail")])
def test_the_data_loader_of_a_recording_without_a_gpu(tmp_path: Path, loader_us: float, expected: str) -> None:
    assert state(analysed(on_the_host(loader_us=loader_us), tmp_path), "GHD013") == expected


def test_without_marks_all_of_the_recording_is_one_step(tmp_path: Path) -> None:
    made = Recording(members={"schemaVersion": 1, "deviceProperties": []})
    made.operator("aten::linear", 100, 300, 1).operator("aten::relu", 600, 200, 2)
    found = next(finding for finding in analysed(made, tmp_path).findings if finding.rule == "GDQ005")
    (parts,) = (evidence for evidence in found.evidence if any("rest" in row for row in evidence.rows))
    assert parts.rows[0] == {"step": -1, "wall": 700_000, "loader": 0, "in_operators": 500_000, "rest": 200_000}


def test_a_recording_with_a_gpu_is_judged_by_its_ledger(tmp_path: Path) -> None:
    result = analysed(two_steps(), tmp_path)
    assert state(result, "GHD013") == "not_applicable" and state(result, "GDQ005") == "pass"


def test_the_command_reads_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = on_the_host().write(tmp_path / "in" / "trace.pt.trace.json")
    done = CliRunner().invoke(cli, ["run", str(path), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "GPU" in (tmp_path / "out" / "report.md").read_text()


def test_without_an_operator_nothing_can_be_judged(tmp_path: Path) -> None:
    made = Recording(members={"schemaVersion": 1, "deviceProperties": []}).step(1, 0, 100)
    (tmp_path / "in").mkdir()
    path = made.write(tmp_path / "in" / "trace.pt.trace.json")
    done = CliRunner().invoke(cli, ["run", str(path), "-o", str(tmp_path / "out")])
    assert done.exit_code == 3, done.output
