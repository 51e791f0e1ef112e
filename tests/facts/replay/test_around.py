"""The host time between two steps, and around a recording, from its last task round to its first."""

from __future__ import annotations

import numpy as np
import pytest

from advisor_core.facts.intervals import Layer, empty
from advisor_core.facts.replay.around import around_ns, between_steps_ns, leading_to
from advisor_core.facts.replay.nodes import CALL, FEED, FEEDERS, RETURN, Nodes
from advisor_core.replay.graph import Graph


def feeding(*ends: int) -> Nodes:
    """The nodes of threads that hand over a task at each of these moments."""
    end = np.array(ends, dtype=np.int64)
    start = np.concatenate([end[:1], end[:-1]])
    return Nodes(np.full(len(end), FEED), np.arange(len(end)), np.full(len(end), FEEDERS), start, end)


def layer(*spans: tuple[int, int]) -> Layer:
    """Intervals in order."""
    starts, ends = (np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))
    return Layer(starts, ends, np.arange(len(spans)))


MARKS = layer((0, 100), (100, 200))
NODES = feeding(40, 90, 140, 190)


def test_it_is_what_lies_before_the_first_task_of_its_step_and_behind_the_last() -> None:
    assert around_ns(NODES, MARKS, empty(), 50) == 40 + 10


def test_waiting_for_the_device_is_no_time_of_the_host() -> None:
    assert around_ns(NODES, MARKS, layer((5, 10), (192, 198)), 50) == 35 + 4


def test_a_step_that_is_not_replayed_has_no_part_in_it() -> None:
    assert around_ns(feeding(140, 190), MARKS, empty(), 50) == 40 + 10


@pytest.mark.parametrize("usual_ns", [24, 101])
def test_starting_or_stopping_the_profiler_is_no_time_of_the_program(usual_ns: int) -> None:
    assert around_ns(NODES, MARKS, empty(), usual_ns) is None


def test_without_marks_around_the_first_task_it_is_not_known() -> None:
    assert around_ns(NODES, empty(), empty(), 50) is None
    assert around_ns(NODES, layer((0, 30), (100, 200)), empty(), 50) is None
    assert around_ns(NODES, layer((100, 200)), empty(), 50) is None


def lasting(*durations: int) -> Graph:
    """The nodes of one chain, which take so long."""
    took, none = np.array(durations, dtype=np.int64), np.zeros(0, dtype=np.int64)
    return Graph(np.zeros(len(took), dtype=np.int64), took, np.zeros(len(took), dtype=np.int64), none, none, none)


def calling(*kinds: int) -> Nodes:
    """Nodes of these kinds of the feeding threads."""
    count = len(kinds)
    moments = np.arange(count)
    return Nodes(np.array(kinds), moments, np.full(count, FEEDERS), moments, moments)


def test_what_a_copy_of_the_next_batch_waits_for_lies_between_two_steps() -> None:
    """The loader is in the node of the call that copies the batch and waits for the copy."""
    nodes = calling(FEED, FEED, CALL, RETURN, FEED, FEED)
    (leading,) = leading_to(nodes, np.array([2]))
    assert leading.tolist() == [2, 3, 4]
    assert between_steps_ns(lasting(1, 1, 40, 2, 1, 1), (leading,)) == 43


def test_a_call_at_the_end_of_every_step_is_of_the_step_before() -> None:
    nodes = calling(FEED, CALL, RETURN, FEED, FEED, CALL, RETURN)
    (leading,) = leading_to(nodes, np.array([1]))
    assert leading.tolist() == [3]


def test_a_single_step_has_no_time_between_steps() -> None:
    assert between_steps_ns(lasting(1, 2), leading_to(calling(FEED, FEED), np.zeros(0, dtype=np.int64))) == 0
