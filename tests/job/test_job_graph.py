"""Ranks that meet in collectives: the replay of the job gives the recorded times, and who comes sooner frees others."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisor_core.contracts.cure import AsPeers, Bound, EvenWork, HigherClock, KernelsTake
from advisor_core.facts.replay.changes import Merging, Shortening
from advisor_core.facts.replay.nodes import FEED, TASK
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.job_replay import Cures, JobReplay
from advisor_core.job.own_time import OwnTime
from advisor_core.replay.sweep import ends
from tests.job.jobs import TRANSFER_US, meeting, modelled


def assert_exact(job: JobGraph) -> None:
    """The unchanged replay gives the end of every node of every rank, by the rank's own clock."""
    ended = ends(job.graph, job.free_ns)
    for model, numbers, offset in zip(job.models, job.numbers, job.offset_ns, strict=True):
        assert (ended[numbers] + job.origin_ns + offset).tolist() == model.nodes.end_ns.tolist()


def shorter(job: JobGraph, rank: int, kernel: int, by_us: float) -> Cures:
    """The kernel of a rank with this number takes less."""
    model = job.models[rank]
    kernels = (model.nodes.kind == TASK) & ~model.replay.recorded.talks
    return Cures({rank: Shortening(model.nodes.row[kernels][kernel : kernel + 1], 1, round(1000 * by_us))})


FEW = settings(max_examples=15)
"""Each example derives the facts of several ranks."""

durations = st.lists(st.integers(1, 400), min_size=3, max_size=3)


@FEW
@given(st.lists(durations, min_size=2, max_size=4))
def test_the_unchanged_replay_gives_the_recorded_times(ranks: list[list[int]]) -> None:
    assert_exact(meeting(*ranks))


@FEW
@given(durations, durations, st.integers(-30_000_000, 30_000_000))
def test_clocks_apart_are_found_from_the_ends_of_collectives(one: list[int], other: list[int], ahead_us: int) -> None:
    job = meeting(one, other, ahead_us=[0, ahead_us])
    assert job.offset_ns == (0, 1000 * ahead_us)
    assert_exact(job)


def test_each_call_joins_the_ranks_that_it_is_of() -> None:
    job = meeting([100, 100, 100], [150, 50, 100])
    assert job.calls.groupby("call")["rank"].agg(list).tolist() == [[0, 1]] * 3


def test_a_rank_that_comes_sooner_shortens_the_step_until_another_is_the_last() -> None:
    job = meeting([100, 100], [180, 100])
    replayed = JobReplay(job, {"much": shorter(job, 1, 0, 120), "some": shorter(job, 1, 0, 30)})
    assert replayed.step_ns() - replayed.step_ns(["some"]) == 30_000
    assert replayed.step_ns() - replayed.step_ns(["much"]) == 80_000


def test_a_rank_that_waits_wins_nothing_by_itself() -> None:
    """Two late ranks side by side: what each of them wins alone is nothing, and both together win it all."""
    job = meeting([100, 100], [180, 100], [180, 100])
    cures = {"one": shorter(job, 1, 0, 80), "other": shorter(job, 2, 0, 80)}
    replayed = JobReplay(job, cures)
    step = replayed.step_ns()
    assert step - replayed.step_ns(["one"]) == step - replayed.step_ns(["other"]) == 0
    assert step - replayed.step_ns(cures) == 80_000


def test_a_rank_as_its_peers() -> None:
    job = meeting([100, 100], [180, 130], [110, 100])
    replayed = JobReplay(job, {"late": Cures(of_job=(AsPeers(1, (0, 2)),))})
    # The median of the peers is 105 and 100 us; the slowest of them, 110 and 100, is then the last.
    assert replayed.step_ns() - replayed.step_ns(["late"]) == 100_000


def test_work_that_is_shared_out_evenly() -> None:
    job = meeting([100, 100], [180, 100])
    replayed = JobReplay(job, {"even": Cures(of_job=(EvenWork((0, 1)),))})
    assert replayed.step_ns() - replayed.step_ns(["even"]) == 40_000


def test_a_slow_clock_slows_products_and_not_what_waits_for_memory() -> None:
    """Before the first call the ranks do the same: rank 1 takes twice as long for a product, and as long for an
    addition. Before the second they compute experts, 300 and 100 us of them in the time of rank 0, and an addition that
    is the same on both. Shared out evenly the experts take 200 us, and 400 on rank 1."""
    scenes = [Scene(rank=rank) for rank in (0, 1)]
    for scene, product, expert, until in zip(scenes, (100, 200), (300, 200), (270, 270), strict=True):
        scene.kernel(0, product, "MatMulV3", launched=-200, op="aten::mm")
        scene.kernel(product, 50, "Add", launched=-190, op="aten::add")
        scene.collective(product + 50, until - product - 50, None, launched=-180)
        scene.kernel(until, expert, "GroupedMatmul", launched=-170, op="npu::grouped")
        scene.kernel(until + expert, 50, "Add", launched=-160, op="aten::add")
        scene.collective(until + expert + 50, 370 - expert, None, launched=-150)
        scene.step(1, -210, until + 430)
    job = modelled(scenes)
    replayed = JobReplay(job, {"even": Cures(of_job=(EvenWork((0, 1), frozenset({"GroupedMatmul"})),))})
    model = job.models[1]
    own = np.flatnonzero(model.kernels)[[2, 3]]
    even, _ = replayed.whole(["even"])
    assert even.duration[job.numbers[1]][own].sum() == pytest.approx(450_000, abs=10)


def test_kernels_that_take_a_share_of_their_time() -> None:
    job = meeting([100, 100], [180, 100])
    replayed = JobReplay(job, {"clock": Cures(of_job=(KernelsTake({1: 0.5}),))})
    assert replayed.step_ns() - replayed.step_ns(["clock"]) == 80_000


def test_a_higher_clock_makes_the_matrix_unit_quicker_and_at_most_all_kernels() -> None:
    scenes = [Scene(rank=rank) for rank in (0, 1)]
    for scene, product in zip(scenes, (100, 180), strict=True):
        scene.kernel(0, product, "MatMulV3", launched=-200, op="aten::mm")
        scene.kernel(product, 60, "Add", launched=-190, op="aten::add", core="AI_VECTOR_CORE")
        scene.collective(product + 60, 260 - product, None, launched=-180).step(1, -210, 540)
    job, cure = modelled(scenes), HigherClock({1: 0.5})
    replayed = JobReplay(job, {"clock": Cures(of_job=(cure,))})
    # Rank 0 needs 160 us, rank 1 240: 90 of its 180 us of products are gone, and at most 30 of the addition.
    assert replayed.step_ns() - replayed.step_ns(["clock"]) == 80_000
    kernels, recorded = np.flatnonzero(job.models[1].kernels), job.models[1].replay.recorded.graph
    took = {at: OwnTime(job).with_cure(1, recorded, cure.bound(at)).duration[kernels] for at in get_args(Bound)}
    assert {at: durations.tolist() for at, durations in took.items()} == {
        "least": [90_000, 60_000],
        "usual": [90_000, 60_000],
        "most": [90_000, 30_000],
    }


def test_a_collective_that_takes_less_is_done_sooner_on_all_ranks() -> None:
    job = meeting([100, 100], [100, 100])
    model = job.models[0]
    calls = Shortening(model.nodes.row[model.replay.recorded.talks], 1, 20_000)
    replayed = JobReplay(job, {"link": Cures({0: calls})})
    assert replayed.step_ns() - replayed.step_ns(["link"]) == 20_000
    assert replayed.parts(["link"])["communication"] == 2 * TRANSFER_US * 1000 - 20_000


def test_parts_add_up_and_are_the_means_of_the_ranks() -> None:
    replayed = JobReplay(meeting([100, 100], [180, 120]), {})
    parts = replayed.parts()
    assert sum(parts.values()) == replayed.step_ns() == 340_000
    assert parts["compute"] == 250_000 and parts["communication"] == 90_000


def test_the_end_waits_for_the_kernels_of_the_late_rank() -> None:
    limit = JobReplay(meeting([100, 100], [180, 120]), {}).limit()
    assert (limit.rank, limit.chain) == (1, "kernels")
    assert limit.share == pytest.approx(300 / 340)


def test_what_only_the_hash_of_a_group_says_is_believed_where_calls_end_together() -> None:
    assert meeting([100, 100], [180, 120], named=False).calls["call"].nunique() == 2
    apart = meeting([100, 100], [180, 120], ahead_us=[0, 500], named=False)
    assert apart.calls.empty
    assert_exact(apart)


def test_recordings_made_at_different_times_are_not_joined() -> None:
    job = meeting([100, 100], [180, 120], ahead_us=[0, 10 * 86_400e6])
    assert job.calls.empty
    assert_exact(job)


@FEW
@given(st.lists(durations, min_size=2, max_size=3), st.integers(0, 2), st.integers(1, 400))
def test_a_longer_kernel_never_shortens_the_step(ranks: list[list[int]], kernel: int, more_us: int) -> None:
    job = meeting(*ranks)
    took = [ranks[0][kernel]]
    model = job.models[0]
    kernels = (model.nodes.kind == TASK) & ~model.replay.recorded.talks
    row = model.nodes.row[kernels][kernel : kernel + 1]
    longer = Merging.none(row, np.array(took, dtype=float), np.array(took, dtype=float) + more_us)
    replayed = JobReplay(job, {"longer": Cures({0: longer})})
    assert replayed.step_ns(["longer"]) >= replayed.step_ns()


def hosts_of(*took_us: float) -> JobGraph:
    """Ranks with the same six kernels of 10 us before a collective, which the host of each hands over every so many
    us."""
    scenes = [Scene(rank=rank) for rank in range(len(took_us))]
    until = 6 * max(took_us) + 20 + TRANSFER_US
    for scene, took in zip(scenes, took_us, strict=True):
        for number in range(6):
            scene.kernel(number * took + 10, 10, launched=number * took, op="aten::mm")
        arrived = 6 * took + 20
        scene.collective(arrived, until - arrived, None, launched=6 * took)
        scene.step(1, -100, until + 200)
    return modelled(scenes)


def test_a_rank_as_its_peers_has_their_host_and_keeps_its_kernels() -> None:
    job = hosts_of(50, 200)
    late = job.models[1]
    replayed = JobReplay(job, {"late": Cures(of_job=(AsPeers(1, (0,)),))})
    after, _ = replayed.whole(["late"])
    for kind, share in ((TASK, 1.0), (FEED, 0.25)):
        own = np.flatnonzero((late.nodes.kind == kind) & ~late.replay.recorded.talks)
        was, now = (int(graph.duration[job.numbers[1]][own].sum()) for graph in (job.graph, after))
        assert now == pytest.approx(share * was, abs=2), kind
    assert replayed.step_ns() - replayed.step_ns(["late"]) == 6 * 150_000


def test_what_makes_a_rank_late_goes_where_it_was() -> None:
    """The host of rank 1 waits for 1 ms before its second kernel, and is as quick as that of rank 0 otherwise."""
    scenes = [Scene(rank=rank) for rank in (0, 1)]
    for scene, waits in zip(scenes, (0, 1000), strict=True):
        for number in range(4):
            launched = 50 * number + (waits if number else 0)
            scene.kernel(launched + 10, 10, launched=launched, op="aten::mm")
        arrived = 220 + waits
        scene.collective(arrived, 1240 - arrived, None, launched=200 + waits)
        scene.step(1, -100, 1500)
    job = modelled(scenes)
    after, _ = JobReplay(job, {"late": Cures(of_job=(AsPeers(1, (0,)),))}).whole(["late"])
    own = np.flatnonzero(job.models[1].nodes.kind == FEED)
    was, now = (graph.duration[job.numbers[1]][own].tolist() for graph in (job.graph, after))
    assert was == [0, 1_050_000, 50_000, 50_000, 50_000]
    assert now == [0, 50_000, 50_000, 50_000, 50_000]


def test_a_rank_whose_peers_were_not_recorded_takes_as_long_as_it_does() -> None:
    job = hosts_of(50, 200)
    replayed = JobReplay(job, {"late": Cures(of_job=(AsPeers(1, (7,)),))})
    assert replayed.step_ns(["late"]) == replayed.step_ns()


def test_calls_that_are_put_together_are_moved_by_the_last_of_them() -> None:
    """Three transfers of 20 us that become one of 30: it takes 10 us more than the last did, on every rank, though rank
    0 had waited within its own for rank 1."""
    job = meeting([100, 0, 0], [180, 0, 0])
    cures = {}
    for rank, model in enumerate(job.models):
        calls = model.nodes.row[model.replay.recorded.talks]
        took = model.nodes.end_ns[model.replay.recorded.talks] - model.nodes.start_ns[model.replay.recorded.talks]
        after = float(took.sum()) - 30_000
        cures[rank] = Merging(calls, np.zeros(3, np.int64), np.array([took.sum()]), np.array([after]), at_end=True)
    replayed = JobReplay(job, {"together": Cures(cures)})
    after_graph, _ = replayed.whole(["together"])
    hubs = sorted({int(hub) for numbers in job.hubs for hub in numbers if hub >= 0})
    assert after_graph.duration[hubs].tolist() == [0, 0, 3 * 20_000 - 30_000]
    assert replayed.step_ns() - replayed.step_ns(["together"]) == pytest.approx(30_000, abs=1)
