"""Which ranks of a job are read in depth, and what a report says of the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.profile import InputError, Loader, Profile, RankInput
from advisor_core.loaders.ascend_pytorch.loader import AscendPytorchLoader
from advisor_core.loaders.discover import discover
from advisor_core.result.run import RunResult
from advisor_core.run.deep_ranks import BY_SIZE, MOST_RANKS, DeepRanks, RankError, StepSums, in_depth, telling
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from tests.sample.small import small

LATE = 3
"""The rank of the scenario late-rank-by-host that is late."""


@pytest.fixture(scope="module")
def job(shared_sample: Callable[..., Path]) -> Path:
    return shared_sample(small("late-rank-by-host"))


@pytest.fixture(scope="module")
def loaders() -> dict[str, Loader]:
    loader = AscendPytorchLoader()
    return {loader.name: loader}


def source(rank: int, *, has_sums: bool = True, size: int = 0) -> RankInput:
    return RankInput(Path("job"), Path(f"job/{rank}"), "kind", rank, "loader", size, has_sums=has_sums)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("all", DeepRanks(everything=True)),
        ("8", DeepRanks(count=8)),
        ("0,5", DeepRanks(ranks=(0, 5))),
        ("3,0-2,1", DeepRanks(ranks=(3, 0, 1, 2))),
    ],
)
def test_what_is_asked_for(text: str, wanted: DeepRanks) -> None:
    assert DeepRanks.of(text) == wanted


@pytest.mark.parametrize("text", ["0", "some", "1,", "5-2", "-1", "1,x"])
def test_what_cannot_be_asked_for(text: str) -> None:
    with pytest.raises(ValueError):
        DeepRanks.of(text)


def test_one_of_each_kind_comes_first() -> None:
    sums = {
        source(0): StepSums(0, 50, 40, 10),
        source(1): StepSums(0, 52, 39, 9),
        source(2): StepSums(0, 51, 5, 44),  # idles, and the others wait for it
        source(3): StepSums(0, 70, 31, 10),  # computes most, in the longest step
        source(4): StepSums(0, 50, 41, 9.5),
    }
    order = [one.rank for one in telling(sums)]
    assert order[:2] == [2, 3]
    assert sorted(order) == [0, 1, 2, 3, 4]


def test_each_stage_has_its_own() -> None:
    sums = {source(rank): StepSums(rank // 4, 50 - 20 * (rank // 4), 10 + rank, 5) for rank in range(8)}
    assert [one.rank for one in telling(sums)][:2] == [0, 4]


parts = st.floats(0, 1e9)


@given(st.lists(st.builds(StepSums, st.integers(0, 3), parts, parts, parts), min_size=1, max_size=12), st.randoms())
def test_the_order_has_every_rank_once_however_they_are_given(sums: list[StepSums], random: object) -> None:
    given_sums = {source(rank): own for rank, own in enumerate(sums)}
    order = list(telling(given_sums))
    assert sorted(one.rank for one in order) == list(range(len(sums)))
    shuffled = list(given_sums.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert list(telling(dict(shuffled))) == order


class Summed:
    """A loader that knows sums."""

    name = "loader"

    def discover(self, root: Path) -> list[RankInput]:
        return []

    def load(self, source: RankInput) -> Profile:
        raise InputError("nothing")


def test_a_small_job_is_read_in_depth_and_ranks_without_sums_always() -> None:
    loader: dict[str, Loader] = {"loader": Summed()}
    small = [source(rank) for rank in range(MOST_RANKS)]
    assert in_depth(loader, small, BY_SIZE) == (small, [])
    large = [source(rank, has_sums=rank % 2 == 0) for rank in range(MOST_RANKS + 1)]
    assert in_depth(loader, large, BY_SIZE) == (large, [])  # none of the sums can be used
    assert in_depth(loader, large, DeepRanks(count=3)) == (large, [])


def test_ranks_by_number() -> None:
    four = [source(rank, has_sums=rank != 3) for rank in range(4)]
    read, told = in_depth({}, four, DeepRanks(ranks=(1,)))
    assert [(one.rank, one.coarse) for one in read] == [(0, True), (1, False), (2, True)]
    assert [note.message.en.rpartition(": ")[2] for note in told][-1] == "3"
    with pytest.raises(RankError, match="rank 7"):
        in_depth({}, four, DeepRanks(ranks=(1, 7)))


@pytest.mark.parametrize("kind", ["text", "db"])
def test_the_sums_of_a_rank_alone(kind: str, shared_sample: Callable[..., Path], loaders: dict[str, Loader]) -> None:
    loader = loaders["ascend_pytorch"]
    (first, _) = discover([loader], shared_sample("healthy-compact", format=kind))
    assert first.has_sums
    profile = loader.load(replace(first, coarse=True))
    whole = loader.load(first)
    assert profile.coarse and set(profile.tables) == {"step_trace"}
    assert profile.tables["step_trace"].frame.equals(whole.tables["step_trace"].frame)
    assert (profile.world_size, profile.level) == (whole.world_size, whole.level)
    assert "--deep all" in profile.missing["kernels"].collect.en


@pytest.fixture(scope="module")
def two(job: Path) -> RunResult:
    return run([job], RunOptions(), deep=DeepRanks(count=2), jobs=1)


def test_the_late_rank_is_among_two(two: RunResult) -> None:
    deep = [entry.rank for entry in two.inputs if not entry.coarse]
    assert len(deep) == 2 and LATE in deep
    told = next(note.message.en for note in two.diagnostics if "in depth" in note.message.en)
    assert told.startswith("2 of 4 ranks were read in depth")
    assert two.profile.ranks == [0, 1, 2, 3]


def test_the_ranks_in_depth_answer_for_the_job(two: RunResult, job: Path) -> None:
    whole = run([job], RunOptions(), jobs=1)
    states = {rule.rule: rule.state for rule in two.rules}
    worse = {rule.rule for rule in whole.rules if rule.state == "pass" and states[rule.rule] == "cannot_answer"}
    assert not worse
    assert not [rule.rule for rule in two.rules if rule.state == "error"]
    walls = {(step.rank, step.step): step.wall_ns for step in whole.ledger}
    for step in two.ledger:
        assert step.wall_ns == pytest.approx(walls[step.rank, step.step], rel=0.005)
    assert two.plan is not None and whole.plan is not None
    assert two.plan.step_ns == pytest.approx(whole.plan.step_ns, rel=0.01)
