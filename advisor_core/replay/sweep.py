"""When each node ends: one pass over the levels of the graph, a few operations on arrays for each.

Within a run of a chain, ``end[i] = max(ready[i], end[i-1] + pause[i]) + duration[i]``, where ``ready`` is when the
sources of its edges have ended. With ``sums[i]`` the running sum of pauses and durations that is
``end[i] = sums[i] + max over j <= i of (ready[j] + duration[j] - sums[j])``: a running sum and a running maximum (the
recurrence of Lindley for queues, which is linear in the (max, +) algebra). Runs of one level do not depend on one
another and are laid so far apart that one running maximum serves them all.
"""

from __future__ import annotations

import itertools

import numpy as np

from advisor_core.replay.graph import NEVER, Graph, Ints

_APART = 1 << 44
"""Runs of one level are laid this far apart: more than a replay lasts (5 hours) and than `NEVER` reaches."""

_UNBOUND = 2 * NEVER
"""Before any time that a replay gives, also one that an edge that does not hold would give."""


def ends(graph: Graph, free: Ints | None = None) -> Ints:
    """When each node ends, ns. ``free``: when each chain can begin with its first node, by default at 0; nothing but
    edges and chains holds a node up."""
    layout = graph.layout
    duration = graph.duration[layout.nodes]
    sums = np.cumsum(duration + graph.pause[layout.nodes])
    shift = sums - layout.block * _APART
    own = duration - shift
    lags = layout.lags(graph)
    ready = np.full(len(graph), _UNBOUND, dtype=np.int64)
    begins = np.flatnonzero(graph.before < 0)
    ready[layout.place[begins]] = 0 if free is None else free[graph.chain[begins]]
    ended = np.empty(len(graph), dtype=np.int64)
    borders = (layout.begins, layout.target_begins, layout.edge_begins)
    levels = (itertools.pairwise(border.tolist()) for border in borders)
    for (low, high), (first, last), (since, until) in zip(*levels, strict=True):
        if last > first:
            arrived = ended[layout.sources[since:until]] + lags[since:until]
            targets = layout.targets[first:last]
            latest = np.maximum.reduceat(arrived, layout.first[first:last])
            ready[targets] = np.maximum(ready[targets], latest)
        ended[low:high] = np.maximum.accumulate(ready[low:high] + own[low:high]) + shift[low:high]
    found = np.empty(len(graph), dtype=np.int64)
    found[layout.nodes] = ended
    return found
