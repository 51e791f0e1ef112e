"""The enclosing event against a search through all of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.nesting import enclosing


@st.composite
def nested(draw: st.DrawFn, low: int = 0, high: int = 60, depth: int = 4) -> list[tuple[int, int]]:
    """Intervals that nest: siblings do not touch, children lie strictly inside."""
    events: list[tuple[int, int]] = []
    position = low
    while depth and position + 3 <= high and draw(st.booleans()):
        start = draw(st.integers(position, high - 2))
        end = draw(st.integers(start + 1, high - 1))
        events.append((start, end))
        events += draw(nested(start + 1, end - 1, depth - 1))
        position = end + 1
    return events


@given(st.lists(nested(), min_size=1, max_size=3), st.booleans())
def test_against_search(threads: list[list[tuple[int, int]]], outermost: bool) -> None:
    rows = [(number, start, end) for number, events in enumerate(threads) for start, end in events]
    asks = [(number, t) for number in range(len(threads)) for t in range(62)]
    columns = [np.array(column, dtype=np.int64) for column in (list(zip(*rows, strict=True)) or [(), (), ()])]
    asked = [np.array(column, dtype=np.int64) for column in zip(*asks, strict=True)]
    found = enclosing(columns[0], columns[1], columns[2], asked[0], asked[1], outermost=outermost)
    for (thread, t), row in zip(asks, found, strict=True):
        inside = [n for n, (owner, start, end) in enumerate(rows) if owner == thread and start <= t <= end]
        length = {n: rows[n][2] - rows[n][1] for n in inside}
        expected = (max if outermost else min)(inside, key=length.__getitem__) if inside else -1
        assert row == expected


def test_without_events_nothing_encloses() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert enclosing(none, none, none, np.array([1]), np.array([5])).tolist() == [-1]


@pytest.mark.parametrize("ask", [10, 20])
def test_borders_belong_to_the_event(ask: int) -> None:
    one = np.array([1])
    assert enclosing(one, np.array([10]), np.array([20]), one, np.array([ask])).tolist() == [0]


intervals = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(intervals, max_size=25))
def test_events_that_cross(events: list[tuple[int, int]]) -> None:
    """Marks that are opened in one call and closed in another: what is found holds the moment, and started last."""
    thread = np.zeros(31, dtype=np.int64)
    starts, ends = (np.array([event[side] for event in events], dtype=np.int64) for side in (0, 1))
    found = enclosing(thread[: len(events)], starts, ends, thread, np.arange(31))
    outer = enclosing(thread[: len(events)], starts, ends, thread, np.arange(31), outermost=True)
    for t, (row, around) in enumerate(zip(found.tolist(), outer.tolist(), strict=True)):
        inside = [(start, start - end) for start, end in events if start <= t <= end]
        assert (row >= 0) == (around >= 0) == bool(inside)
        if inside:
            start, end = events[row]
            assert (start, start - end) == max(inside)
            assert events[around][0] <= start and events[around][1] >= end
            assert not any(s < events[around][0] and e >= events[around][1] for s, e in events)
