"""The time of each event of its own against a search, moment by moment."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from advisors.call_stacks.own_times import own_times

EVENTS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 30)), max_size=20)
LAST = 61


def searched(rows: list[tuple[int, int, int]], windows: list[tuple[int, int]]) -> list[int]:
    """For each event the moments of the windows in which it began last, of those that began together the shortest."""
    own = [0] * len(rows)
    for thread in {row[0] for row in rows}:
        for moment in range(LAST):
            if not any(start <= moment < end for start, end in windows):
                continue
            inside = [
                (start, -took, place)
                for place, (of, start, took) in enumerate(rows)
                if of == thread and start <= moment < start + took
            ]
            if inside:
                own[max(inside)[2]] += 1
    return own


@given(EVENTS, st.lists(st.integers(0, LAST), min_size=2, max_size=6, unique=True))
def test_against_a_search(rows: list[tuple[int, int, int]], borders: list[int]) -> None:
    """Also where events cross, and where a window begins or ends within one."""
    borders = sorted(borders)[: len(borders) // 2 * 2]
    windows = list(zip(borders[::2], borders[1::2], strict=True))
    events = pd.DataFrame(rows, columns=["thread", "start_ns", "duration_ns"], dtype="int64")
    own = own_times(events, pd.DataFrame(windows, columns=["start_ns", "end_ns"], dtype="int64"))
    assert own.tolist() == searched(rows, windows)


def test_times_since_1970_are_exact() -> None:
    now = 1_779_988_464_185_565_495
    events = pd.DataFrame({"thread": [1, 1], "start_ns": [now, now + 1], "duration_ns": [3, 1]})
    own = own_times(events, pd.DataFrame({"start_ns": [now], "end_ns": [now + 3]}))
    assert own.tolist() == [2, 1] and own.dtype == np.int64
