"""What a promise says of its own uncertainty, on small jobs whose answers are sums in the head."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor_core.api.testing import Scene
from advisor_core.contracts.cure import AsPeers, Bound, EvenWork
from advisor_core.facts.replay.changes import Shortening
from advisor_core.facts.replay.nodes import TASK
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.job_replay import CHANGE_ERROR, Cures, JobReplay
from advisor_core.job.sampling import MOST_STEPS, STUDENT, margin_ns, steps_for
from tests.job.jobs import meeting, modelled


def kernel(job: JobGraph, rank: int, by_us: int) -> Shortening:
    """The first kernel of a rank is shorter."""
    model = job.models[rank]
    kernels = (model.nodes.kind == TASK) & ~model.replay.recorded.talks
    return Shortening(model.nodes.row[kernels][:1], 1, 1000 * by_us)


LESS, MORE = 1 - CHANGE_ERROR, 1 + CHANGE_ERROR
"""What is saved at least and at most where a change is modelled as it turns out but for the error of any change."""


def test_the_mean_of_three_steps_is_uncertain_by_their_spread() -> None:
    """90, 100 and 110: a standard deviation of 10, over the root of 3, times 4.303."""
    assert margin_ns(np.array([90, 100, 110])) == pytest.approx(4.303 * 10 / 3**0.5)
    assert margin_ns(np.array([100, 100, 100])) == 0
    assert margin_ns(np.arange(20)) == pytest.approx(STUDENT[-1] * np.arange(20).std(ddof=1) / 20**0.5)


def test_one_step_tells_nothing_of_its_spread() -> None:
    assert margin_ns(np.array([100])) == 0


def test_so_many_steps_are_asked_for_that_their_mean_is_certain() -> None:
    """90, 100 and 110, to 8: 2.571 * 10 / sqrt(6) is 10.5, of 8 it is 8.4, of 9 it is 7.7."""
    assert steps_for(np.array([90, 100, 110]), 8) == 9
    assert steps_for(np.array([100, 100, 100]), 0) == 2
    assert steps_for(np.array([100]), 8) == 0
    assert steps_for(np.array([0, 100, 200]), 1) == MOST_STEPS


def test_more_steps_are_asked_for_where_the_recorded_ones_differ() -> None:
    job = meeting([100, 100], [180, 100])
    replayed = JobReplay(job, {"cure": Cures({1: kernel(job, 1, 40)})})
    assert replayed.steps_wanted(["cure"]) is None  # a single step, whose spread is not known


def test_it_is_told_what_the_recorded_steps_differ_by_most() -> None:
    """Four steps, the host far ahead; a kernel of each takes longer now and then, the other one does not."""
    scene, at = Scene(), 1000.0
    for number, took in enumerate((300, 100, 250, 130)):
        scene.step(number, 10 * number, 9)
        scene.kernel(at, took, launched=10 * number + 2, op="aten::mm", step=number)
        scene.kernel(at + took, 500, "Add", launched=10 * number + 5, op="aten::add", step=number)
        scene.collective(at + took + 500, 10, None, launched=10 * number + 7, step=number)
        at += took + 510
    replayed = JobReplay(modelled([scene]), {})
    assert replayed.steps_wanted([]) == MOST_STEPS  # a mean of 705, 96 apart, to 2 % of it
    found = replayed.varies([])
    assert found is not None and (found.rank, found.chain, found.path) == (0, "kernels", "compute/matmul")
    assert (found.least_ns, found.most_ns) == (100_000, 250_000)  # but for the first step
    assert JobReplay(meeting([100, 100], [180, 100]), {}).varies([]) is None


def test_a_range_reaches_from_what_a_cure_saves_at_least_to_what_it_saves_at_most() -> None:
    job = meeting([100, 100], [180, 100])
    cure = replace(kernel(job, 1, 40), least=kernel(job, 1, 10), most=kernel(job, 1, 60))
    replayed = JobReplay(job, {"cure": Cures({1: cure})})
    assert replayed.step_ns() - replayed.step_ns(["cure"]) == 40_000
    assert replayed.saving_range_ns(["cure"]) == (10_000 * LESS, 60_000 * MORE)
    after = replayed.step_ns() - 60_000 * MORE, replayed.step_ns() - 10_000 * LESS
    assert replayed.after_range_ns(["cure"]) == after


def test_what_is_bounded_by_another_rank_is_not_promised() -> None:
    job = meeting([100, 100], [180, 100])
    cure = replace(kernel(job, 1, 40), most=kernel(job, 1, 170))
    assert JobReplay(job, {"cure": Cures({1: cure})}).saving_range_ns(["cure"]) == (40_000 * LESS, 80_000 * MORE)


def test_the_error_of_the_replay_widens_a_range_on_both_sides() -> None:
    job = meeting([100, 100], [180, 100])
    replayed = JobReplay(job, {"cure": Cures({1: kernel(job, 1, 40)})}, error_share=0.01)
    error = round(0.01 * replayed.step_ns())
    assert replayed.saving_range_ns(["cure"]) == (40_000 * LESS - error, 40_000 * MORE + error)


def test_a_rank_that_was_not_recorded_may_keep_what_it_is_late() -> None:
    job = meeting([100, 100], [180, 100])
    replayed = JobReplay(job, {"cure": Cures({1: kernel(job, 1, 40)})}, absent={6: 300_000})
    assert replayed.step_ns() - replayed.step_ns(["cure"]) == 40_000
    assert replayed.saving_range_ns(["cure"]) == (0, 40_000 * MORE)
    assert replayed.after_range_ns(["cure"]) == (replayed.step_ns() - 40_000 * MORE, replayed.step_ns())


def test_without_a_change_nothing_is_promised() -> None:
    replayed = JobReplay(meeting([100, 100], [180, 100]), {})
    assert replayed.saving_range_ns([]) == (0, 0)
    assert replayed.after_range_ns([]) == (replayed.step_ns(), replayed.step_ns())


@pytest.mark.parametrize(("at", "saved_us"), [("usual", 50), ("least", 20), ("most", 80)])
def test_a_late_rank_becomes_as_quick_as_the_slowest_or_the_quickest_of_its_peers(at: Bound, saved_us: int) -> None:
    """Peers of 100, 130 and 160 us; the rank takes 180. What they then wait for one another stays."""
    job = meeting([100], [130], [160], [180])
    replayed = JobReplay(job, {"late": Cures(of_job=(AsPeers(3, (0, 1, 2)),))})
    own = replayed._own_time.calls.set_index("rank")["own_ns"]
    share = replayed._own_time._as_peers(AsPeers(3, (0, 1, 2)).bound(at))
    assert own[3] * (1 - share[3]) == pytest.approx(1000 * saved_us)
    least, most = replayed.saving_range_ns(["late"])
    assert (least, most) == (20_000 * LESS, 20_000 * MORE)  # the rank of 160 us is the last by then


def test_work_that_is_shared_out_stays_at_worst_as_uneven_as_the_others_are() -> None:
    """The mean of 100, 130 and 190 us is 140; without the longest the longer is 130 / 115 of the mean."""
    job = meeting([100], [130], [190])
    replayed = JobReplay(job, {"even": Cures(of_job=(EvenWork((0, 1, 2)),))})
    assert replayed.step_ns() - replayed.step_ns(["even"]) == 50_000
    assert replayed.saving_range_ns(["even"]) == (round((190_000 - round(140_000 * 130 / 115)) * LESS), 50_000 * MORE)
