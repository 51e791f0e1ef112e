"""The ledger is closed before any rule sees it, and a rule's state is told with the ranks it holds for."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.facts.communication.cross_rank_waits import no_waits
from advisor_core.facts.ledger.totals import ledger
from advisor_core.loaders.discover import discover
from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions, installed_host
from advisor_core.run.rank import Compared, derive, judge, release
from advisor_core.testing import fact_store, table
from tests.once import ResultOf

Run = Callable[..., RunResult]


@pytest.fixture(scope="module")
def level0(shared_sample: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks at level 0, where only their comparison tells waiting from transfer, with the size of the job."""
    folder = Path(shutil.copytree(shared_sample(level="level0"), tmp_path_factory.mktemp("level0") / "job"))
    for number, file in enumerate(sorted(folder.glob("*/profiler_metadata.json"))):
        recorded = json.loads(file.read_text())
        recorded["distributed_args"] = {"rank": number, "world_size": 2}
        file.write_text(json.dumps(recorded))
    return folder


@pytest.fixture(scope="module")
def result(result_of: ResultOf, level0: Path) -> RunResult:
    return result_of(level0)


def test_rank_rules_judge_the_settled_ledger(result: RunResult) -> None:
    paths = {entry.path for step in result.ledger for entry in step.entries}
    assert "communication/wait/rank 1" in paths and "communication/unknown" not in paths
    exposed = next(finding for finding in result.findings if finding.rule == "CO001")
    steps = [step for step in result.ledger if step.rank == exposed.rank]
    waiting = sum(e.ns for step in steps for e in step.entries if e.path.startswith("communication/wait/"))
    uncovered = sum(e.ns for step in steps for e in step.entries if e.path.startswith("communication/"))
    assert exposed.observation["waiting_share"] == pytest.approx(waiting / uncovered)
    assert exposed.observation["unknown_share"] == 0
    assert any(finding.rule == "CO010" for finding in result.findings)


def test_processes_make_no_difference(result: RunResult, level0: Path) -> None:
    one, two = (each.model_copy(update={"timings": {}}) for each in (result, run([level0], RunOptions(), jobs=2)))
    assert one.model_dump_json() == two.model_dump_json()


def test_a_rank_that_does_not_fit_in_memory_is_read_again(
    result: RunResult, level0: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = result.model_copy(update={"timings": {}})
    monkeypatch.setattr("advisor_core.run.rank.HELD_BYTES", 0)
    assert run([level0], RunOptions(), jobs=1).model_copy(update={"timings": {}}) == whole


def test_states_are_told_with_their_ranks(advisor_sample: Path, tmp_path: Path) -> None:
    shutil.copytree(advisor_sample, tmp_path / "job")
    for file in sorted((tmp_path / "job").glob("*/ASCEND_PROFILER_OUTPUT/kernel_details.csv"))[1:]:
        file.unlink()
    rules = {rule.rule: rule for rule in run([tmp_path / "job"], RunOptions(), jobs=1).rules}
    assert rules["PB001"].state != "cannot_answer" and rules["PB001"].ranks["cannot_answer"] == [1]
    assert rules["PB001"].options, "what rank 1 has to record"
    assert rules["CO010"].ranks == {}
    for rule in rules.values():
        told = [rank for ranks in rule.ranks.values() for rank in ranks]
        assert sorted(told) in ([], [0, 1]) and (not rule.ranks or rule.state in rule.ranks)


def test_what_was_read_is_not_settled_again() -> None:
    store = fact_store(kernels=table("kernels", [{"start_us": 0, "duration_us": 80, "type": "Add"}]))
    store.settle(no_waits())
    store[ledger]
    with pytest.raises(RuntimeError, match="before the ranks were compared"):
        store.settle(no_waits())


def test_a_rank_is_kept_for_the_options_that_it_was_loaded_with(level0: Path) -> None:
    source, _ = discover(list(installed_host().loaders.values()), level0)
    try:
        derive(source, RunOptions())
        assert [step.step for step in judge(source, RunOptions(step=11)).steps] == [11]
        assert [step.step for step in judge(source, RunOptions()).steps] == [10, 11]
    finally:
        release()


def test_rules_of_a_rank_know_how_many_ranks_are_in_the_input(level0: Path) -> None:
    one, other = discover(list(installed_host().loaders.values()), level0)
    assert judge(one, RunOptions()).context["ranks"] == 1
    assert judge(other, RunOptions(), Compared(ranks=2)).context["ranks"] == 2
