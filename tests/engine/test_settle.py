"""Comparing the same collective on all ranks: who arrived last, and what the ledger of each rank then says."""

from __future__ import annotations

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.facts.ledger.settled import divided
from advisor_core.job.settle import settle

START = 1_000


def calls(*elapsed: int, members: int, covered: int = 0, operation: str = "allReduce", ranks: str = "") -> pd.DataFrame:
    """One collective per value; ``covered`` ns of each lie behind computing."""
    rows = [
        {
            "work": number, "group": "586", "ranks": ranks, "peer": -1, "index": number,
            "name": f"hcom_{operation}__586_{number}_1", "operation": operation, "step": 0, "members": members,
            "elapse_ns": ns, "uncovered_ns": max(ns - covered, 0),
        }
        for number, ns in enumerate(elapsed)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def pieces(frame: pd.DataFrame, *, halves: bool = False) -> pd.DataFrame:
    """Computing of 1000 ns, then what of each collective is uncovered, without a known cause; in two pieces with
    ``halves``."""
    rows, end = [("compute/matmul", 0, START, -1)], START
    for work, ns in zip(frame["work"].tolist(), frame["uncovered_ns"].tolist(), strict=True):
        for part in [ns // 2, ns - ns // 2] if halves else [ns]:
            if part:
                rows.append(("communication/unknown", end, end + part, work))
                end += part
    made = pd.DataFrame(rows, columns=["path", "start_ns", "end_ns", "collective"])
    made["path"] = made["path"].astype("category")
    return made.assign(overlapped=False, step=0, gap=-1, wait=-1, sync=-1)


def booked(frame: pd.DataFrame, waits: pd.DataFrame, *, halves: bool = False) -> dict[str, int]:
    found = divided(pieces(frame, halves=halves), waits)
    starts, ends = found["start_ns"].to_numpy(), found["end_ns"].to_numpy()
    assert (starts[1:] == ends[:-1]).all() and starts[0] == 0, "the pieces tile the time"
    return (found["end_ns"] - found["start_ns"]).groupby(found["path"].astype(str)).sum().to_dict()  # type: ignore[no-any-return]


def test_the_last_to_arrive_does_not_wait_and_the_others_wait_for_it() -> None:
    job = {0: calls(900, 110, members=2), 1: calls(100, 400, members=2)}
    waits = settle(job, 0)
    # The first: rank 0 waits 800 for rank 1; the second: rank 1 waits 290 for rank 0. The rest is transfer.
    assert waits[0]["last_rank"].tolist() == [1, 0] and waits[0]["waited_ns"].tolist() == [800, 0]
    assert booked(job[0], waits[0]) == {
        "compute/matmul": 1000, "communication/wait/rank 1": 800, "communication/transmit": 210
    }  # fmt: skip
    assert booked(job[1], waits[1]) == {
        "compute/matmul": 1000, "communication/wait/rank 0": 290, "communication/transmit": 210
    }  # fmt: skip


def test_waiting_comes_before_the_transfer() -> None:
    job = {0: calls(900, members=2), 1: calls(100, members=2)}
    found = divided(pieces(job[0]), settle(job, 0)[0])
    assert found[["path", "start_ns", "end_ns"]].to_numpy().tolist() == [
        ["compute/matmul", 0, 1000], ["communication/wait/rank 1", 1000, 1800], ["communication/transmit", 1800, 1900]
    ]  # fmt: skip


def test_only_uncovered_time_is_waiting() -> None:
    job = {0: calls(900, members=2, covered=600), 1: calls(100, members=2)}
    assert booked(job[0], settle(job, 0)[0]) == {"compute/matmul": 1000, "communication/wait/rank 1": 300}


def test_nothing_is_said_while_a_rank_of_the_group_is_missing() -> None:
    assert all(settle({n: calls(900 - n, members=3) for n in (0, 1)}, 0)[n].empty for n in (0, 1))
    unknown = {n: calls(100 + n, members=-1) for n in (0, 1)}
    assert settle(unknown, 0)[1].empty
    assert booked(unknown[1], settle(unknown, 0)[1]) == {"compute/matmul": 1000, "communication/unknown": 101}
    assert booked(unknown[1], settle(unknown, 2)[1])["communication/wait/rank 0"] == 1


def test_a_rank_alone_is_compared_with_none() -> None:
    assert settle({3: calls(900, members=1)}, 1)[3].empty and settle({}, 0) == {}


def ends(sent: int, received: int, *, ranks: str = "0,8") -> dict[int, pd.DataFrame]:
    """A send of rank 0 and its receive on rank 8, ns that each takes."""
    return {
        0: calls(sent, members=2, operation="send", ranks=ranks),
        8: calls(received, members=2, operation="receive", ranks=ranks),
    }


def test_of_a_send_and_its_receive_the_longer_waits_for_the_other() -> None:
    late_sender = settle(ends(100, 900), 16)
    assert late_sender[8]["last_rank"].tolist() == [0] and late_sender[8]["waited_ns"].tolist() == [800]
    assert late_sender[0]["waited_ns"].tolist() == [0] and late_sender[0]["pair"].tolist() == [True]
    receive = ends(100, 900)[8]
    assert booked(receive, late_sender[8]) == {
        "compute/matmul": 1000, "communication/wait/pipeline": 800, "communication/transmit": 100
    }  # fmt: skip
    late_receiver = settle(ends(700, 200), 16)
    assert late_receiver[0]["last_rank"].tolist() == [8] and late_receiver[0]["waited_ns"].tolist() == [500]


def test_the_number_within_the_group_says_which_send_meets_which_receive() -> None:
    job = {
        0: pd.concat([ends(100, 0)[0], ends(300, 0)[0].assign(index=1, work=1)], ignore_index=True),
        8: ends(0, 900)[8].assign(index=1),
    }
    found = settle(job, 16)
    assert found[0]["work"].tolist() == [1] and found[8]["waited_ns"].tolist() == [600]


def test_a_send_alone_or_with_another_send_is_not_compared() -> None:
    two_sends = {n: calls(100 * (n + 1), members=2, operation="send", ranks="0,1") for n in (0, 1)}
    assert settle(two_sends, 2)[0].empty
    assert settle({0: ends(100, 900)[0], 1: calls(50, members=1)}, 16)[0].empty


def test_without_recorded_ranks_a_pair_is_known_only_where_all_ranks_are_there() -> None:
    """Ranks 0 and 9 of two pairs side by side, whose groups share a hash, would look like a pair."""
    pair = ends(100, 900, ranks="")
    assert settle(pair, 16)[0].empty
    assert settle(pair, 2)[8]["waited_ns"].tolist() == [800]
    other = {1: ends(100, 900, ranks="")[0], 9: ends(100, 900, ranks="")[8]}
    assert settle({**pair, **other}, 4)[0].empty


def test_a_batch_meets_a_batch_where_the_ranks_of_the_group_are_recorded() -> None:
    job = {n: calls(100 * (n + 1), members=2, operation="batchSendRecv") for n in (0, 1)}
    assert settle(job, 2)[1].empty
    named = {n: frame.assign(ranks="0,1") for n, frame in job.items()}
    assert settle(named, 2)[1]["waited_ns"].tolist() == [100]
    many = {n: frame.assign(ranks="0,1,2,3", members=4) for n, frame in job.items()}
    assert settle(many, 4)[1].empty


def test_what_is_sent_to_each_rank_by_its_need_does_not_end_together() -> None:
    assert settle({n: calls(100 * (n + 1), members=2, operation="alltoallv") for n in (0, 1)}, 0)[1].empty


def test_groups_side_by_side_share_a_name_and_are_not_mixed() -> None:
    """Every process numbers its own groups: those of ranks 0 and 1 and of ranks 2 and 3 have one hash."""
    job = {n: calls(900 - n, members=2, ranks="0,1" if n < 2 else "2,3") for n in range(4)}
    assert [settle(job, 4)[n]["last_rank"].item() for n in range(4)] == [1, 1, 3, 3]
    assert settle({n: calls(900 - n, members=2) for n in range(4)}, 4)[0].empty


@given(
    st.integers(2, 5).flatmap(
        lambda ranks: st.lists(st.lists(st.integers(1, 10_000), min_size=ranks, max_size=ranks), min_size=1, max_size=6)
    ),
    st.integers(0, 5_000),
    st.booleans(),
)
def test_every_rank_keeps_its_sum(table: list[list[int]], covered: int, halves: bool) -> None:
    """Against a plain loop over the calls: row = call, column = rank."""
    size = len(table[0])
    job = {n: calls(*(row[n] for row in table), members=size, covered=covered) for n in range(size)}
    waits = settle(job, 0)
    for n in range(size):
        expected: dict[str, int] = {"compute/matmul": 1000}
        for row in table:
            last = row.index(min(row))
            open_ns = max(row[n] - covered, 0)
            wait = 0 if last == n else min(row[n] - row[last], open_ns)
            for path, ns in ((f"communication/wait/rank {last}", wait), ("communication/transmit", open_ns - wait)):
                expected[path] = expected.get(path, 0) + ns
        assert booked(job[n], waits[n], halves=halves) == {path: ns for path, ns in expected.items() if ns}
