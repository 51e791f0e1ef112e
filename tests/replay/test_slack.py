"""Slack is exactly free: a node may take so much longer, and not a nanosecond more, before something ends too late."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advisor_core.replay.graph import Graph
from advisor_core.replay.long_run import Lasting, repeated
from advisor_core.replay.slack import UNBOUNDED, repeated_slack, slack
from advisor_core.replay.sweep import ends
from tests.replay.graphs import TIMES, graphs, slow_ends

CHAINS = 6
SOME_CHAINS = st.sets(st.integers(0, CHAINS - 1), min_size=1).map(sorted)
OF_CHAINS = st.lists(TIMES, min_size=CHAINS, max_size=CHAINS)


def until_the_end(graph: Graph, counted: list[int]) -> np.ndarray:
    """These chains have to end when the last of them does."""
    until = np.full(CHAINS, UNBOUNDED)
    until[counted] = ends(graph)[np.isin(graph.chain, counted)].max(initial=0)
    return until


@given(graphs(), SOME_CHAINS)
def test_a_node_may_take_its_slack_longer_and_no_more(graph: Graph, counted: list[int]) -> None:
    free = slack(graph, ends(graph), until_the_end(graph, counted))

    def last_end(longer: Graph) -> int:
        return max(
            (end for end, chain in zip(slow_ends(longer), graph.chain, strict=True) if chain in counted), default=0
        )

    for node, ns in enumerate(free.tolist()):
        if ns == UNBOUNDED:
            assert last_end(_longer(graph, node, 1 << 40)) == last_end(graph)
        else:
            assert last_end(_longer(graph, node, ns)) == last_end(graph)
            assert last_end(_longer(graph, node, ns + 1)) == last_end(graph) + 1


@settings(max_examples=40)
@given(graphs(most=12), OF_CHAINS, st.data())
def test_in_a_long_run_it_is_free_in_every_turn(graph: Graph, between: list[int], data: st.DataObject) -> None:
    pauses, everything = np.array(between), np.arange(len(graph))
    lasting = repeated([graph], np.zeros(CHAINS, dtype=np.int64), everything, [pauses])[0]
    assume(_grows(graph, pauses) == 60 * lasting.ns)
    found = repeated_slack(graph, lasting, pauses)
    node = data.draw(st.integers(0, len(graph) - 1))
    assert found[node] >= 0
    assert _grows(_longer(graph, node, min(int(found[node]), 1 << 30)), pauses) == 60 * lasting.ns


def test_something_has_none() -> None:
    """Two chains meet in a third, which is where the end is; a fourth leads nowhere that counts."""
    graph = _meeting()
    until = until_the_end(graph, [2])[:4]
    assert slack(graph, ends(graph), until).tolist() == [21, 0, 0, UNBOUNDED]


def test_a_chain_that_is_done_sooner_has_in_each_turn_what_it_is_done_sooner() -> None:
    """The third chain begins anew when all have ended; the first needs 10 of its 35 ns, the fourth 7."""
    graph = _meeting()
    lasting = Lasting(35, ends(graph), 0, 35)
    between = np.array([0, 5, 30, 0])
    assert repeated_slack(graph, lasting, between).tolist() == [21, 0, 0, 28]


def test_who_is_ahead_by_more_and_more_has_only_what_it_gains_in_a_turn() -> None:
    """A host hands over a kernel each 90 ns that takes 100: by the time that many turns have passed it is far ahead."""
    chain, nothing = np.array([0, 1]), np.zeros(2, dtype=np.int64)
    graph = Graph(chain, np.array([90, 100]), nothing, np.array([0]), np.array([1]), np.array([0]))
    lasting = repeated([graph], nothing, np.array([1]), [nothing])[0]
    assert lasting.ns == 100
    assert repeated_slack(graph, lasting, nothing).tolist() == [10, 0]


def test_a_graph_without_nodes_has_no_slack() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert len(slack(Graph(none, none, none, none, none, none), none, none)) == 0


def _meeting() -> Graph:
    took, nothing = np.array([10, 30, 5, 7]), np.zeros(4, dtype=np.int64)
    return Graph(np.arange(4), took, nothing, np.array([0, 1]), np.array([2, 2]), np.array([0, 1]))


def _longer(graph: Graph, node: int, ns: int) -> Graph:
    duration = graph.duration.copy()
    duration[node] += ns
    return graph.changed(duration=duration)


def _grows(graph: Graph, between: np.ndarray) -> int:
    """By how much the last end moves in 60 turns behind 60 others: their number is a multiple of each that turns of six
    chains can repeat after."""
    begun, reached = np.zeros(CHAINS, dtype=np.int64), [0]
    for _ in range(120):
        ended = ends(graph, begun)
        reached.append(int(ended.max()))
        latest = np.zeros(CHAINS, dtype=np.int64)
        np.maximum.at(latest, graph.chain, ended)
        begun = latest + between
    return reached[120] - reached[60]
