"""Tracks that go on from chain to chain: fewer levels, and the same ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.replay.graph import NEVER, Graph
from advisor_core.replay.layout import Layout
from advisor_core.replay.sweep import SideBySide, ends
from advisor_core.replay.tracks import turning
from tests.replay.graphs import TIMES, graphs, slow_ends


def along_turns(graph: Graph) -> Graph:
    """The graph, replayed along its turns however little that gains."""
    structure = graph.structure
    structure.__dict__["quick_layout"] = Layout.of(turning(structure), structure.before)
    return graph


def taking_turns(turns: int, lag: int = 5) -> Graph:
    """Two streams that take turns: a kernel waits for the collective before it, and that for the kernel before it."""
    count = 2 * turns
    nodes = np.arange(count)
    durations, nothing = np.full(count, 100), np.zeros(count, dtype=np.int64)
    return Graph(nodes % 2, durations, nothing, nodes[:-1], nodes[1:], np.full(count - 1, lag))


@given(graphs())
def test_the_ends_are_the_same(graph: Graph) -> None:
    assert ends(along_turns(graph)).tolist() == slow_ends(graph)


@given(graphs(), st.data())
def test_they_are_where_edges_do_not_hold(graph: Graph, data: st.DataObject) -> None:
    holds = np.array(data.draw(st.lists(st.booleans(), min_size=len(graph.lag), max_size=len(graph.lag))), dtype=bool)
    without = along_turns(graph).changed(lag=np.where(holds, graph.lag, NEVER))
    assert ends(without).tolist() == slow_ends(without)


@given(st.integers(2, 30), st.data())
def test_streams_that_take_turns_are_one_level(turns: int, data: st.DataObject) -> None:
    graph = along_turns(taking_turns(turns))
    quick = graph.structure.quick_layout
    assert quick is not None
    assert (len(graph.structure.layout.levels), len(quick.levels)) == (2 * turns, 1)
    drawn = [np.array(data.draw(st.lists(TIMES, min_size=turns, max_size=turns)), dtype=np.int64) for _ in range(2)]
    several = [
        graph.changed(duration=np.repeat(drawn[0], 2)),
        graph.changed(pause=np.repeat(drawn[1], 2)),  # a way past a turn may be longer than the turn
        graph.changed(lag=np.where(np.arange(2 * turns - 1) == data.draw(st.integers(0, 2 * turns - 2)), NEVER, 7)),
    ]
    free = np.array([30, 2_000], dtype=np.int64)
    found = SideBySide(several).ends([free] * 3)
    assert [ended.tolist() for ended in found] == [slow_ends(one, [30, 2_000]) for one in several]


@pytest.mark.parametrize("seed", range(100))
def test_where_some_take_turns_the_ends_are_the_same(seed: int) -> None:
    random = np.random.default_rng(seed)
    count, chains = int(random.integers(2, 60)), int(random.integers(2, 6))
    chain = random.integers(0, chains, count) if seed % 2 else np.arange(count) % chains
    pairs = np.sort(random.integers(0, count, (count // 2, 2)), axis=1)
    turns = np.flatnonzero(random.random(count - 1) < random.choice([0.5, 0.8, 1.0]))
    source, target = np.concatenate([np.stack([turns, turns + 1], axis=1), pairs]).T
    apart = chain[source] != chain[target]
    source, target = source[apart], target[apart]
    durations, lags = random.integers(0, 1000, (2, count)), random.integers(0, 300, len(source))
    graph = along_turns(Graph(chain, *durations, source, target, lags))
    several = [graph]
    for share in (0.0, 0.02, 0.1, 0.5):
        lag = np.where(random.random(len(lags)) < share, NEVER, lags)
        pause = graph.pause * random.integers(0, 2, count)
        several.append(graph.changed(duration=random.integers(0, 1000, count), pause=pause, lag=lag))
    free = [random.integers(0, 10_000, 6) for _ in several]
    found = SideBySide(several).ends(free)
    assert [ended.tolist() for ended in found] == [
        slow_ends(one, since.tolist()) for one, since in zip(several, free, strict=True)
    ]


def test_tracks_serve_while_no_way_past_a_turn_is_longer() -> None:
    graph = taking_turns(3)
    tracks = turning(graph.structure)
    assert tracks.past.tolist() == [2, 3, 4, 5]
    assert tracks.serve(graph)
    assert tracks.serve(graph.changed(pause=np.full(6, 110)))
    assert not tracks.serve(graph.changed(pause=np.full(6, 111)))
    assert not tracks.serve(graph.changed(lag=np.full(5, NEVER)))


def test_an_order_that_gains_little_is_not_kept() -> None:
    assert taking_turns(3).structure.quick_layout is not None
    chain, none = np.zeros(5, dtype=np.int64), np.zeros(0, dtype=np.int64)
    assert Graph(chain, chain, chain, none, none, none).structure.quick_layout is None
