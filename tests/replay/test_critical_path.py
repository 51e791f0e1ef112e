"""The critical path adds up to the last end, whatever the graph."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from advisor_core.replay.critical_path import critical_path
from advisor_core.replay.graph import Graph
from advisor_core.replay.sweep import ends
from tests.replay.graphs import graphs


@given(graphs())
def test_durations_and_delays_on_the_path_add_up_to_its_end(graph: Graph) -> None:
    ended = ends(graph)
    last = int(ended.argmax())
    nodes, waited_for = critical_path(graph, ended, last)
    delays = [
        0 if by == -2 else int(graph.pause[node]) if by == -1 else int(graph.lag[by])
        for node, by in zip(nodes, waited_for, strict=True)
    ]
    assert nodes[-1] == last
    assert int(graph.duration[nodes].sum()) + sum(delays) == ended[last]


@given(graphs())
def test_each_node_on_the_path_begins_when_the_one_before_has_ended(graph: Graph) -> None:
    ended = ends(graph)
    nodes, waited_for = critical_path(graph, ended, int(ended.argmax()))
    for earlier, node, by in zip(nodes, nodes[1:], waited_for[1:], strict=False):
        delay = graph.pause[node] if by == -1 else graph.lag[by]
        assert ended[earlier] + delay == ended[node] - graph.duration[node]


def test_what_is_not_on_the_path_costs_nothing() -> None:
    """Two chains meet in a third: the shorter one could take as long as the other."""
    three = np.array([0, 1, 2])
    graph = Graph(
        three, np.array([10, 30, 5]), np.zeros(3, dtype=np.int64), np.array([0, 1]), np.array([2, 2]), np.array([0, 1])
    )
    nodes, waited_for = critical_path(graph, ends(graph), 2)
    assert (nodes.tolist(), waited_for.tolist()) == ([1, 2], [-2, 1])
