"""The spread over ranks: quartiles, the ends with their ranks, and who is far from all others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.result.run import LedgerEntry, LedgerStep
from advisor_core.result.spread import Spread
from advisor_core.run.spread import spreads
from advisor_core.run.work_times import RankWork

MS = 1_000_000


def step(rank: int, **parts: int) -> LedgerStep:
    """``parts`` in ns by path, ``__`` for ``/``."""
    entries = [LedgerEntry(path=path.replace("__", "/"), ns=ns) for path, ns in parts.items()]
    return LedgerStep(rank=rank, step=1, wall_ns=sum(parts.values()), entries=entries)


def parts(found: list[Spread]) -> dict[str, Spread]:
    return {spread.name: spread for spread in found if spread.kind == "part"}


def work(steps: int, **types: int) -> RankWork:
    operators = pd.DataFrame({"type": list(types), "ns": list(types.values())})
    return RankWork(steps, operators, pd.DataFrame({"operation": ["allReduce"], "members": [-1], "ns": [9 * MS]}))


def test_a_rank_that_computes_longer_is_an_outlier() -> None:
    computing = [10.0, 10.1, 10.2, 10.3, 13.0]
    found = parts(spreads([step(rank, compute__matmul=round(ms * MS)) for rank, ms in enumerate(computing)], {}))
    spread = found["compute"]
    assert spread.quartiles == (10_100_000, 10_200_000, 10_300_000)
    assert (spread.least.rank, spread.most.rank, spread.ranks) == (0, 4, 5)
    assert [time.rank for time in spread.outliers] == [4]


def test_what_is_less_than_the_step_is_worth_is_no_outlier() -> None:
    """All alike but for 40 us of 10 ms."""
    ledger = [step(rank, compute__matmul=10 * MS + (40_000 if rank == 4 else 0)) for rank in range(5)]
    assert parts(spreads(ledger, {}))["compute"].outliers == []


def test_of_few_ranks_only_the_ends_are_told() -> None:
    spread = parts(spreads([step(0, compute__matmul=MS), step(3, compute__matmul=9 * MS)], {}))["compute"]
    assert (spread.quartiles, spread.outliers, spread.most.rank) == (None, [], 3)
    assert spreads([step(0, compute__matmul=MS)], {}) == []


def test_waiting_is_apart_from_communication_and_unknown_where_it_is_not_told() -> None:
    waits = {f"communication/wait/rank {rank}": rank * MS for rank in (1, 2)}
    told = LedgerStep(
        rank=0, step=1, wall_ns=10 * MS,
        entries=[LedgerEntry(path=path, ns=ns) for path, ns in {**waits, "communication/transmit": 7 * MS}.items()],
    )  # fmt: skip
    other, untold = step(1, communication__transmit=10 * MS), step(2, communication__unknown=10 * MS)
    found = parts(spreads([told, other, untold], {}))
    assert (found["communication/wait"].most.ns, found["communication/wait"].ranks) == (3 * MS, 2)
    assert (found["communication"].least.ns, found["communication"].ranks) == (7 * MS, 3)
    assert found["communication/transmit"].least.rank == 2


def test_operators_are_told_per_step_and_one_without_them_takes_no_time() -> None:
    ledger = [step(rank, compute__matmul=10 * MS) for rank in range(4)]
    works: Mapping[int, RankWork] = {0: work(2, MatMul=8 * MS, Add=2000), 1: work(1, MatMul=4 * MS, Gather=MS)}
    found = {(one.kind, one.name): one for one in spreads(ledger, works)}
    assert found["operator", "MatMul"].least.ns == found["operator", "MatMul"].most.ns == 4 * MS
    assert (found["operator", "Gather"].least.ns, found["operator", "Gather"].most.rank) == (0, 1)
    assert ("operator", "Add") not in found  # less than 0.5 % of a step
    assert found["collective", "allReduce"].members is None and found["collective", "allReduce"].ranks == 2


@given(st.lists(st.integers(0, 50 * MS), min_size=4, max_size=12))
def test_quartiles_lie_between_the_ends_and_outliers_beyond_them(times: list[int]) -> None:
    ledger = [step(rank, compute__matmul=ns, idle__host=50 * MS) for rank, ns in enumerate(times)]
    spread = parts(spreads(ledger, {})).get("compute")
    if spread is None:  # nobody computes
        assert max(times) < 0.01 * 50 * MS
        return
    assert spread.quartiles is not None
    low, middle, high = spread.quartiles
    assert spread.least.ns <= low <= middle <= high <= spread.most.ns
    assert abs(middle - np.median(times)) <= 0.5
    assert all(time.ns < low or time.ns > high for time in spread.outliers)
