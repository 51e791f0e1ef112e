"""What the report draws of memory says what the totals say."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.facts.memory import GIB, PeakMemory
from advisor_core.run.memory_views import MIB, memory_curve_view, memory_peak_view
from advisor_core.text.base import Text


def curve(points: list[tuple[int, int, int]]) -> pd.DataFrame:
    times, allocated, reserved = zip(*points, strict=True)
    amounts = {"allocated_bytes": np.array(allocated) * GIB / 4, "reserved_bytes": np.array(reserved) * GIB / 4}
    return pd.DataFrame({"time_ns": times, **amounts})


@given(st.lists(st.tuples(st.integers(0, 100_000), st.integers(0, 200), st.integers(0, 50)), min_size=2, max_size=80))
def test_a_column_shows_the_most_that_was_reached_in_it(points: list[tuple[int, int, int]]) -> None:
    points = sorted((time, allocated, allocated + free) for time, allocated, free in points)
    view = memory_curve_view(3, curve(points), None)
    if points[0][0] == points[-1][0]:
        assert view is None
        return
    assert view is not None and view.data.end == points[-1][0] - points[0][0]
    begins = [points[0][0] + time for time in view.data.times]
    reserved, allocated = (series.values for series in view.data.series)
    assert max(allocated) == max(point[1] for point in points) / 4
    for number, (start, end) in enumerate(zip(begins, [*begins[1:], 10**9], strict=True)):
        inherited = [point for point in points if point[0] <= start][-1:]
        reached = inherited + [point for point in points if start < point[0] < end]
        assert allocated[number] == max(point[1] for point in reached) / 4
        assert reserved[number] == max(point[2] for point in reached) / 4


def test_steps_are_marked_where_they_begin() -> None:
    steps = pd.DataFrame({"step": [6, 7, 8, 9], "start_ns": [0, 90, 150, 400], "end_ns": [80, 150, 390, 500]})
    view = memory_curve_view(0, curve([(100, 4, 8), (300, 4, 8)]), steps)
    assert view is not None
    assert [(mark.start, mark.label.en) for mark in view.data.marks] == [(0, "step 7"), (50, "step 8")]


def test_what_was_alive_adds_up_to_the_peak() -> None:
    alive = pd.DataFrame(
        {"name": ["aten::mm", "aten::add", "aten::sum"], "bytes": [30.0 * MIB, 10.0 * MIB, 512.0], "tensors": [3, 1, 1]}
    )
    peak = PeakMemory(5, 100 * MIB, 128 * MIB, np.array([1, 2]), alive, 60 * MIB)
    rows = memory_peak_view(0, peak).data.rows
    assert sum(row.value for row in rows) == 100
    assert [row.note for row in rows] == ["3 x", "1 x", ""]
    assert isinstance(rows[-1].label, Text) and rows[-1].label.zh
