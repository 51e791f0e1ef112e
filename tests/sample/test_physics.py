"""What the model of the advisor does not know: off it changes nothing, on it does what it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from statistics import mean

import pytest

from advisor_core.sample import SCENARIOS
from advisor_core.sample.job import EPOCH_NS, simulate
from advisor_core.sample.machine.physics import Physics, Traffic
from advisor_core.sample.timeline import Timeline
from tests.sample.small import small

LONG = ("healthy-rl",)


def simulated(name: str, physics: Physics) -> list[Timeline]:
    job = small(name) if name in LONG else SCENARIOS[name]
    return simulate(replace(job, job=replace(job.job, physics=physics)), 0)


def durations(timeline: Timeline) -> list[int]:
    return [task.end - task.start for task in timeline.kernels]


@pytest.mark.parametrize(
    ("start", "work", "end"),
    [
        (0, 50, 50),  # before anything moves
        (0, 120, 140),  # 100 alone, 20 at half the speed
        (120, 30, 180),  # all of it at half the speed
        (150, 50, 225),  # 25 of it until 200, the rest alone
        (90, 200, 360),  # 10 until 100, 50 until 200, 100 until 300, 20 until 340, and 20 are left
        (500, 10, 510),
    ],
)
def test_a_kernel_is_slower_only_while_data_moves(start: int, work: int, end: int) -> None:
    traffic = Traffic()
    traffic.add(300, 340)
    traffic.add(100, 200)
    assert traffic.end(start, work, 2.0) == end


def test_traffic_that_overlaps_counts_once() -> None:
    traffic = Traffic()
    traffic.add(100, 200)
    traffic.add(150, 300)
    assert traffic.end(100, 100, 2.0) == 300


def test_kernels_are_slower_beside_communication_and_only_there() -> None:
    plain, slowed = (simulated("healthy-compact", Physics(contention=share))[0] for share in ((0, 0), (0.1, 0.4)))
    factors = [after / before for before, after in zip(durations(plain), durations(slowed), strict=True)]
    touched = [factor for factor in factors if factor > 1.001]
    assert 0.02 * len(factors) < len(touched) < 0.5 * len(factors)
    assert max(factors) <= 1.4001 and min(factors) == 1.0
    (alone,), (still,) = (simulated("slow-python", Physics(contention=share)) for share in ((0, 0), (0.1, 0.4)))
    assert durations(alone) == durations(still)


def test_the_counters_of_a_slowed_kernel_say_how_long_it_took() -> None:
    for task in simulated("healthy-compact", Physics(contention=(0.3, 0.4), kernel_jitter=0.05))[0].kernels:
        assert task.cost is not None
        assert task.cost.duration_ns * task.scale == pytest.approx(task.end - task.start, abs=1)


def test_jitter_and_wake_up_spread_durations_without_a_trend() -> None:
    plain, jitter = (simulated("slow-python", Physics(kernel_jitter=spread))[0] for spread in (0.0, 0.05))
    ratios = [after / before for before, after in zip(durations(plain), durations(jitter), strict=True)]
    assert mean(ratios) == pytest.approx(1.0, abs=0.01) and max(ratios) > 1.08 and min(ratios) < 0.92
    slow = simulated("slow-python", Physics(host_jitter=0.3))[0]
    assert sum(span.end - span.start for span in slow.spans) != sum(span.end - span.start for span in plain.spans)
    late = simulated("slow-python", Physics(wake_up_ns=50_000))[0]
    waits = [mean(e.dequeue_start - e.enqueue_end for e in timeline.queue) for timeline in (plain, late)]
    assert 30_000 < waits[1] - waits[0] < 60_000


def _numbers(value: object, seen: set[int]) -> Iterator[int]:
    """All whole numbers of a record, in the order of its fields; what is met twice counts once."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _numbers(item, seen)
    elif is_dataclass(value) and not isinstance(value, type):
        if id(value) in seen:
            return
        seen.add(id(value))
        for field in fields(value):
            yield from _numbers(getattr(value, field.name), seen)


@pytest.mark.parametrize("name", ["late-rank-by-loader", "garbage-collection", "healthy-rl", "clock-drops"])
def test_clocks_of_hosts_apart_move_every_time_of_a_rank_and_nothing_else(name: str) -> None:
    offset = -700_000
    true = simulated(name, Physics())
    apart = simulated(name, Physics(clock_offsets_ns=(0, offset) if len(true) > 1 else (offset,), ranks_per_host=1))
    for rank, (before, after) in enumerate(zip(true, apart, strict=True)):
        moved = offset if rank == 1 or len(true) == 1 else 0
        times = 0
        for old, new in zip(_numbers(before, set()), _numbers(after, set()), strict=True):
            is_time = EPOCH_NS // 2 < old < EPOCH_NS * 2
            assert new - old == (moved if is_time else 0)
            times += is_time
        assert times > 10_000
