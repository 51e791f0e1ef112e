"""How far the steps of a rank lie apart, and which one is called unlike the others."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.renderers import LedgerEntry, LedgerStep, RunResult
from reports.steps import steps_of


def result_of(walls: Sequence[tuple[int, int]], rank: int = 0) -> RunResult:
    """Steps with so many ns of computing and of idle time."""
    ledger = [
        LedgerStep(
            rank=rank,
            step=number,
            wall_ns=computing + idle,
            entries=[LedgerEntry(path="compute/matmul", ns=computing), LedgerEntry(path="idle/host", ns=idle)],
        )
        for number, (computing, idle) in enumerate(walls)
    ]
    return cast(RunResult, SimpleNamespace(ledger=ledger))


def test_a_step_beyond_three_deviations_tells_what_differs() -> None:
    found = steps_of(result_of([(100, 10), (101, 10), (99, 10), (100, 11), (100, 60)]), None, 0)
    assert found is not None and found.mean_ns == 120.2 and found.deviation_ns == pytest.approx(22.26, abs=0.01)
    assert (found.shortest.wall_ns, found.longest.wall_ns) == (109, 160)
    (outlier,) = found.unlike
    # The others take 110.25 on average, of which 10.25 is idle.
    assert outlier.step == 4 and outlier.apart == pytest.approx(49.75 / 110.25)
    assert outlier.differs == (("idle/host", 50),)


def test_what_went_the_other_way_is_not_named() -> None:
    found = steps_of(result_of([(100, 10), (101, 10), (99, 10), (100, 11), (80, 60)]), None, 0)
    assert found is not None and found.unlike[0].differs == (("idle/host", 50),)


@pytest.mark.parametrize(
    "walls",
    [
        [(100, 0), (101, 0), (99, 0), (103, 0), (104, 0)],
        [(100, 0)] * 4 + [(104, 0)],
        [(100, 0), (120, 0), (80, 0), (110, 0), (130, 0)],
    ],
    ids=["all alike", "less than 5 %", "less than three deviations"],
)
def test_no_step_is_unlike_the_others(walls: Sequence[tuple[int, int]]) -> None:
    found = steps_of(result_of(walls), None, 0)
    assert found is not None and not found.unlike and found.steps[0].unlike is False


def test_few_steps_do_not_tell_what_is_usual() -> None:
    found = steps_of(result_of([(100, 0)] * 3 + [(500, 0)]), None, 0)
    assert found is not None and {step.unlike for step in found.steps} == {None}


def test_one_step_lies_apart_from_none_and_ranks_are_apart() -> None:
    assert steps_of(result_of([(100, 0)]), None, 0) is None
    assert steps_of(result_of([(100, 0)] * 3, rank=1), None, 0) is None


@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10**9)), min_size=2, max_size=8))
def test_what_is_named_is_part_of_the_difference(walls: list[tuple[int, int]]) -> None:
    found = steps_of(result_of(walls), None, 0)
    assert found is not None
    assert found.shortest.wall_ns <= found.mean_ns <= found.longest.wall_ns
    for step in found.unlike:
        assert step.differs and all(ns * step.apart > 0 for _, ns in step.differs)


@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(0, 10**9)), min_size=5, max_size=9))
def test_each_step_is_compared_with_all_others(walls: list[tuple[int, int]]) -> None:
    found = steps_of(result_of(walls), None, 0)
    assert found is not None
    for place, step in enumerate(found.steps):
        others = [sum(wall) for wall in (*walls[:place], *walls[place + 1 :])]
        apart = step.wall_ns - fmean(others)
        assert step.apart == pytest.approx(apart / fmean(others))
        assert step.unlike is (abs(apart) > 3 * stdev(others) and abs(step.apart) > 0.05)
