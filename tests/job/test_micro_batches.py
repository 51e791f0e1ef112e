"""More micro-batches in a pipeline of two stages, whose steps are sums in the head."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisor_core.contracts.cure import MoreMicroBatches
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.job_replay import Cures, JobReplay, _Asked
from tests.job.jobs import EARLY_US, TRANSFER_US, modelled

TWICE = MoreMicroBatches(((0, 1),))


def pipeline(first_us: int, second_us: int, count: int = 3) -> JobGraph:
    """The first stage works ``first_us`` on each of ``count`` micro-batches and sends it; the second receives it, which
    takes `TRANSFER_US` once it is there and the stage is done with the one before, and works ``second_us``."""
    first, second, free = Scene(rank=0), Scene(rank=1), 0.0
    for number in range(count):
        sent, launched = float((number + 1) * first_us), -EARLY_US + 2 * number
        arrives = max(sent, free) + TRANSFER_US
        first.kernel(number * first_us, first_us, launched=launched)
        first.collective(sent, arrives - sent, None, operation="send", launched=launched + 1)
        second.collective(free, arrives - free, None, operation="receive", launched=launched)
        second.kernel(arrives, second_us, launched=launched + 1)
        free = arrives + second_us
    for scene in (first, second):
        scene.step(1, -EARLY_US - 10, free + EARLY_US + 10)
    return modelled([first, second])


def saved_us(job: JobGraph, cure: MoreMicroBatches) -> float:
    replayed = JobReplay(job, {"more": Cures(of_job=(cure,))})
    return (replayed.step_ns() - replayed.step_ns(["more"])) / 1000


def at_most(job: JobGraph, times: int) -> float:
    """What is saved where pieces cost nothing."""
    replayed = JobReplay(job, {"more": Cures(of_job=(replace(TWICE, times=times, at="most"),))})
    graphs = replayed._graphs(_Asked(frozenset(["more"]), bound="most"))
    ((_, lasting),) = job.lasting([graphs])
    return (replayed.step_ns() - lasting.ns) / 1000


def test_the_second_stage_begins_when_the_first_piece_is_there() -> None:
    """100 us of filling become 50, or 25; the transfers take as long as they did."""
    job = pipeline(100, 100)
    assert at_most(job, 2) == 50
    assert at_most(job, 4) == 75


def test_the_shorter_of_two_stages_is_what_overlaps() -> None:
    """The pieces must arrive in time: the last half of a micro-batch of 100 us arrives 50 us behind the first; a stage
    that takes 30 us for each half can begin no more than 30 us before the last one arrives."""
    assert at_most(pipeline(100, 60), 2) == 30
    assert at_most(pipeline(60, 100), 2) == 30


def test_as_many_micro_batches_as_before_save_nothing() -> None:
    job = pipeline(100, 100)
    assert saved_us(job, replace(TWICE, times=1)) == 0


def test_ranks_of_no_pipeline_stay_as_they_are() -> None:
    assert saved_us(pipeline(100, 100), MoreMicroBatches(((4, 5),))) == 0


def test_what_starting_a_piece_takes_is_taken_off() -> None:
    """The shortest kernel takes 100 us here: then two halves take twice as long as the whole, and nothing is won."""
    assert saved_us(pipeline(100, 100), TWICE) < at_most(pipeline(100, 100), 2)


@settings(max_examples=5, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.integers(30, 200), st.integers(30, 200), st.integers(1, 4))
def test_never_less_than_the_work_of_a_stage_and_more_pieces_never_take_longer(
    first: int, second: int, count: int
) -> None:
    job = pipeline(first, second, count)
    step = JobReplay(job, {}).step_ns() / 1000
    gains = [at_most(job, times) for times in (1, 2, 4, 8)]
    assert gains == sorted(gains) and gains[0] == 0
    assert step - gains[-1] >= count * max(first, second)
