"""A long run of a recording takes as long as many copies of it, one behind the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.replay import long_run
from advisor_core.replay.graph import Graph, Ints
from advisor_core.replay.long_run import once, repeated
from advisor_core.replay.sweep import SideBySide, ends
from tests.replay.graphs import TIMES, graphs

CHAINS = 6


def turns(graph: Graph, between: Ints, count: int) -> list[int]:
    """When each of the turns has ended, one sweep for each."""
    ended, reached = ends(graph, np.zeros(CHAINS, dtype=np.int64)), []
    for _ in range(count):
        latest = np.zeros(CHAINS, dtype=np.int64)
        np.maximum.at(latest, graph.chain, ended)
        ended = ends(graph, latest + between)
        reached.append(int(ended.max()))
    return reached


def slowest(graph: Graph, between: Ints) -> int:
    """What ten turns take when any of the chains has been late: the one that takes longest for its own decides then."""
    taken = []
    for late in range(CHAINS):
        free = np.zeros(CHAINS, dtype=np.int64)
        free[late] = 100 * (1 + int(graph.duration.sum() + graph.pause.sum() + np.abs(graph.lag).sum() + between.sum()))
        ended, reached = ends(graph, free), []
        for _ in range(20):
            latest = np.zeros(CHAINS, dtype=np.int64)
            np.maximum.at(latest, graph.chain, ended)
            ended = ends(graph, latest + between)
            reached.append(int(ended.max()))
        taken.append(reached[-1] - reached[-11])
    return max(taken)


@given(graphs(), st.lists(st.lists(TIMES, min_size=CHAINS, max_size=CHAINS), min_size=1, max_size=3))
def test_a_long_run_is_as_slow_as_its_slowest_chain(graph: Graph, pauses: list[list[int]]) -> None:
    several = [graph.changed(duration=graph.duration * (1 + number)) for number in range(len(pauses))]
    between = [np.array(own, dtype=np.int64) for own in pauses]
    found = repeated(several, np.zeros(CHAINS, dtype=np.int64), np.arange(len(graph)), between)
    for one, own, lasting in zip(several, between, found, strict=True):
        assert int(lasting.ended.max()) == lasting.until
        if lasting.ns == lasting.until - lasting.since:  # two turns take equally long
            assert 10 * lasting.ns >= slowest(one, own)


def test_a_host_that_is_slower_than_the_device_uses_up_its_lead() -> None:
    """The host hands over in 1 of its 12 ns, the device takes 10 and was late by 1,000 ns: turns of 10 ns are those of
    a lead, which ends after 500 of them."""
    graph = Graph(
        np.array([0, 0, 1]),
        np.array([1, 11, 10]),
        np.zeros(3, dtype=np.int64),
        np.array([0]),
        np.array([2]),
        np.array([0]),
    )
    (lasting,) = repeated([graph], np.array([0, 1000]), np.array([2]), [np.array([0, 0])])
    assert lasting.ns == lasting.until - lasting.since == 12


def test_a_turn_that_begins_as_the_one_before_is_not_replayed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    swept: list[int] = []

    class Counted(SideBySide):
        def ends(self, free: Sequence[Ints], of: Sequence[int] | None = None) -> list[Ints]:
            swept.append(len(free))
            return super().ends(free, of)

    monkeypatch.setattr(long_run, "SideBySide", Counted)
    none = np.zeros(0, dtype=np.int64)
    chain = Graph(np.array([0, 0]), np.array([5, 7]), np.array([0, 1]), none, none, none)
    (lasting,) = repeated([chain], np.zeros(1, dtype=np.int64), np.arange(2), [np.array([2])])
    assert (lasting.ns, lasting.since, lasting.until) == (15, 28, 43)
    assert swept == [1, 1, 0]


def test_once_is_the_time_from_a_moment_to_the_last_end() -> None:
    none = np.zeros(0, dtype=np.int64)
    chain = Graph(np.array([0, 0]), np.array([5, 7]), np.array([0, 1]), none, none, none)
    shorter = chain.changed(duration=np.array([1, 7]))
    free = np.array([10], dtype=np.int64)
    assert [one.ns for one in once([chain, shorter], free, np.arange(2), 3)] == [20, 16]
