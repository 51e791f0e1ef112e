"""Equal stretches of a sequence have equal numbers, others do not."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisors.fusion.stretches import Stretches, combined


@given(st.lists(st.integers(0, 2), min_size=1, max_size=24))
def test_stretches_are_told_apart_as_by_their_values(values: list[int]) -> None:
    """Wherever they begin, and however long they are."""
    places = np.array([(start, end) for start in range(len(values)) for end in range(start, len(values) + 1)])
    numbers = Stretches(np.array(values, dtype=np.int64)).numbers(places[:, 0], places[:, 1])
    contents = [tuple(values[start:end]) for start, end in places.tolist()]
    pairs = set(zip(contents, numbers.tolist(), strict=True))
    assert len(pairs) == len(set(contents)) == len(set(numbers.tolist()))


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 3)), min_size=1, max_size=24))
def test_rows_are_told_apart_as_by_their_columns(rows: list[tuple[int, int]]) -> None:
    """Also where a row has the values of another one in another order."""
    left, right = np.array(rows, dtype=np.int64).T
    numbers = combined(left, right).tolist()
    assert len(set(zip(rows, numbers, strict=True))) == len(set(rows)) == len(set(numbers))
