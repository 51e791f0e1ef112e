"""Slack is exactly free: a node may take so much longer, and not a nanosecond more, before the last end moves."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.replay.graph import Graph
from advisor_core.replay.slack import TURNS, UNBOUNDED, slack
from advisor_core.replay.sweep import ends
from tests.replay.graphs import TIMES, graphs, slow_ends

SOME_CHAINS = st.sets(st.integers(0, 5), min_size=1).map(lambda chains: np.array(sorted(chains)))


@given(graphs(), SOME_CHAINS)
def test_a_node_may_take_its_slack_longer_and_no_more(graph: Graph, counted: np.ndarray) -> None:
    counts = np.isin(graph.chain, counted)
    free = slack(graph, ends(graph), counted)

    def last_end(longer: Graph) -> int:
        return max((end for end, of_it in zip(slow_ends(longer), counts, strict=True) if of_it), default=0)

    for node, ns in enumerate(free.tolist()):
        if ns == UNBOUNDED:
            assert last_end(_longer(graph, node, 1 << 40)) == last_end(graph)
        else:
            assert last_end(_longer(graph, node, ns)) == last_end(graph)
            assert last_end(_longer(graph, node, ns + 1)) == last_end(graph) + 1


@settings(max_examples=30)
@given(graphs(most=10), st.lists(TIMES, min_size=6, max_size=6), st.lists(TIMES, min_size=6, max_size=6))
def test_in_a_long_run_it_is_free_in_all_later_turns(graph: Graph, free: list[int], between: list[int]) -> None:
    everything, pauses = np.arange(6), np.array(between)
    ended = ends(graph, np.array(free))
    found = slack(graph, ended, everything, pauses)

    def last_end(first_turn: Graph) -> int:
        turn = slow_ends(first_turn, free)
        for _ in range(TURNS):
            turn = slow_ends(graph, _begins(graph, turn, between))
        return max(turn)

    for node, ns in enumerate(found.tolist()):
        assert last_end(_longer(graph, node, ns)) == last_end(graph)
        assert last_end(_longer(graph, node, ns + 1)) == last_end(graph) + 1


@given(graphs())
def test_something_has_none_and_nothing_has_less_than_none(graph: Graph) -> None:
    assert slack(graph, ends(graph), np.arange(6)).min() == 0


def test_the_shorter_of_two_ways_has_what_it_is_shorter() -> None:
    """Two chains meet in a third; a fourth leads nowhere that counts."""
    chains = np.array([0, 1, 2, 3])
    graph = Graph(
        chains,
        np.array([10, 30, 5, 7]),
        np.zeros(4, dtype=np.int64),
        np.array([0, 1]),
        np.array([2, 2]),
        np.array([0, 1]),
    )
    assert slack(graph, ends(graph), np.array([2])).tolist() == [21, 0, 0, UNBOUNDED]


def test_a_graph_without_nodes_has_no_slack() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert len(slack(Graph(none, none, none, none, none, none), none, none)) == 0


def _longer(graph: Graph, node: int, ns: int) -> Graph:
    duration = graph.duration.copy()
    duration[node] += ns
    return graph.changed(duration=duration)


def _begins(graph: Graph, turn: list[int], between: list[int]) -> list[int]:
    """When each chain begins with the next turn."""
    latest = [0] * len(between)
    for chain, end in zip(graph.chain.tolist(), turn, strict=True):
        latest[chain] = max(latest[chain], end)
    return [end + pause for end, pause in zip(latest, between, strict=True)]
