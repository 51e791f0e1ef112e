"""Small graphs of any shape, and a replay of them in plain Python to compare with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from advisor_core.replay.graph import Graph

TIMES = st.integers(0, 1_000_000)


@st.composite
def graphs(draw: st.DrawFn, most: int = 40) -> Graph:
    """Up to ``most`` nodes on up to six chains, with edges from lower to higher numbers."""
    count = draw(st.integers(1, most))
    numbers = st.integers(0, count - 1)
    pairs = (
        draw(st.lists(st.tuples(numbers, numbers).filter(lambda pair: pair[0] < pair[1]), max_size=2 * count))
        if (count > 1)
        else []
    )
    source, target = (np.array([pair[end] for pair in pairs], dtype=np.int64) for end in (0, 1))

    def times(many: int) -> np.ndarray:
        return np.array(draw(st.lists(TIMES, min_size=many, max_size=many)), dtype=np.int64)

    chain = np.array(draw(st.lists(st.integers(0, 5), min_size=count, max_size=count)), dtype=np.int64)
    return Graph(chain, times(count), times(count), source, target, times(len(pairs)))


def slow_ends(graph: Graph, free: Sequence[int] = (0,) * 6) -> list[int]:
    """When each node ends, node by node. ``free``: when each chain can begin."""
    ended: list[int] = []
    last: dict[int, int] = {}
    for node, chain in enumerate(graph.chain.tolist()):
        begins = [last[chain] + int(graph.pause[node])] if chain in last else [free[chain]]
        for edge in np.flatnonzero(graph.target == node):
            begins.append(ended[graph.source[edge]] + int(graph.lag[edge]))
        last[chain] = max(begins) + int(graph.duration[node])
        ended.append(last[chain])
    return ended
