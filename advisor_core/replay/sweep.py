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

from collections.abc import Iterator, Sequence

import numpy as np

from advisor_core.replay.graph import NEVER, Graph, Ints

_APART = 1 << 44
"""Runs of one level are laid this far apart: more than a replay lasts (5 hours) and than `NEVER` reaches."""

_UNBOUND = 2 * NEVER
"""Before any time that a replay gives, also one that an edge that does not hold would give."""


SIDE_BY_SIDE = 1 << 20
"""Nodes of the graphs that one pass takes side by side: 8 MiB for each of its arrays."""

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
    """A column of the arrays is a graph, a row a place of the layout."""
    one, layout = graphs[0], graphs[0].layout
    own = np.empty((len(one), len(graphs)), dtype=np.int64)
    shift = np.empty_like(own)
    takes = np.empty((len(layout.times), len(graphs)), dtype=np.int64)
    for number, graph in enumerate(graphs):
        duration = graph.duration[layout.nodes]
        own[:, number] = duration
        shift[:, number] = np.cumsum(duration + graph.pause[layout.nodes])
        takes[:, number] = np.concatenate([graph.lag, graph.pause])[layout.times]
    shift -= (layout.block * _APART)[:, np.newaxis]
    # From here on all is counted from ``shift``, which is taken off each place: then an edge is one addition.
    own -= shift
    takes += shift.take(layout.sources, axis=0)
    takes += own.take(layout.into, axis=0)
    begun = own[layout.first_places] + np.stack([since[one.chain[layout.firsts]] for since in free], axis=1)
    reached = own
    reached += _UNBOUND
    reached[layout.first_places] = begun
    for low, high, runs, since, until, sources, targets, first in layout.levels:
        if until > since:
            arrived = reached.take(sources, axis=0)
            arrived += takes[since:until]
            if first is not None:
                arrived = _latest(arrived, first)
            if isinstance(targets, slice):
                level = reached[targets]
                np.maximum(level, arrived, out=level)
            else:
                reached[targets] = np.maximum(reached.take(targets, axis=0), arrived)
        if runs:
            level = reached[low:high]
            np.maximum.accumulate(level, axis=0, out=level)
    reached += shift
    found = []
    for number in range(len(graphs)):
        ended = np.empty(len(one), dtype=np.int64)
        ended[layout.nodes] = reached[:, number]
        found.append(ended)
    return found


def _latest(arrived: Ints, first: Ints) -> Ints:
    """Of each target the latest of its edges. ``first``: the first edge of each."""
    if len(first) == 1:
        return np.maximum.reduce(arrived, axis=0)
    return np.maximum.reduceat(arrived, first, axis=0)
