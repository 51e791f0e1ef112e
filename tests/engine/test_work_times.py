"""What ran in the steps, as a result holds it: everything is in it once, however many rows there are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.run import work_times
from advisor_core.run.work_times import LONGEST, RankWork, summed_work
from tests.once import ResultOf

rows = st.lists(
    st.tuples(st.sampled_from("ABCDE"), st.sampled_from(["1", "2", "3", ""]), st.integers(1, 9), st.integers(0, 10**9)),
    max_size=20,
)


def rank(listed: list[tuple[str, str, int, int]]) -> RankWork:
    operators = pd.DataFrame(listed, columns=["type", "shapes", "calls", "ns"]).astype(
        {"calls": "int64", "ns": "int64"}
    )
    operators.insert(2, "operator_class", "matmul")
    collectives = pd.DataFrame(
        {
            "operation": [f"op{shapes}" for _, shapes, _, _ in listed],
            "members": np.full(len(listed), 8),
            "spacing": np.full(len(listed), -1),
            "bytes": operators["ns"] % 7,
            "calls": operators["calls"],
            **dict.fromkeys(("ns", "uncovered_ns", "waiting_ns"), operators["ns"]),
        }
    )
    return RankWork(2, operators, collectives)


@given(rows, rows, st.integers(1, 6))
def test_what_is_not_listed_by_itself_is_in_the_sums(
    first: list[tuple[str, str, int, int]], second: list[tuple[str, str, int, int]], listed: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work_times, "LISTED", listed)
        (work,) = summed_work([rank(first), rank(second)])
    ns = sum(row[3] for row in [*first, *second])
    calls = sum(row[2] for row in [*first, *second])
    assert work.rank_steps == 4
    for told in (work.operators, work.collectives):
        assert (sum(row.ns for row in told), sum(row.calls for row in told)) == (ns, calls)
        assert len(told) <= 2 * listed + 1
    named = [row for row in work.operators if row.shapes is not None]
    assert len({(row.type, row.shapes) for row in named}) == len(named)
    assert all(a.ns >= b.ns for a, b in pairwise(named))
    assert all(row.members == 8 and row.spacing is None for row in work.collectives if row.listed)


def test_no_rank_has_no_work() -> None:
    assert summed_work([]) == []


def test_long_shapes_are_cut_and_stay_apart() -> None:
    first, second = (work_times._short(";".join(["8,8"] * 100 + [last])) for last in ("1", "2"))
    assert len(first) == len(second) == LONGEST and first != second
    assert work_times._short("8,8") == "8,8"


def test_the_work_of_a_simulated_job(result_of: ResultOf, shared_sample: Callable[..., Path]) -> None:
    """The kernels of a job that runs one after the other are the computing of its ledger; calls are whole per step."""
    result = result_of(shared_sample("healthy-compact"))
    (work,) = result.work
    assert work.rank_steps == len(result.ledger)
    computing = sum(e.ns for step in result.ledger for e in step.entries if e.path.startswith("compute/"))
    assert computing <= sum(row.ns for row in work.operators) <= 1.02 * computing
    assert all(row.calls % work.rank_steps == 0 for row in work.operators)
    uncovered = sum(e.ns for step in result.ledger for e in step.entries if e.path.startswith("communication/"))
    assert sum(row.uncovered_ns for row in work.collectives) == uncovered
    assert {(row.members, row.spacing) for row in work.collectives} == {(len(result.profile.ranks), 1)}
    assert [peak.rank for peak in result.memory] == result.profile.ranks
    assert all(0 < peak.allocated_bytes <= peak.reserved_bytes for peak in result.memory)
