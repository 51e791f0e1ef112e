"""A dose is a share of a cause's strength: none of it is the healthy job, all of it the whole cause."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from advisor_core.sample import SCENARIOS
from advisor_core.sample.causes import (
    CAUSES,
    FrequentItem,
    LaunchBlocking,
    SlowHost,
    SlowLink,
    SlowNetwork,
    SmallMatmuls,
    ThrottledClock,
    Unfused,
)
from advisor_core.sample.job import simulate
from advisor_core.sample.models.model import chosen
from advisor_core.sample.scenario import Scenario
from advisor_core.sample.timeline import Timeline

DIVISIBLE = sorted({cause.name for job in SCENARIOS.values() for cause in job.causes if cause.divisible})


def a_job_with(name: str) -> Scenario:
    """The smallest job of the catalogue that has the cause."""
    jobs = (job for job in SCENARIOS.values() if name in job.problems)
    return min(jobs, key=lambda job: (job.ranks, len(job.causes)))


@pytest.mark.parametrize("name", DIVISIBLE)
def test_a_part_of_a_cause_is_neither_the_healthy_job_nor_the_whole_cause(name: str) -> None:
    job = a_job_with(name)
    cause = next(cause for cause in job.causes if cause.name == name)
    healthy, whole = job.job, cause.afflict(job.job)
    half, nearly = (replace(cause, dose=dose).afflict(job.job) for dose in (0.5, 0.999999))
    assert replace(cause, dose=1.0).afflict(job.job) == whole
    assert len({repr(setup) for setup in (healthy, half, whole)}) == 3
    assert repr(nearly) != repr(half)


def test_what_is_either_there_or_not_has_no_dose() -> None:
    assert {name for name in CAUSES if name not in DIVISIBLE} >= {"launch-blocking", "task-queue-off", "leak"}
    with pytest.raises(ValueError, match="launch-blocking is either there or not"):
        LaunchBlocking(dose=0.5)
    with pytest.raises(ValueError, match="unfused-cross-entropy is either there or not"):
        Unfused("cross-entropy", dose=0.5)
    for dose in (0.0, -0.1, 1.1):
        with pytest.raises(ValueError, match="more than 0 and at most 1"):
            SlowHost("python", 100_000, dose=dose)


def test_doses_of_host_time_of_bandwidth_and_of_clock_are_shares_of_the_time_that_is_lost() -> None:
    job = SCENARIOS["healthy-compact"].job
    assert SlowHost("python", 211_000, dose=0.25).afflict(job).host.python == 11_000 + 50_000
    healthy, slow = 1 / job.link.bytes_per_s, 1 / 3e9
    assert 1 / SlowNetwork(dose=0.5).afflict(job).link.bytes_per_s == pytest.approx((healthy + slow) / 2)
    assert ThrottledClock(1_200, (1,), dose=0.5).afflict(job).ranks[1].mhz == round(2 / (1 / 1_800 + 1 / 1_200))
    assert SlowLink((0, 1), 5.0, dose=0.25).afflict(job).slow_pairs == ((0, 1, 2.0),)


@pytest.mark.parametrize(("share", "wanted"), [(0.25, 3), (0.5, 6), (0.75, 9), (1.0, 12), (0.0, 0)])
def test_a_share_of_things_is_spread_evenly(share: float, wanted: int) -> None:
    taken = [place for place in range(12) if chosen(place, share)]
    assert len(taken) == wanted
    gaps = [later - sooner for sooner, later in pairwise(taken)]
    assert max(gaps, default=0) - min(gaps, default=0) <= 1


def _kernels(timeline: Timeline, type_: str) -> int:
    return sum(task.kernel is not None and task.kernel.type == type_ for task in timeline.tasks)


def test_half_of_the_layers_have_the_code_of_half_a_cause() -> None:
    job = SCENARIOS["healthy-compact"]
    small = replace(job.job, training=replace(job.job.training, steps=1), ranks=job.job.ranks[:1])

    def fused(*causes: Unfused | SmallMatmuls) -> tuple[int, int, int]:
        (timeline,) = simulate(replace(job, job=small, causes=causes), 0)
        return _kernels(timeline, "SwiGlu"), _kernels(timeline, "RmsNorm"), _kernels(timeline, "MatMulV3")

    swiglu, norm, products = fused()
    half = fused(Unfused("swiglu", dose=0.5), Unfused("rms-norm", dose=0.5), SmallMatmuls(dose=0.5))
    whole = fused(Unfused("swiglu"), Unfused("rms-norm"), SmallMatmuls())
    assert (swiglu, norm) == (12, 2 * 13) and whole[:2] == (0, 0)
    assert half[0] == swiglu // 2 and half[1] == 2 * (6 + 1)  # the last norm is in no layer
    assert half[2] - products == (whole[2] - products) // 2 > 0


@pytest.mark.parametrize(("name", "fused"), [("unfused-optimizer", "ApplyAdamWV2"), ("cnn-unfused-optimizer", "")])
def test_a_share_of_the_weights_is_updated_by_a_chain(name: str, fused: str) -> None:
    """At a third of the dose a third of the kernels of the chain is there; the other weights are updated as before."""
    job = SCENARIOS[name]
    timelines = [
        simulate(replace(job, causes=causes), 0)[0] for causes in ((), (Unfused("optimizer", dose=1 / 3),), job.causes)
    ]
    none, third, whole = (len(timeline.kernels) for timeline in timelines)
    assert third - none == pytest.approx((whole - none) / 3, rel=0.2)
    if fused:
        before, after = (_kernels(timeline, fused) for timeline in timelines[:2])
        assert after == pytest.approx(before * 2 / 3, abs=2 * job.steps)


def test_a_share_of_the_numbers_is_read_back() -> None:
    job = SCENARIOS["item-synchronisation"]

    def reads(scenario: Scenario) -> int:
        (timeline,) = simulate(scenario, 0)
        return sum(span.name == "aten::item" for span in timeline.spans)

    half = replace(job, causes=(FrequentItem(dose=0.5),))
    assert reads(half) == pytest.approx((reads(job) + reads(job.cured(*job.causes))) / 2, rel=0.1)
