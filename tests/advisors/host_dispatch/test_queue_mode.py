"""HD021: work that another mode of the task queue moves to the thread behind it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.api.testing import judge_rule
from advisor_core.facts.replay.changes import Changing, HostChange
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph
from advisor_core.facts.store import FactStore
from tests.advisors.cures import cure_of, saved
from tests.advisors.host_dispatch.scenes import calling, queued
from tests.advisors.host_dispatch.test_advice import training


def test_level_2_moves_what_comes_before_the_queue_behind_it() -> None:
    """40 of 60 us move. The thread behind the queue wakes up for 1 us, but not where it is busy, and then takes 44 us
    for each task: it is launched at 55, 115 and from then on every 44 us, the tenth at 467 in place of 595."""
    store = training(queued()).store()
    found = judge_rule("HD021", store)
    seen = found.first.observation
    assert (seen["task_queue"], seen["level"], seen["calls"], seen["handed_over_ns"]) == ("on", 2, 10, 400_000)
    assert saved(store, cure_of(found)) == 128_000 == seen["saved_ns"]


def test_what_may_stay_before_the_queue_is_a_bound() -> None:
    """With 3 us for the parameters 37 us move: launched at 55, 115 and every 41 us, the tenth at 443."""
    store = training(queued()).store()
    assert saved(store, cure_of(judge_rule("HD021", store)).bound("least")) == 152_000


def test_without_a_queue_the_calls_into_the_runtime_move() -> None:
    seen = judge_rule("HD021", training(calling()).store()).first.observation
    assert (seen["task_queue"], seen["level"], seen["calls"]) == ("off", 1, 20)


def test_a_device_that_is_the_bottleneck_gains_nothing() -> None:
    scene = training(queued())
    for number, kernel in enumerate(scene.rows["kernels"]):
        kernel |= {"start_us": 62.0 + 100 * number, "duration_us": 100.0}
    for number, flow in enumerate(row for row in scene.rows["flows"] if row["end"] == "f"):
        flow["time_us"] = 62.0 + 100 * number
    assert judge_rule("HD021", scene.store()).state == "pass"


def _durations(store: FactStore, change: HostChange) -> tuple[int, int]:
    recorded = store[rank_graph]
    assert isinstance(recorded, RankGraph)
    return int(recorded.graph.duration.sum()), int(Changing(recorded).changed([change]).duration.sum())


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 49))
def test_what_is_moved_is_still_done_once(prepares: int) -> None:
    """But for the first call of a recording, whose begin is not in the graph."""
    store = training(queued(prepares)).store()
    cure = cure_of(judge_rule("HD021", store)) if prepares > 5 else HostChange()
    assert isinstance(cure, HostChange)
    before, after = _durations(store, cure)
    assert before == after and np.all(cure.handed_over.ends > cure.handed_over.starts)
