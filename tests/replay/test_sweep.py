"""The replay of a graph agrees with a slow one, and answers a change as a machine would."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.replay.graph import NEVER, Graph
from advisor_core.replay.sweep import SIDE_BY_SIDE, SideBySide, ends, passes
from tests.replay.graphs import TIMES, graphs, slow_ends


@given(graphs())
def test_it_agrees_with_a_replay_node_by_node(graph: Graph) -> None:
    assert ends(graph).tolist() == slow_ends(graph)


@given(graphs(), st.data())
def test_a_longer_node_never_makes_anything_earlier(graph: Graph, data: st.DataObject) -> None:
    duration = graph.duration.copy()
    duration[data.draw(st.integers(0, len(graph) - 1))] += data.draw(TIMES)
    assert (ends(graph.changed(duration=duration)) >= ends(graph)).all()


@given(graphs())
def test_without_its_edges_nothing_is_later(graph: Graph) -> None:
    without = graph.changed(lag=np.full(len(graph.lag), NEVER, dtype=np.int64))
    assert (ends(without) <= ends(graph)).all()
    assert ends(without).tolist() == ends(Graph(graph.chain, graph.duration, graph.pause, *_no_edges())).tolist()


@given(graphs(), st.integers(1, 1000))
def test_all_times_scaled_scale_the_answer(graph: Graph, factor: int) -> None:
    scaled = graph.changed(duration=graph.duration * factor, pause=graph.pause * factor, lag=graph.lag * factor)
    assert ends(scaled).tolist() == (ends(graph) * factor).tolist()


@given(graphs())
def test_a_chain_that_is_free_later_moves_everything_by_no_more(graph: Graph) -> None:
    later = ends(graph, np.full(6, 1000, dtype=np.int64))
    assert later.tolist() == (ends(graph) + 1000).tolist()


@given(graphs(), st.data())
def test_graphs_side_by_side_end_as_each_alone(graph: Graph, data: st.DataObject) -> None:
    several = [graph]
    for _ in range(data.draw(st.integers(0, 4))):
        longer = graph.duration + data.draw(TIMES) * np.arange(len(graph))
        lag = np.where(data.draw(st.booleans()), graph.lag, NEVER)
        several.append(graph.changed(duration=longer, pause=graph.pause[::-1].copy(), lag=lag))
    free = [np.array(data.draw(st.lists(TIMES, min_size=6, max_size=6)), dtype=np.int64) for _ in several]
    alone = [ends(one, since).tolist() for one, since in zip(several, free, strict=True)]
    side_by_side = SideBySide(several)
    assert [ended.tolist() for ended in side_by_side.ends(free)] == alone
    some = data.draw(st.lists(st.integers(0, len(several) - 1), unique=True))
    found = side_by_side.ends([free[number] for number in some], some)
    assert [ended.tolist() for ended in found] == [alone[number] for number in some]


def test_a_pass_takes_as_many_graphs_as_it_has_room_for() -> None:
    assert list(passes(40, 1)) == [(0, 16), (16, 32), (32, 40)]
    assert list(passes(5, SIDE_BY_SIDE // 3)) == [(0, 3), (3, 5)]
    assert list(passes(2, 2 * SIDE_BY_SIDE)) == [(0, 1), (1, 2)]
    assert list(passes(0, 7)) == []


def test_an_edge_that_leads_backwards_is_an_error() -> None:
    three = np.zeros(3, dtype=np.int64)
    with pytest.raises(ValueError, match="leads backwards"):
        Graph(three, three, three, np.array([2]), np.array([1]), np.array([0]))


def test_a_graph_without_nodes_has_no_ends() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert len(ends(Graph(none, none, none, none, none, none))) == 0


def _no_edges() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    none = np.zeros(0, dtype=np.int64)
    return none, none, none
