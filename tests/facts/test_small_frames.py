"""Small frames made and cut on arrays are those of pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.contracts.frames import Held, frame_of, narrowed, picked, quick

_ROWS = st.lists(st.tuples(st.integers(-9, 9), st.floats(), st.sampled_from(["a", "b", ""]), st.booleans()), max_size=9)
_NAMES = st.lists(st.sampled_from(["whole", "share", "text", "kind", "holds"]), min_size=1, unique=True)

_NAMED: Any = {"check_column_type": False}
"""Names of columns are plain objects here, and of the type ``str`` where pandas makes them."""

Row = tuple[int, float, str, bool]


def _columns(rows: list[Row]) -> dict[str, object]:
    whole, share, text, holds = ([row[place] for row in rows] for place in range(4))
    kinds = pd.Categorical(text, categories=pd.Index(["", "b", "a"], dtype=object))
    numbers, shares = np.array(whole, dtype=np.int64), np.array(share, dtype=np.float64)
    texts = pd.array(text, dtype="str")
    return {"whole": numbers, "share": shares, "text": texts, "kind": kinds, "holds": np.array(holds, dtype=np.bool_)}


@settings(max_examples=15)
@given(_ROWS)
def test_a_frame_of_arrays(rows: list[Row]) -> None:
    pd.testing.assert_frame_equal(frame_of(_columns(rows), len(rows)), pd.DataFrame(_columns(rows)), **_NAMED)


@settings(max_examples=15)
@given(_ROWS, _NAMES, st.data())
def test_rows_and_columns_chosen_quickly(rows: list[Row], names: list[str], data: st.DataObject) -> None:
    plain = pd.DataFrame(_columns(rows), index=pd.RangeIndex(5, 5 + len(rows)))
    frame = quick(plain)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), dtype=np.bool_)
    numbers = np.flatnonzero(mask)[::-1]
    same = {**_NAMED, "check_frame_type": False}
    pd.testing.assert_frame_equal(frame[names], plain[names], **same)
    pd.testing.assert_series_equal(frame[names[0]], plain[names[0]])
    pd.testing.assert_frame_equal(frame[mask], plain[mask], **same)
    pd.testing.assert_frame_equal(frame[frame["holds"]], plain[plain["holds"]], **same)
    pd.testing.assert_frame_equal(frame.loc[mask, names], plain.loc[mask, names], **same)
    for chosen in (numbers, numbers.tolist(), -1 - numbers):
        pd.testing.assert_frame_equal(frame.take(chosen), plain.take(chosen), **same)
        pd.testing.assert_frame_equal(frame.iloc[chosen], plain.iloc[chosen], **same)
    with pytest.raises(IndexError):
        frame.take([len(rows)])


def test_a_quick_frame_is_one_of_its_own() -> None:
    plain = pd.DataFrame({"when": pd.to_datetime(["2025-01-09", "2025-01-10"]), "row": [1, 2]})
    frame = quick(plain)
    frame.loc[0, "row"] = 7
    assert plain["row"].tolist() == [1, 2]
    assert frame.iloc[[1, 0]]["when"].tolist() == plain["when"].tolist()[::-1]
    assert type(frame[frame["row"] == 7].assign(more=1)) is type(frame)
    with pytest.raises(KeyError):
        frame[["row", "column"]]


def test_a_column_of_sequences_stays_one() -> None:
    lists = np.empty(2, dtype=object)
    lists[:] = [(1, 2), (3, 4)]
    frame = frame_of({"pairs": lists, "again": lists}, 2)
    assert frame["again"].tolist() == [(1, 2), (3, 4)]


def test_one_value_for_all_rows() -> None:
    frame = frame_of({"row": np.arange(3), "step": 7}, 3)
    assert frame["step"].tolist() == [7, 7, 7]


@settings(max_examples=15)
@given(_ROWS, _NAMES)
def test_some_columns(rows: list[Row], names: list[str]) -> None:
    frame = pd.DataFrame(_columns(rows))
    pd.testing.assert_frame_equal(narrowed(frame, names), frame[names], **_NAMED)


@settings(max_examples=15)
@given(_ROWS, _NAMES, st.data())
def test_some_rows_of_some_columns(rows: list[Row], names: list[str], data: st.DataObject) -> None:
    frame = pd.DataFrame(_columns(rows), index=pd.RangeIndex(5, 5 + len(rows)))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), dtype=np.bool_)
    numbers = np.flatnonzero(mask)[::-1].copy()
    expected = frame[names]
    pd.testing.assert_frame_equal(picked(frame, mask, names), expected[mask].reset_index(drop=True), **_NAMED)
    by_number = expected.iloc[numbers].reset_index(drop=True)
    pd.testing.assert_frame_equal(picked(frame, numbers, names), by_number, **_NAMED)


def test_a_value_is_told_by_its_identity() -> None:
    one, same = pd.Index(["a"]), pd.Index(["a"])
    assert {Held(one): 1} == {Held(one): 1}
    assert Held(one) not in {Held(same)}
