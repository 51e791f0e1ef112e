"""A first step that warms up on one rank is left out on all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.job.leave_out import FirstStep, kept, left_out
from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from tests.loaders.kineto.build import Recording

MS = 1_000.0
ROW = "elementwise_kernel<MulFunctor>"


def rank(number: int, *, warms_up: bool, steps: int = 4) -> Recording:
    """Steps of 10 ms from step 5 on; the first takes 40 ms longer where an operator runs for the first time."""
    made = Recording()
    made.members["distributedInfo"] = {"rank": number, "world_size": 2}
    begin = 1_000.0
    for step in range(steps):
        extra = 40 * MS if warms_up and not step else 0.0
        made.step(5 + step, begin, 9.9 * MS + extra)
        made.launch(ROW, begin + 100, begin + 150, 3 * MS, 10 * step + 1)
        made.operator("aten::convolution", begin + 4 * MS, 50 + extra, 10 * step + 2)
        made.launch(ROW, begin + 5 * MS + extra, begin + 5.1 * MS + extra, 3 * MS, 10 * step + 3)
        begin += 10 * MS + extra
    return made


def job(folder: Path, *ranks: Recording, options: RunOptions | None = None) -> RunResult:
    for number, made in enumerate(ranks):
        made.write(folder / f"rank{number}.json")
    return run([folder], options or RunOptions(), jobs=1)


def steps(result: RunResult) -> dict[int, list[int | None]]:
    return {
        number: [step.step for step in result.profile.steps if step.rank == number] for number in result.profile.ranks
    }


def said(result: RunResult) -> list[str]:
    return [one.message.en for one in result.diagnostics if "left out on all ranks" in one.message.en]


def test_the_job_decides_once_and_says_so(tmp_path: Path) -> None:
    result = job(tmp_path, rank(0, warms_up=True), rank(1, warms_up=False))
    assert steps(result) == {0: [6, 7, 8], 1: [6, 7, 8]}
    assert {step.step for step in result.ledger} == {6, 7, 8}
    assert said(result) == ["step 5 is left out on all ranks, here too: it warms up on rank 0"]
    (found,) = [finding for finding in result.findings if finding.rule == "GDQ009"]
    assert found.ranks == [0]
    assert not [finding for finding in result.findings if finding.rule == "GDQ008"], "it is told once"
    (judged,) = [rule for rule in result.rules if rule.rule == "GDQ009"]
    assert judged.ranks == {"fail": [0], "not_applicable": [1]}


def test_each_rank_that_tells_it_by_itself_has_a_finding_and_no_remark(tmp_path: Path) -> None:
    result = job(tmp_path, rank(0, warms_up=True), rank(1, warms_up=True))
    assert steps(result) == {0: [6, 7, 8], 1: [6, 7, 8]} and said(result) == []


def test_without_a_warm_up_all_steps_stay(tmp_path: Path) -> None:
    result = job(tmp_path, rank(0, warms_up=False), rank(1, warms_up=False))
    assert steps(result) == {0: [5, 6, 7, 8], 1: [5, 6, 7, 8]} and said(result) == []


def test_a_chosen_step_is_shown_on_all_ranks(tmp_path: Path) -> None:
    result = job(tmp_path, rank(0, warms_up=True), rank(1, warms_up=False), options=RunOptions(step=5))
    assert steps(result) == {0: [5], 1: [5]} and said(result) == []


def test_two_processes_decide_as_one(tmp_path: Path) -> None:
    one = job(tmp_path, rank(0, warms_up=True), rank(1, warms_up=False))
    two = run([tmp_path], RunOptions(), jobs=2)
    assert one.ledger == two.ledger and said(one) == said(two)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (FirstStep(5, 3, False), {1: 5}),
        (FirstStep(5, 2, False), {1: 5}),
        (FirstStep(5, 1, False), {}),  # it has no other
        (FirstStep(6, 3, False), {}),  # it began later
        (FirstStep(5, 3, True), {}),  # it tells it by itself
    ],
)
def test_which_ranks_follow(other: FirstStep, expected: dict[int, int]) -> None:
    assert left_out({0: FirstStep(5, 4, True), 1: other}) == expected


WAITED = FirstStep(5, 3, warms_up=True, waits=True)


@pytest.mark.parametrize(
    ("other", "world", "stays"),
    [
        (FirstStep(5, 3, False), 2, {0}),  # nobody warms up: the other one was late by its ordinary work
        (WAITED, 2, {0, 1}),
        (FirstStep(5, 3, True), 2, set()),  # it waited for that one
        (FirstStep(5, 3, False, calls=False), 2, set()),  # that one could not tell
        (FirstStep(6, 3, False), 2, set()),  # its recording begins later
        (FirstStep(5, 3, False), 4, set()),  # it may have waited for a rank that was not recorded
        (FirstStep(5, 3, False), 0, set()),
    ],
)
def test_a_rank_that_only_waited_keeps_its_first_step_where_nobody_warms_up(
    other: FirstStep, world: int, stays: set[int]
) -> None:
    first = {0: WAITED, 1: other}
    assert kept(first, world) == stays
    assert left_out(first, world) == ({} if stays or other.warms_up or other.step != 5 else {1: 5})
