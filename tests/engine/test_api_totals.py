"""Calls of the host by API: summed over ranks, and the ranks side by side."""

from __future__ import annotations

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisor_core.run.api_totals import LISTED, RankApis, api_view, rank_apis, summed_apis

calls = st.dictionaries(
    st.sampled_from([f"acl{n}" for n in range(8)]), st.tuples(st.integers(0, 9), st.integers(0, 10**9))
)


def apis(found: dict[str, tuple[int, int]], steps: int = 2) -> RankApis:
    rows = [("acl", name, count, ns) for name, (count, ns) in found.items()]
    return RankApis(steps, pd.DataFrame(rows, columns=["level", "name", "calls", "ns"]))


@given(calls, calls)
def test_the_sums_of_all_ranks_hold_every_call_once(
    one: dict[str, tuple[int, int]], two: dict[str, tuple[int, int]]
) -> None:
    summed = summed_apis([apis(one), apis(two)])
    assert sum(row.ns for row in summed) == sum(ns for found in (one, two) for _, ns in found.values())
    assert sum(row.calls for row in summed) == sum(count for found in (one, two) for count, _ in found.values())
    assert [row.ns for row in summed] == sorted((row.ns for row in summed), reverse=True)


def test_only_the_longest_are_kept() -> None:
    many = {f"acl{number}": (1, number) for number in range(LISTED + 3)}
    assert min(row.ns for row in summed_apis([apis(many)])) == 3


def test_ranks_differ_most_where_one_calls_and_another_does_not() -> None:
    (view,) = api_view({0: apis({"a": (1, 100), "b": (1, 50)}), 5: apis({"a": (1, 120)}, 1), 7: apis({"a": (1, 100)})})
    assert view.data.rows[0] == ["a", "acl", 50, 50, 0, 120, 5]
    assert view.data.rows[1] == ["b", "acl", 0, 0, 5, 25, 0]
    assert not api_view({0: apis({"a": (1, 100)})})


def test_of_many_ranks_the_quartiles_are_shown() -> None:
    """Per step of two: 10, 20, 30, 40 and 100; the quartiles of five are the second and fourth."""
    ranks = {rank: apis({"a": (1, 2 * ns)}) for rank, ns in enumerate((40, 10, 100, 20, 30))}
    (view,) = api_view(ranks)
    assert view.data.rows == [["a", "acl", 30, 20, 40, 10, 1, 100, 2]]
    heads = [column.label.en for column in view.data.columns]
    assert heads[2:5] == ["Median", "Lower quartile", "Upper quartile"]
    (few,) = api_view({rank: ranks[rank] for rank in range(4)})
    assert "Lower quartile" not in [column.label.en for column in few.data.columns]


def test_a_rank_without_totals_has_none() -> None:
    scene = Scene().kernel(0, 10)
    assert rank_apis(scene.store(), 1) is None
    scene.add("api_statistic", level="acl", name="aclnnAdd", count=3, total_ns=70)
    found = rank_apis(scene.store(), 1)
    assert found is not None and found.table.to_numpy().tolist() == [["acl", "aclnnAdd", 3, 70]]
