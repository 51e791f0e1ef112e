"""Recorded jobs, where they are present: exact to the nanosecond, and one recording predicts another."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from advisor_core.cli.main import cli
from advisor_core.job.job_replay import JobReplay
from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import analysed
from advisor_core.run.prepared import RunOptions
from advisor_core.run.request import Request
from reports.markdown import MarkdownRenderer
from tests.job.test_job_graph import assert_exact

JOINED = {"ascend/alexnet-ddp-text-level1": 4, "ascend/alexnet-ddp-db-level1": 4}
"""Recording to the calls that join its ranks."""

Analysed = Callable[[str], tuple[RunResult, JobReplay | None]]


@pytest.fixture(scope="module")
def known(profiles: Path) -> Analysed:
    """Result and replay of a recording, which is skipped where it is not there; nobody changes them."""

    @cache
    def get(recording: str) -> tuple[RunResult, JobReplay | None]:
        folder = profiles / recording
        if not folder.is_dir():
            pytest.skip(f"{recording} is not there")
        return analysed(Request((folder,), RunOptions()), jobs=1)

    return get


@pytest.mark.parametrize("recording", JOINED)
def test_the_replay_of_all_ranks_gives_the_recorded_times(known: Analysed, recording: str) -> None:
    _, replayed = known(recording)
    assert replayed is not None
    assert replayed.job.calls["call"].nunique() == JOINED[recording]
    assert_exact(replayed.job)


@pytest.mark.parametrize("recording", JOINED)
def test_waiting_for_a_rank_that_is_not_there_leaves_nothing_sure(known: Analysed, recording: str) -> None:
    """Two of eight ranks of AlexNet: most of their step they wait for one of the others."""
    result, _ = known(recording)
    assert result.plan is not None and result.plan.absent
    waits = {
        int(path.rpartition(" ")[2]): ns
        for path, ns in result.mean_steps[0].entries.items()
        if path.startswith("communication/wait/rank ")
    }
    longest = max((rank for rank in waits if rank > 1), key=lambda rank: waits[rank])
    assert result.plan.absent[longest] == pytest.approx(waits[longest], rel=1e-3)
    assert result.plan.absent[longest] > 0.3 * result.plan.step_ns
    assert all(action.range_ns[0] == 0 for action in result.plan.actions)
    summary = MarkdownRenderer().summary(result, "en", [])
    assert f"if rank {', '.join(map(str, result.plan.absent))} gains as much" in summary


def test_ranks_of_two_jobs_are_not_replayed_together(profiles: Path) -> None:
    """The two of ``trace-diff`` were made at different times, on different machines."""
    result, replayed = analysed(Request((profiles / "kineto" / "trace-diff",), RunOptions(select=("GDQ010",))), jobs=1)
    assert replayed is None and result.plan is None


def test_without_the_loader_a_step_takes_what_it_takes_with_four_workers(profiles: Path) -> None:
    """One recording was made without workers of the data loader, the other with four: steps of 118 to 127 ms. There the
    call that copies a batch takes 9 ms where it takes 2 without workers, which nothing in the first recording tells."""
    slow, quick = profiles / "kineto" / "resnet50-workers-0", profiles / "kineto" / "resnet50-workers-4"
    if not (slow.is_dir() and quick.is_dir()):
        pytest.skip("the two recordings of ResNet-50 are not there")

    def asked(folder: Path, *options: str) -> dict[str, int]:
        found = CliRunner().invoke(cli, ["what-if", str(folder), "--format", "json", *options])
        assert found.exit_code == 0, found.output
        return {name: value for name, value in json.loads(found.stdout).items() if isinstance(value, int)}

    promised, real = asked(slow, "--without", "GHD006"), asked(quick)
    assert promised["after_ns"] == pytest.approx(real["step_ns"], rel=0.07)
    saved, truth = promised["step_ns"] - promised["after_ns"], promised["step_ns"] - real["step_ns"]
    assert saved == pytest.approx(truth, rel=0.25)
