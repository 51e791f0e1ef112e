"""Which names a pattern finds, and that each is tried once."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.facts import matching as module
from advisor_core.facts.matching import matching

PATTERN = re.compile("b|^$")
NAMES = st.lists(st.sampled_from(["", "a", "b", "ab", None]), max_size=8)


@given(NAMES, NAMES)
def test_a_row_matches_where_its_own_name_does(first: list[str | None], second: list[str | None]) -> None:
    """Of two tables in turns, with the same names or others; a row without a name matches nothing."""
    for names in (first, second, first):
        expected = [name is not None and PATTERN.search(name) is not None for name in names]
        assert matching(pd.Series(pd.Categorical(names, categories=["b", "", "ab", "a"])), PATTERN).tolist() == expected
        assert matching(pd.Series(pd.Categorical(names)), PATTERN).tolist() == expected


def test_names_are_tried_once_for_a_table_and_what_is_taken_of_it() -> None:
    frame = pd.DataFrame({"name": pd.Categorical(["aten::add", "aten::mul", "aten::add"])})
    module._tried.cache_clear()
    pattern = re.compile("add")
    assert matching(frame["name"], pattern).tolist() == [True, False, True]
    assert matching(frame[np.array([False, True, True])]["name"], pattern).tolist() == [False, True]
    assert module._tried.cache_info().misses == 1
    assert matching(pd.Series(pd.Categorical(["add"])), pattern).tolist() == [True]
    assert module._tried.cache_info().misses == 2
