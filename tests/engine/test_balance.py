"""The ranks of a job side by side, as a result has them."""

from __future__ import annotations

import pytest

from advisor_core.result.layout import Layout
from advisor_core.result.run import LedgerEntry, LedgerStep, RunResult
from advisor_core.run.balance import balance
from tests import report_fixtures


def a_step(rank: int, **entries: int) -> LedgerStep:
    booked = [LedgerEntry(path=path.replace("__", "/"), ns=ns) for path, ns in entries.items()]
    return LedgerStep(rank=rank, step=1, wall_ns=sum(entries.values()), entries=booked)


@pytest.mark.parametrize("result", [report_fixtures.training(), report_fixtures.many_ranks()])
def test_the_times_of_a_rank_add_up_to_its_step(result: RunResult) -> None:
    assert result.balance is not None
    walls = {mean.rank: mean.wall_ns for mean in result.mean_steps if mean.rank is not None}
    assert {rank.rank: rank.step_ns for rank in result.balance.ranks} == walls
    for rank in result.balance.ranks:
        parts = (rank.computing_ns, rank.communicating_ns, rank.waiting_ns or 0, rank.idle_ns)
        assert sum(parts) == rank.step_ns


def test_the_late_rank_of_many_is_the_slow_one() -> None:
    """Rank 2 of 64 waits for its data loader; each other one waits 50 of 79 ms for it."""
    found = report_fixtures.many_ranks().balance
    assert found is not None and found.step_ns is not None and found.ideal_ns is not None
    slowdowns = {rank.rank: rank.slowdown for rank in found.ranks if rank.slowdown is not None}
    assert max(slowdowns, key=lambda rank: slowdowns[rank]) == 2
    assert len(slowdowns) == 16
    assert found.slowdown == pytest.approx(found.step_ns / found.ideal_ns, abs=1e-4)
    assert found.waste_ns == (found.step_ns - found.ideal_ns) * 64
    slack = {rank.rank: rank.slack_ns for rank in found.ranks}
    assert slack.pop(2) == 0
    assert min(ns for ns in slack.values() if ns is not None) > 40_000_000


def test_what_lies_on_the_critical_path_is_no_more_than_the_step() -> None:
    result = report_fixtures.training()
    assert result.plan is not None and result.slack
    assert sum(row.on_path_ns for row in result.slack) <= result.plan.step_ns
    assert [row.ns for row in result.slack] == sorted((row.ns for row in result.slack), reverse=True)


def test_one_rank_and_several_roles_have_none() -> None:
    assert report_fixtures.launch_blocking().balance is None
    roles = report_fixtures.of_roles()
    assert (roles.balance, roles.slack, roles.critical_path) == (None, [], [])


def test_sums_alone_tell_no_waiting_and_no_slowdown() -> None:
    ledger = [
        a_step(0, compute__unknown=5, communication__unknown=3, idle__unknown=2),
        a_step(1, compute__unknown=5, communication__unknown=1, communication__wait__pipeline=4),
    ]
    found = balance(ledger, None, Layout({"pp": 2}, 2))
    assert found is not None and found.unknown is not None
    assert [(rank.stage, rank.waiting_ns, rank.communicating_ns) for rank in found.ranks] == [(0, None, 3), (1, 4, 1)]
    assert found.slowdown is found.waste_ns is None
    assert balance(ledger[:1], None, Layout({}, None)) is None
