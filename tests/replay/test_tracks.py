"""Tracks that go on from chain to chain: fewer levels, and the same ends."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.replay.graph import NEVER, Graph
from advisor_core.replay.layout import Layout
from advisor_core.replay.sweep import ends, ends_of_each
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
    found = ends_of_each(several, [free] * 3)
    assert [ended.tolist() for ended in found] == [slow_ends(one, [30, 2_000]) for one in several]


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
