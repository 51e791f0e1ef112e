"""Frames are what their columns declare."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from advisor_core.contracts.columns import Column, conform, require_exactly

COUNT = Column("count", "int", "count", "how many")
MAYBE = Column("count", "int", "count", "how many", nullable=True)
FLAG = Column("flag", "bool", "", "whether", nullable=True)
TIME = Column("ns", "float", "ns", "how long")
NAME = Column("name", "text", "", "what")


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (COUNT, [1, 2]),
        (COUNT, np.array([1.0, 2.0])),
        (COUNT, np.array([1, 2], dtype=object)),
        (MAYBE, [1, np.nan]),
        (MAYBE, [None, None]),
        (FLAG, [True, None]),
        (TIME, [1.5, np.nan]),
        (TIME, [1, 2]),
        (NAME, ["a", None]),
        (NAME, pd.Categorical(["a", "b"])),
        (COUNT, []),
    ],
)
def test_a_frame_that_is_what_was_declared(column: Column, values: Any) -> None:
    frame = pd.DataFrame({"other": 0, column.name: values}, index=range(5, 5 + len(values)))
    told = conform(frame, [column], "a.b")
    assert list(told.columns) == [column.name] and told.index.tolist() == list(range(len(values)))


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        (COUNT, [1.0, 1.5], r"a\.b\.count is declared int, but is .*1\.5"),
        (COUNT, [1, np.nan], r"a\.b\.count is declared int and not nullable"),
        (COUNT, [1, "2"], r"declared int, but is '2'"),
        (COUNT, ["1", "2"], r"declared int, but is '1'"),
        (COUNT, [True, False], r"declared int, but is .*True"),
        (FLAG, [1, 0], r"a\.b\.flag is declared bool, but is .*1"),
        (TIME, ["1.5"], r"a\.b\.ns is declared float, but is '1\.5'"),
        (NAME, [1, 2], r"a\.b\.name is declared text, but is .*1"),
        (NAME, pd.Categorical([1, 2]), r"a\.b\.name is declared text, but is .*1"),
    ],
)
def test_a_value_of_another_type_is_named(column: Column, values: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        conform(pd.DataFrame({column.name: values}), [column], "a.b")


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(TypeError, match=r"a\.b does not give its declared columns count, ns"):
        conform(pd.DataFrame({"name": ["a"]}), [COUNT, TIME, NAME], "a.b")


def test_a_fact_gives_exactly_what_it_declares() -> None:
    frame = pd.DataFrame({"count": [1], "ns": [1.0], "name": ["a"]})
    require_exactly(frame, [COUNT, TIME, NAME], "fact")
    require_exactly(frame.iloc[:0].astype(object), [COUNT, TIME, NAME], "fact")
    with pytest.raises(TypeError, match=r"without \['flag'\], with \['name'\]"):
        require_exactly(frame, [COUNT, TIME, FLAG], "fact")
    with pytest.raises(TypeError, match=r"fact\.count is declared int, but has dtype float64"):
        require_exactly(frame.assign(count=1.0), [COUNT, TIME, NAME], "fact")
