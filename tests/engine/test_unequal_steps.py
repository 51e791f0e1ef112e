"""Ranks that were not recorded for the same steps: told, with those that end before the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from advisor_core.run.unequal_steps import unequal_steps
from advisor_core.sample import SCENARIOS
from advisor_core.sample.export.generation import NAMES
from advisor_core.sample.export.recording import RECORDINGS
from advisor_core.sample.job import simulate
from advisor_core.sample.setup import RankSetup
from advisor_core.sample.text import write_text


def test_a_rank_that_ends_early_is_named() -> None:
    differ, stopped = unequal_steps({**{rank: [10, 11, 12] for rank in range(3)}, 3: [10, 11]})
    assert differ.severity == "warning"
    assert "1 rank has others (rank 3: 10-11) than the steps 10-12 of the other 3" in differ.message.en
    assert stopped.message.en.startswith(
        "of rank 3 only the first steps are recorded, none of those after them up to 12"
    )
    assert "rank 3 为 step 10-11" in differ.message.zh


def test_other_steps_are_no_early_end() -> None:
    (differ,) = unequal_steps({0: [10, 11], 1: [10, 11], 2: [12, 13], 3: [11]})
    assert "(rank 2: 12-13, rank 3: 11)" in differ.message.en


def test_many_ranks_are_not_all_named() -> None:
    differ, stopped = unequal_steps({**{rank: [1, 2] for rank in range(9)}, **{rank: [1] for rank in range(9, 16)}})
    assert "rank 9, 10, 11, ...: 1)" in differ.message.en and "rank 9, 10, 11, ... only" in stopped.message.en


def test_equal_or_unmarked_steps_are_not_told() -> None:
    assert unequal_steps({0: [1, 2], 1: [1, 2]}) == []
    assert unequal_steps({0: [1, 2], 1: [None], 2: []}) == []


def test_the_other_ranks_are_replayed_without_one_that_stopped_early(tmp_path: Path) -> None:
    """Of three ranks the last recorded two steps of three: the plan is of the two others."""
    scenario = SCENARIOS["unfused-optimizer"]
    loop = scenario.job.training
    for steps, ranks in ((3, (0, 1)), (2, (2,))):
        small = replace(loop, shape=replace(loop.shape, layers=1), steps=steps)
        job = replace(scenario.job, training=small, ranks=(RankSetup(),) * 3)
        timelines = simulate(replace(scenario, job=job), seed=0)
        for rank in ranks:
            write_text(timelines[rank], tmp_path, NAMES[scenario.headers], RECORDINGS["level1"])
    result = run([tmp_path], RunOptions(cache_bytes=0, select=("HD", "NS", "CO")), jobs=1)
    assert result.plan is not None and result.plan.actions
    assert any("rank 2: 10-11" in diagnostic.message.en for diagnostic in result.diagnostics)
    assert result.balance is not None
    replayed = [rank.rank for rank in result.balance.ranks if rank.on_path_ns is not None]
    assert replayed == [0, 1], "rank 2 has no part in the replay"
