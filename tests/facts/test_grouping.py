"""Groupings on arrays say what those of pandas say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.facts.grouping import Groups, aggregated, first_rows

_ROWS = st.lists(
    st.tuples(
        st.integers(-2, 2),
        st.sampled_from(["b", "a", "c"]),
        st.sampled_from([-1, 0, 1, 2]),
        st.integers(-(2**40), 2**40),
        st.one_of(st.just(float("nan")), st.integers(-99, 99).map(float), st.integers(-99, 99).map(lambda n: n / 7)),
        st.booleans(),
    ),
    max_size=30,
)


def _frame(rows: list[tuple[int, str, int, int, float, bool]]) -> pd.DataFrame:
    """Keys: whole numbers, text, a category that may be unknown; values: whole, float that may be unknown, truth."""
    frame = pd.DataFrame(rows, columns=["number", "text", "code", "whole", "share", "holds"])
    types = {"number": "int64", "text": "str", "code": "int64", "whole": "int64", "share": "float64", "holds": "bool"}
    frame = frame.astype(types)
    category = pd.Categorical.from_codes(frame["code"].to_numpy(), categories=["z", "x", "y"])
    return frame.assign(category=category).drop(columns="code")


_ASKED = [
    *(("whole", how) for how in ("size", "sum", "min", "max", "median", "mean", "first")),
    *(("share", how) for how in ("sum", "min", "max", "median", "mean")),
    *(("holds", how) for how in ("sum", "any")),
    ("text", "first"),
]


@settings(max_examples=15)
@given(
    rows=_ROWS,
    sort=st.booleans(),
    by=st.sampled_from([("number",), ("text", "category"), ("category", "number")]),
    asked=st.sampled_from(_ASKED),
)
def test_the_same_as_pandas(
    rows: list[tuple[int, str, int, int, float, bool]], sort: bool, by: tuple[str, ...], asked: tuple[str, str]
) -> None:
    frame = _frame(rows)
    found = aggregated(frame, by, sort=sort, found=asked)
    expected = frame.groupby(list(by), observed=True, sort=sort, as_index=False).agg(found=asked)
    same = {name: "str" for name in ("category", "text") if name in by}
    pd.testing.assert_frame_equal(
        found.astype(same), expected.astype(same), check_dtype=len(found) > 0, check_column_type=False
    )


@settings(max_examples=25)
@given(rows=_ROWS, in_order=st.booleans())
def test_sums_are_those_of_pandas_to_the_last_bit(
    rows: list[tuple[int, str, int, int, float, bool]], in_order: bool
) -> None:
    frame = _frame(sorted(rows) if in_order else rows)
    found = aggregated(frame, "number", share=("share", "sum"))["share"].tolist()
    assert found == frame["share"].groupby(frame["number"]).sum().tolist()


@settings(max_examples=15)
@given(told=_ROWS, asked=_ROWS)
def test_the_first_row_with_the_same_values(
    told: list[tuple[int, str, int, int, float, bool]], asked: list[tuple[int, str, int, int, float, bool]]
) -> None:
    names = ["number", "text"]
    first, other = _frame(told), _frame(asked)
    numbered = first[names].assign(row=range(len(first))).drop_duplicates(names)
    expected = other[names].merge(numbered, on=names, how="left")["row"].fillna(-1).tolist()
    assert first_rows(*([frame[name] for name in names] for frame in (first, other))).tolist() == expected


@settings(max_examples=10)
@given(rows=_ROWS)
def test_parts_are_all_rows_with_a_key(rows: list[tuple[int, str, int, int, float, bool]]) -> None:
    frame = _frame(rows)
    groups = Groups(frame, ["text", "category"])
    parts = groups.parts()
    assert [len(part) for part in parts] == groups.sizes.tolist()
    assert [part[0] for part in parts] == groups.firsts.tolist()
    held = np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
    assert held.tolist() == np.flatnonzero(frame["category"].notna()).tolist() == groups.rows.tolist()


def test_a_function_gets_the_values_of_a_group_in_their_order() -> None:
    frame = pd.DataFrame({"key": [2, 1, 2], "text": ["x", "y", "z"]})
    assert aggregated(frame, "key", all=("text", ", ".join))["all"].tolist() == ["y", "x, z"]


@pytest.mark.parametrize("keys", [3, 40])
def test_many_keys_do_not_overflow(keys: int) -> None:
    """2000 values in each of 40 keys are more combinations than an integer has."""
    count = 2000
    frame = pd.DataFrame({f"key{number}": np.arange(count) for number in range(keys)})
    groups = Groups(frame, list(frame.columns))
    assert len(groups) == count
    assert groups.codes.tolist() == list(range(count))


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool"])
def test_extremes_of_types_without_negatives_and_of_the_lowest_number(dtype: str) -> None:
    lowest = np.iinfo(np.int64).min if dtype == "int64" else 0
    frame = pd.DataFrame({"key": [1, 1, 2], "value": np.array([lowest, 1, 1], dtype=dtype)})
    found = aggregated(frame, "key", least=("value", "min"), most=("value", "max"))
    assert (found["least"].tolist(), found["most"].tolist()) == ([lowest, 1], [1, 1])
