"""Which ranks and steps a timeline shows."""

from __future__ import annotations

import pandas as pd

from advisor_core.facts.communication.cross_rank_waits import no_waits
from advisor_core.job.shown import SHOWN_RANKS, by_interest, shown


def waits(*rows: tuple[int, int]) -> pd.DataFrame:
    """A wait for each pair of the last rank and ns."""
    found = [{"work": n, "last_rank": last, "waited_ns": ns, "pair": False} for n, (last, ns) in enumerate(rows)]
    return pd.DataFrame(found).astype(no_waits().dtypes.to_dict())


def test_few_ranks_are_all_shown_and_one_without_steps_is_not() -> None:
    walls = {rank: {5: 100} for rank in range(SHOWN_RANKS)} | {99: {}}
    assert shown(walls, {}).ranks == dict.fromkeys(range(SHOWN_RANKS), "all")


def test_of_many_ranks_those_that_matter_are_shown() -> None:
    walls = {rank: {5: 1000 + rank, 6: 1000} for rank in range(20)}
    told = {rank: waits((3, 50), (3, 10)) for rank in range(20)} | {7: waits((3, 500)), 3: waits((3, 0), (9, 5))}
    assert shown(walls, told).ranks == {3: "waited_for", 7: "waiting", 9: "median", 19: "slowest"}


def test_a_rank_that_matters_twice_is_shown_once_and_of_equal_ones_the_first() -> None:
    walls = {rank: {5: 1000} for rank in range(20)}
    assert shown(walls, {}).ranks == {0: "slowest", 9: "median"}
    assert shown(walls, {4: waits((0, 10))}).ranks == {0: "waited_for", 4: "waiting", 9: "median"}


def test_the_longest_step_comes_first_and_then_its_neighbours() -> None:
    assert by_interest({0: {4: 10, 5: 10, 6: 10, 7: 10}, 1: {4: 10, 5: 10, 6: 30, 7: 10}}) == (6, 5, 7, 4)
    assert by_interest({0: {}}) == ()
