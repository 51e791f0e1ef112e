"""When each node ends: one pass over the levels of the graph, a few operations on arrays for each.

Within a run of a chain, ``end[i] = max(ready[i], end[i-1] + pause[i]) + duration[i]``, where ``ready`` is when the
sources of its edges have ended. With ``sums[i]`` the running sum of pauses and durations that is
``end[i] = sums[i] + max over j <= i of (ready[j] + duration[j] - sums[j])``: a running sum and a running maximum (the
recurrence of Lindley for queues, which is linear in the (max, +) algebra). Runs of one level do not depend on one
another and are laid so far apart that one running maximum serves them all. So do graphs of one structure with other
times: a pass takes them side by side, as many as it has room for, because a level costs nearly the same for all of them
as for one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from advisor_core.replay.graph import NEVER, Graph, Ints

_APART = 1 << 44
"""Runs of one level are laid this far apart: more than a replay lasts (5 hours) and than `NEVER` reaches."""

_UNBOUND = 2 * NEVER
"""Before any time that a replay gives, also one that an edge that does not hold would give."""


SIDE_BY_SIDE = 1 << 17
"""Nodes of the graphs that one pass takes side by side: 1 MiB for each of its arrays."""

MOST_SIDE_BY_SIDE = 16
"""More graphs in a pass than this gain nothing on a job of 8,792 nodes in 379 levels: a graph takes 2.1 ms alone,
0.5 ms as one of 8, 0.4 ms as one of 16 and as one of 32."""


def ends(graph: Graph, free: Ints | None = None) -> Ints:
    """When each node ends, ns. ``free``: when each chain can begin with its first node, by default at 0; nothing but
    edges and chains holds a node up."""
    if free is None:
        free = np.zeros(int(graph.chain.max(initial=-1)) + 1, dtype=np.int64)
    return _pass([graph], [free])[0]


def ends_of_each(graphs: Sequence[Graph], free: Sequence[Ints]) -> list[Ints]:
    """As `ends`, of graphs that differ in nothing but their times (`Graph.changed`). ``free``: of each of them."""
    found: list[Ints] = []
    for first, last in passes(len(graphs), len(graphs[0]) if graphs else 0):
        found += _pass(graphs[first:last], free[first:last])
    return found


def passes(count: int, nodes: int) -> Iterator[tuple[int, int]]:
    """The first and the last, exclusive, of ``count`` graphs that each pass takes. Who makes the graphs only when their
    pass comes holds no more of them than that."""
    at_once = max(1, min(MOST_SIDE_BY_SIDE, SIDE_BY_SIDE // max(1, nodes)))
    return ((first, min(count, first + at_once)) for first in range(0, count, at_once))


def _pass(graphs: Sequence[Graph], free: Sequence[Ints]) -> list[Ints]:
    one, count = graphs[0], len(graphs)
    layout = one.side_by_side(count)
    duration, pause, lag = (
        np.concatenate(times)
        for times in zip(*((graph.duration, graph.pause, graph.lag) for graph in graphs), strict=True)
    )
    duration = duration[layout.nodes]
    shift = np.cumsum(duration + pause[layout.nodes]) - layout.block * _APART
    own = duration - shift
    # From here on all is counted from ``shift``, which is taken off each place: then an edge is one addition.
    reached = own + _UNBOUND
    begins = np.flatnonzero(one.before < 0)
    places = layout.place.reshape(count, len(one))[:, begins]
    reached[places] = own[places] + np.stack([since[one.chain[begins]] for since in free])
    takes = layout.lags(lag, pause) + shift[layout.sources] + own[layout.into]
    borders = (layout.begins, layout.target_begins, layout.edge_begins)
    levels = (itertools.pairwise(border.tolist()) for border in borders)
    for (low, high), (first, last), (since, until) in zip(*levels, strict=True):
        if last > first:
            arrived = reached[layout.sources[since:until]] + takes[since:until]
            targets = layout.targets[first:last]
            latest = np.maximum.reduceat(arrived, layout.first[first:last])
            reached[targets] = np.maximum(reached[targets], latest)
        level = reached[low:high]
        np.maximum.accumulate(level, out=level)
    found = np.empty(len(reached), dtype=np.int64)
    found[layout.nodes] = reached + shift
    return list(found.reshape(count, len(one)))
