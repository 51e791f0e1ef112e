"""Comparing the same collective on all ranks: who arrived last, and what the ledger then says."""

from __future__ import annotations

from typing import Any

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api import collective_calls, context, ledger
from advisor_core.contracts.keys import Answers
from advisor_core.contracts.missing import Missing
from advisor_core.job.cross_rank_waits import settle
from advisor_core.text.base import Text


def calls(*elapsed: int, members: int, covered: int = 0, operation: str = "allReduce", ranks: str = "") -> pd.DataFrame:
    """One collective per value; ``covered`` ns of each lie behind computing, the rest has no known cause."""
    rows = [
        {
            "group": "586", "ranks": ranks, "index": number, "name": f"hcom_{operation}__586_{number}_1", "operation": operation,
            "step": 0, "members": members, "elapse_ns": ns, "uncovered_ns": max(ns - covered, 0),
            "unknown_ns": max(ns - covered, 0), "last_rank": -1, "waited_ns": 0,
        }
        for number, ns in enumerate(elapsed)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def rank(frame: pd.DataFrame, **known: Any) -> Answers:
    unknown = int(frame["unknown_ns"].sum())
    rows = [("compute/matmul", 1000, 0), *([("communication/unknown", unknown, 0)] if unknown else [])]
    shared = Answers()
    shared.put(collective_calls, frame)
    shared.put(ledger, pd.DataFrame([(0, *row) for row in rows], columns=["step", "path", "ns", "overlapped_ns"]))
    shared.put(context, known)
    return shared


def booked(shared: Answers) -> dict[str, int]:
    entries = shared[ledger]
    return dict(zip(entries["path"].tolist(), entries["ns"].tolist(), strict=True))


def test_the_last_to_arrive_does_not_wait_and_the_others_wait_for_it() -> None:
    job = settle({0: rank(calls(900, 110, members=2)), 1: rank(calls(100, 400, members=2))})
    # The first: rank 0 waits 800 for rank 1; the second: rank 1 waits 290 for rank 0. The rest is transfer.
    assert booked(job[0]) == {"compute/matmul": 1000, "communication/wait/rank 1": 800, "communication/transmit": 210}
    assert booked(job[1]) == {"compute/matmul": 1000, "communication/wait/rank 0": 290, "communication/transmit": 210}
    assert job[0][collective_calls]["last_rank"].tolist() == [1, 0]


def test_only_uncovered_time_is_waiting() -> None:
    job = settle({0: rank(calls(900, members=2, covered=600)), 1: rank(calls(100, members=2))})
    assert booked(job[0]) == {"compute/matmul": 1000, "communication/wait/rank 1": 300}


def test_nothing_is_said_while_a_rank_of_the_group_is_missing() -> None:
    shared = {0: rank(calls(900, members=3)), 1: rank(calls(100, members=3))}
    assert booked(settle(shared)[0]) == booked(shared[0])
    unknown = {n: rank(calls(100 + n, members=-1)) for n in (0, 1)}
    assert booked(settle(unknown)[1]) == booked(unknown[1])
    of_world = {n: rank(calls(100 + n, members=-1), world_size=2) for n in (0, 1)}
    assert booked(settle(of_world)[1])["communication/wait/rank 0"] == 1


def test_sends_and_receives_are_not_compared() -> None:
    shared = {n: rank(calls(100 * (n + 1), members=2, operation="batchSendRecv")) for n in (0, 1)}
    assert booked(settle(shared)[1]) == booked(shared[1])


def test_what_is_sent_to_each_rank_by_its_need_does_not_end_together() -> None:
    shared = {n: rank(calls(100 * (n + 1), members=2, operation="alltoallv")) for n in (0, 1)}
    assert booked(settle(shared)[1]) == booked(shared[1])


def test_groups_side_by_side_share_a_name_and_are_not_mixed() -> None:
    """Every process numbers its own groups: those of ranks 0 and 1 and of ranks 2 and 3 have one hash."""
    job = {n: rank(calls(900 - n, members=2, ranks="0,1" if n < 2 else "2,3"), world_size=4) for n in range(4)}
    settled = settle(job)
    assert [settled[n][collective_calls]["last_rank"].item() for n in range(4)] == [1, 1, 3, 3]
    unrecorded = {n: rank(calls(900 - n, members=2), world_size=4) for n in range(4)}
    assert settle(unrecorded)[0][collective_calls]["last_rank"].item() == -1


def test_ranks_without_the_facts_are_left_as_they_are() -> None:
    without = Answers()
    without.put(collective_calls, Missing(Text(en="no trace", zh="没有 trace")))
    shared = {0: rank(calls(900, members=2)), 1: without}
    assert settle(shared) == shared


@given(
    st.integers(2, 5).flatmap(
        lambda ranks: st.lists(st.lists(st.integers(1, 10_000), min_size=ranks, max_size=ranks), min_size=1, max_size=6)
    ),
    st.integers(0, 5_000),
)
def test_every_rank_keeps_its_sum(table: list[list[int]], covered: int) -> None:
    """Against a plain loop over the calls: row = call, column = rank."""
    size = len(table[0])
    shared = {n: rank(calls(*(row[n] for row in table), members=size, covered=covered)) for n in range(size)}
    job = settle(shared)
    for n in range(size):
        expected: dict[str, int] = {"compute/matmul": 1000}
        for row in table:
            last = row.index(min(row))
            open_ns = max(row[n] - covered, 0)
            wait = 0 if last == n else min(row[n] - row[last], open_ns)
            for path, ns in ((f"communication/wait/rank {last}", wait), ("communication/transmit", open_ns - wait)):
                expected[path] = expected.get(path, 0) + ns
        assert booked(job[n]) == {path: ns for path, ns in expected.items() if ns}
        assert sum(booked(job[n]).values()) == sum(booked(shared[n]).values())
