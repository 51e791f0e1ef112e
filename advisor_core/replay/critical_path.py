"""The critical path: from the last end back to the beginning, by what each node waited for."""

from __future__ import annotations

import numpy as np

from advisor_core.replay.graph import Graph, Ints

ON_CHAIN, BEGINNING = -1, -2
"""A node waited for the node before it on its chain, or for nothing but the beginning of its chain."""


def binding(graph: Graph, ended: Ints) -> Ints:
    """What each node waited for: the number of an edge, `ON_CHAIN` or `BEGINNING`. ``ended``: when each node ends
    (`advisor_core.replay.sweep.ends`).

    Where several end at the same moment the chain goes before edges, and of edges the one with the lowest number.
    """
    before = graph.before
    chained = np.where(before >= 0, ended[np.maximum(before, 0)] + graph.pause, np.iinfo(np.int64).min)
    arrived = ended[graph.source] + graph.lag
    begun = ended - graph.duration
    bound = np.where(before >= 0, ON_CHAIN, BEGINNING)
    decides = np.flatnonzero((arrived == begun[graph.target]) & (chained[graph.target] < begun[graph.target]))
    bound[graph.target[decides[::-1]]] = decides[::-1]
    return np.where((bound == ON_CHAIN) & (chained < begun), BEGINNING, bound)


def critical_path(graph: Graph, ended: Ints, last: int) -> tuple[Ints, Ints]:
    """The nodes on the way to the end of the node ``last``, the first one first, and what each of them waited for (as
    `binding`)."""
    bound = binding(graph, ended)
    by, before, source = bound.tolist(), graph.before.tolist(), graph.source.tolist()
    path = [last]
    while (edge := by[path[-1]]) != BEGINNING:
        path.append(before[path[-1]] if edge == ON_CHAIN else source[edge])
    nodes = np.array(path[::-1], dtype=np.int64)
    return nodes, bound[nodes]
