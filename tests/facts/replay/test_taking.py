"""How long a task lies in the queue before the thread behind it takes it, though it has nothing else to do."""

from __future__ import annotations

import numpy as np

from advisor_core.facts.replay.edges import HANDED, Edges
from advisor_core.facts.replay.nodes import FEED, LAUNCH, Nodes
from advisor_core.facts.replay.rank_graph import RankGraph, timed
from advisor_core.replay.sweep import ends

FED, FIRST, SECOND, THIRD = (0, 2, 3), 1, 4, 5


def queue() -> RankGraph:
    """Tasks handed over at 0, 100 and 110 ns. The thread wakes up 50 and 30 ns after the first two and launches them at
    60 and 150; then it has the third one at once, and launches it at 160."""
    numbers = np.array
    kind = numbers([FEED, LAUNCH, FEED, FEED, LAUNCH, LAUNCH])
    row = numbers([0, 0, 1, 2, 1, 2])
    chain = numbers([0, 1, 0, 0, 1, 1])
    start, end = numbers([0, 50, 0, 100, 130, 150]), numbers([0, 60, 100, 110, 150, 160])
    edges = Edges(np.full(3, HANDED), numbers(FED), numbers([FIRST, SECOND, THIRD]), (numbers([]),) * 3)
    neither = np.zeros(6, dtype=np.bool_)
    return timed(Nodes(kind, row, chain, start, end), edges, neither, neither)


def test_the_time_to_wake_up_is_seen_where_the_thread_had_nothing_to_do_and_is_the_usual_one_elsewhere() -> None:
    recorded = queue()
    assert recorded.graph.lag.tolist() == [50, 30, 40]
    assert recorded.graph.duration[[FIRST, SECOND, THIRD]].tolist() == [10, 20, 10]
    assert recorded.replayed().tolist() == recorded.nodes.end_ns.tolist()


def test_a_thread_that_is_busy_does_not_sleep_and_one_that_has_become_idle_does() -> None:
    recorded = queue()

    def launched(node: int, duration: int) -> list[int]:
        changed = recorded.graph.duration.copy()
        changed[node] = duration
        ended = ends(recorded.graph.changed(duration=changed), recorded.free_ns)
        return [int(ended[launch]) for launch in (FIRST, SECOND, THIRD)]

    # The first launch lasts until 140: the second one needs its 20 ns, and not 30 more to wake up.
    assert launched(FIRST, 90) == [140, 160, 170]
    # The second one is done at once: the third one, handed over at 110, is taken 40 ns later.
    assert launched(SECOND, 0) == [60, 130, 160]
