"""The interval of a difference: against counting by hand, and how often it holds the truth."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor_core.compare.noise import BOOTSTRAP_FROM, CONFIDENCE, noise

steps = st.lists(st.integers(1000, 2000), min_size=2, max_size=5)


def probability(before: list[float], after: list[float]) -> float:
    """Of all ways to divide the steps, those whose means differ at least as much, counted one by one."""
    both = [*before, *after]
    found = abs(np.mean(after) - np.mean(before))
    ways = [*combinations(range(len(both)), len(before))]
    as_far = 0
    for way in ways:
        one = [both[place] for place in way]
        other = [both[place] for place in range(len(both)) if place not in way]
        as_far += abs(np.mean(other) - np.mean(one)) >= found - 1e-6
    return float(as_far / len(ways))


@given(steps, steps)
def test_few_steps_leave_out_what_the_exact_test_refuses(before: list[int], after: list[int]) -> None:
    told = noise(np.array(before, float), np.array(after, float))
    chance = probability(before, after)
    assume(abs(chance - (1 - CONFIDENCE)) > 1e-9)
    if told.interval is None:
        assert told.least > 1 - CONFIDENCE and chance >= told.least - 1e-9
    else:
        low, high = told.interval
        assert low <= np.mean(after) / np.mean(before) - 1 <= high
        assert bool(low <= 0 <= high) is (chance > 1 - CONFIDENCE)


def test_the_interval_of_the_recorded_pair() -> None:
    """Six and six steps in ms. Only chance divisions with the short last step on the other side are as uneven."""
    before = np.array([150.402, 149.396, 149.574, 152.806, 154.479, 117.311])
    after = np.array([122.152, 122.526, 123.160, 118.655, 120.273, 118.404])
    told = noise(before, after)
    assert told.method == "permutation" and told.interval is not None
    assert told.interval == pytest.approx((-0.2152, -0.0916), abs=1e-3)
    low, high = told.interval
    for factor, refused in ((1 + low - 0.002, True), (1 + low + 0.002, False), (1 + high + 0.002, True)):
        chance = probability([*(before * factor)], [*after])
        assert (chance <= 1 - CONFIDENCE) is refused


@pytest.mark.parametrize(("few", "least"), [(2, 2 / 6), (3, 2 / 20)])
def test_too_few_steps_tell_nothing(few: int, least: float) -> None:
    told = noise(np.arange(100.0, 100 + few), np.arange(1.0, 1 + few))
    assert told.interval is None and told.least == pytest.approx(least)


def test_one_step_tells_nothing() -> None:
    assert noise(np.array([1.0]), np.arange(1.0, 40)).interval is None


@pytest.mark.parametrize("count", [5, 12])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(count: int) -> None:
    drawn = np.random.default_rng(3)
    held = 0
    for _ in range(100):
        before, after = drawn.gamma(50, 2, count), drawn.gamma(50, 2, count) * 0.9
        told = noise(before, after)
        assert told.interval is not None
        held += told.interval[0] <= -0.1 <= told.interval[1]
    assert 0.88 <= held / 100 <= 0.99


def test_many_steps_are_drawn_again_and_the_same_each_time() -> None:
    drawn = np.random.default_rng(5)
    before, after = drawn.normal(100, 3, 40), drawn.normal(90, 3, BOOTSTRAP_FROM)
    told = noise(before, after)
    assert told.method == "bootstrap" and told == noise(before, after)
    # against the error of a ratio of means, to first order
    ratio = after.mean() / before.mean()
    error = ratio * np.hypot(before.std() / before.mean() / 40**0.5, after.std() / after.mean() / BOOTSTRAP_FROM**0.5)
    assert told.interval == pytest.approx((ratio - 1 - 1.96 * error, ratio - 1 + 1.96 * error), abs=0.25 * error)


def test_one_side_with_many_steps_is_sampled() -> None:
    drawn = np.random.default_rng(7)
    told = noise(drawn.normal(100, 3, 60), drawn.normal(80, 3, 6))
    assert told.method == "permutation" and told.interval is not None
    assert told.interval[0] < -0.2 < told.interval[1] < 0
