"""What it costs that ranks which do the same work do not take equally long for it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.job_replay import JobReplay
from advisor_core.job.same_work import alike, evened, stages_of
from advisor_core.job.slowdown import MOST, Slowdown, slowdown
from advisor_core.result.layout import Layout
from tests.job.jobs import TRANSFER_US, meeting, modelled

US = 1_000


def of(job: JobGraph, stages: list[list[int]] | None = None) -> Slowdown:
    groups = stages or [[model.rank for model in job.models]]
    return slowdown(job, JobReplay(job, {}).step_ns(), groups, groups)


def test_the_ideal_is_the_mean_in_each_part() -> None:
    """Between two collectives the ranks take 100 and 180, then 100 and 40: the means are 140 and 70."""
    found = of(meeting([100, 100], [180, 40]))
    assert found.step_ns == (180 + 100 + 2 * TRANSFER_US) * US
    assert found.ideal_ns == (140 + 70 + 2 * TRANSFER_US) * US


def test_each_of_two_late_ranks_stands_out() -> None:
    """To mend one of them wins nothing, as the other one is as late: the step is 300 with either, 200 with none."""
    found = of(meeting([100], [300], [300], [100]))
    ideal, late = 200 + TRANSFER_US, 300 + TRANSFER_US
    assert found.ranks == pytest.approx({0: 1.0, 1: late / ideal, 2: late / ideal, 3: 1.0})


def test_ranks_that_are_even_are_not_slow() -> None:
    found = of(meeting([100, 50], [100, 50]))
    assert found.ideal_ns == found.step_ns
    assert set(found.ranks.values()) == {1.0}


def test_a_rank_alone_is_compared_with_none_and_a_longer_stage_stands_out() -> None:
    found = of(meeting([100], [300]), [[0], [1]])
    assert found.ideal_ns is None and not found.ranks
    assert found.stages == pytest.approx({1: (300 + TRANSFER_US) / (200 + TRANSFER_US)})


def test_nothing_is_said_of_stages_of_which_one_was_not_recorded() -> None:
    found = of(meeting([100], [300]), [[0, 1], []])
    assert found.ideal_ns is not None
    assert not found.stages


def test_of_many_ranks_the_slowest_are_told() -> None:
    found = of(meeting(*([100 + rank] for rank in range(MOST + 3))))
    assert sorted(found.ranks) == list(range(3, MOST + 3))


@settings(max_examples=10)
@given(st.lists(st.lists(st.integers(1, 500), min_size=2, max_size=2), min_size=2, max_size=4))
def test_even_ranks_do_as_much_altogether(ranks: list[list[int]]) -> None:
    models = meeting(*ranks).models
    before = sum(int(model.replay.recorded.graph.duration[model.kernels].sum()) for model in models)
    graphs = evened(models)
    after = [int(graph.duration[model.kernels].sum()) for graph, model in zip(graphs, models, strict=True)]
    assert sum(after) == pytest.approx(before, abs=len(models) * 4)
    assert max(after) - min(after) <= 4


def test_stages_are_known_by_the_sizes_or_where_nobody_sends() -> None:
    job = meeting([100], [100], [100], [100])
    assert stages_of(job, Layout({}, None)) == [[0, 1, 2, 3]]
    assert stages_of(job, Layout({"pp": 2, "dp": 2}, 4)) == [[0, 1], [2, 3]]
    assert stages_of(job, Layout({"pp": 2}, 8)) == [[0, 1, 2, 3], []]


def test_sizes_that_do_not_fit_the_ranks_tell_no_stage() -> None:
    assert Layout({"pp": 3}, 8).stages is None
    assert Layout({"pp": 3}, None).stages is None
    assert Layout({"pp": 1}, None).stage(5) == 0
    assert Layout({"tp": 4, "dp": 2}, 8).tensor == 4
    assert Layout({"tp": 4}, 8).tensor == 1, "the sizes do not make up the job: some are not recorded"


def test_a_rank_with_other_kernels_is_compared_with_none() -> None:
    scenes = [Scene(rank=rank) for rank in range(3)]
    for scene in scenes:
        for number in range(1 if scene.rank == 2 else 3):
            scene.kernel(10 * number, 5, launched=-20, op="aten::mm")
        scene.collective(40, 20, None, launched=-10).step(1, -30, 70)
    job = modelled(scenes)
    assert alike(job, [0, 1, 2]) == [0, 1]
    assert alike(job, []) == []


def test_what_the_host_takes_is_evened_too() -> None:
    """Rank 1 takes 300 us before it hands over its kernel, rank 0 100 us; both compute for 50."""
    scenes = [Scene(rank=0), Scene(rank=1)]
    for scene, handed in zip(scenes, (100, 300), strict=True):
        scene.kernel(-20, 5, launched=-30, op="aten::mul")
        scene.kernel(handed + 10, 50, launched=handed, op="aten::mm")
        scene.collective(handed + 60, 380 - handed - 60, None, launched=handed + 5).step(1, -60, 400)
    found = of(modelled(scenes))
    assert found.ideal_ns == pytest.approx(found.step_ns - 100 * US, abs=5 * US)
