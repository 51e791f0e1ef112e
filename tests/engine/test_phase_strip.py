"""The phases of all ranks over time: each rank from the start of its own step."""

from __future__ import annotations

import pandas as pd

from advisor_core.result.view import Lane
from advisor_core.run.step_views import SHOWN_LANES, phase_strip


def steps(*windows: tuple[int, int]) -> pd.DataFrame:
    return pd.DataFrame([{"step": 7 + n, "start_ns": a, "end_ns": b} for n, (a, b) in enumerate(windows)])


def spans(*rows: tuple[int, str, int, int]) -> pd.DataFrame:
    return pd.DataFrame(
        [{"step": step, "phase": phase, "kind": phase, "start_ns": a, "end_ns": b} for step, phase, a, b in rows]
    )


def test_the_slowest_step_is_shown_from_the_start_of_each_rank_s_own() -> None:
    windows = {0: steps((100, 200), (200, 500)), 1: steps((1100, 1200), (1200, 1480))}
    found = {
        0: spans((0, "rollout", 110, 150), (1, "rollout", 200, 300), (1, "update_actor", 310, 500)),
        1: spans((1, "rollout", 1210, 1250), (1, "update_actor", 1300, 1480)),
    }
    view = phase_strip(found, windows)
    assert view is not None and view.id == "phases-step8" and view.rank is None
    assert view.data.end == 300
    assert view.data.lanes == [
        Lane(label="rank 0", intervals=[(0, 100, "rollout"), (110, 300, "update_actor")]),
        Lane(label="rank 1", intervals=[(10, 50, "rollout"), (100, 280, "update_actor")]),
    ]


def test_one_phase_is_not_drawn() -> None:
    assert phase_strip({0: spans((0, "rollout", 0, 10))}, {0: steps((0, 10))}) is None


def test_of_many_ranks_the_first_are_drawn() -> None:
    both = spans((0, "rollout", 0, 5), (0, "reward", 5, 10))
    ranks = range(2 * SHOWN_LANES)
    view = phase_strip(dict.fromkeys(ranks, both), dict.fromkeys(ranks, steps((0, 10))))
    assert view is not None and len(view.data.lanes) == SHOWN_LANES


def test_a_rank_that_lacks_the_step_has_an_empty_lane() -> None:
    two = spans((0, "rollout", 0, 5), (1, "reward", 10, 40))
    view = phase_strip({0: two, 1: spans((0, "rollout", 0, 5))}, {0: steps((0, 10), (10, 40)), 1: steps((0, 10))})
    assert view is not None and view.data.lanes[1].intervals == []
