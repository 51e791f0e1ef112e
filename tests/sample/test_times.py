"""A simulation that records nothing: the same times, and random numbers that can be mirrored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from math import exp
from random import Random
from statistics import fmean, stdev

import pytest

from advisor_core.sample.job import simulate, times
from advisor_core.sample.machine.draws import Draws
from advisor_core.sample.machine.exchange import ExchangePlan
from advisor_core.sample.machine.links import HCCS, AllReducePlan
from advisor_core.sample.machine.physics import Physics
from advisor_core.sample.scenarios import SCENARIOS, Scenario
from tests.sample.small import small

SHAKEN = Physics(contention=(0.1, 0.4), wake_up_ns=50_000, kernel_jitter=0.03, host_jitter=0.3)


EACH = 5
"""Each fifth job of the catalogue, by name, in the gate; the search takes all."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if number % EACH == 0 else pytest.mark.search)
        for number, name in enumerate(sorted(SCENARIOS))
    ],
)
def test_a_job_takes_as_long_without_a_record(name: str) -> None:
    _same_times(small(name, tokens=4))


KINDS = (
    *("healthy-moe", "healthy-rl", "healthy-decode"),
    *(pytest.param(name, marks=pytest.mark.search) for name in ("healthy-compact", "healthy-pipeline")),
)


@pytest.mark.parametrize("name", KINDS)
def test_so_it_does_where_kernels_and_transfers_slow_each_other(name: str) -> None:
    scenario = small(name, tokens=4)
    _same_times(replace(scenario, job=replace(scenario.job, physics=SHAKEN)))


def _same_times(scenario: Scenario) -> None:
    timelines, (found,) = simulate(scenario, 0), times(scenario, [Draws(f"{scenario.name}/0")])
    assert found.start == min(timeline.start for timeline in timelines)
    assert found.end == max(timeline.end for timeline in timelines)
    done: dict[int, int] = {}
    for timeline in timelines:
        for what in (*timeline.tasks, *timeline.collectives):
            done[what.step] = max(done.get(what.step, 0), what.end)
    assert len(found.steps) == scenario.steps and found.steps[-1] == max(done.values())
    assert sorted(found.steps) == list(found.steps)


@pytest.mark.parametrize("members", [2, 3, 8])
@pytest.mark.parametrize("slow", [(), ((0, 1, 4.0),)])
def test_a_plan_ends_with_the_last_of_its_tasks(members: int, slow: tuple[tuple[int, int, float], ...]) -> None:
    random = Random(members)
    arrivals = {member: 1_000_000 + random.randrange(500_000) for member in range(members)}
    reads = {(one, other): 1 + random.randrange(1 << 24) for one in range(members) for other in range(members)}
    for nbytes in (4, 1 << 16, 1 << 26):
        reduced = AllReducePlan.of(nbytes, members, HCCS, random, slow)
        exchanged = ExchangePlan.of(members, "Memcpy", reads, HCCS, random, slow)
        for plan in (reduced, exchanged):
            for member in range(members):
                assert plan.end(member, arrivals) == max(task.end for task in plan.tasks(member, arrivals))


def test_numbers_are_those_of_python_and_mirrored_ones_their_opposites() -> None:
    random = Random("a job/0/host")
    expected = [random.gauss(0.0, 1.0) for _ in range(2_000)]
    assert list(islice(Draws("a job/0").standard_normal("host"), 2_000)) == pytest.approx(expected, rel=1e-12)
    factors = list(islice(Draws("a job/0").log_normal("host", 0.16), 2_000))
    assert factors == pytest.approx([exp(0.16 * number) for number in expected], rel=1e-12)
    mirrored = islice(Draws("a job/0", mirrored=True).log_normal("host", 0.16), 2_000)
    assert [one * other for one, other in zip(factors, mirrored, strict=True)] == pytest.approx([1.0] * 2_000)


def test_another_run_has_other_numbers_on_the_same_machine() -> None:
    one, other = Draws("a job/0"), Draws("a job/0", 1)
    assert one.machine == other.machine and one.key != other.key
    assert next(one.standard_normal("host")) != next(other.standard_normal("host"))


def test_the_mean_of_mirrored_runs_differs_less() -> None:
    """Where the data loader, whose time varies, limits each step."""
    runs = range(6)

    def spread(second: Callable[[int], Draws]) -> float:
        drawn = [one for run in runs for one in (Draws("x", run), second(run))]
        ends = [found.end - found.start for found in times(SCENARIOS["slow-data-loader"], drawn)]
        means = [fmean(pair) for pair in zip(ends[::2], ends[1::2], strict=True)]
        return stdev(means)

    assert spread(lambda run: Draws("x", run, mirrored=True)) < 0.5 * spread(lambda run: Draws("x", 100 + run))
