"""When each node ends: one pass over the levels of the graph, a few operations on arrays for each.

Within a run of a chain, ``end[i] = max(ready[i], end[i-1] + pause[i]) + duration[i]``, where ``ready`` is when the
sources of its edges have ended. With ``sums[i]`` the running sum of pauses and durations that is
``end[i] = sums[i] + max over j <= i of (ready[j] + duration[j] - sums[j])``: a running sum and a running maximum (the
recurrence of Lindley for queues, which is linear in the (max, +) algebra). Runs of one level do not depend on one
another and are laid so far apart that one running maximum serves them all.
"""

from __future__ import annotations

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
    lags = layout.lags(graph)
    ready = np.full(len(graph), _UNBOUND, dtype=np.int64)
    begins = np.flatnonzero(graph.before < 0)
    ready[layout.place[begins]] = 0 if free is None else free[graph.chain[begins]]
    ended = np.empty(len(graph), dtype=np.int64)
    levels = zip(layout.begins[:-1].tolist(), layout.begins[1:].tolist(), strict=True)
    into = zip(layout.target_begins[:-1].tolist(), layout.target_begins[1:].tolist(), strict=True)
    for (low, high), (first, last) in zip(levels, into, strict=True):
        if last > first:
            edges = layout.first[first : last + 1]
            arrived = ended[layout.sources[edges[0] : edges[-1]]] + lags[edges[0] : edges[-1]]
            targets = layout.targets[first:last]
            latest = np.maximum.reduceat(arrived, edges[:-1] - edges[0])
            ready[targets] = np.maximum(ready[targets], latest)
        apart = layout.block[low:high] * _APART
        lead = ready[low:high] + duration[low:high] - sums[low:high] + apart
        ended[low:high] = np.maximum.accumulate(lead) - apart + sums[low:high]
    found = np.empty(len(graph), dtype=np.int64)
    found[layout.nodes] = ended
    return found
