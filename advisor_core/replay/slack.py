"""Slack: by how much longer a node could take, once, before the last end moves.

From where a node begins there is a longest way to the last end. The longest of all these ways, each counted from when
its node begins, is the last end; what another one lacks to it is the slack of its node. The ways are found as ends are:
by a pass over the graph turned round, whose levels are those of the graph from the last to the first.
"""

from __future__ import annotations

import numpy as np

from advisor_core.replay.graph import NEVER, Graph, Ints
from advisor_core.replay.sweep import ends

UNBOUNDED = -NEVER
"""The slack of a node that no end which counts waits for."""

TURNS = 8
"""Where the ways to the end of a long run do not grow alike from turn to turn, those of so many turns count, as in a
replay."""


def slack(graph: Graph, ended: Ints, counted: Ints, between: Ints | None = None) -> Ints:
    """Of each node the ns by which it could take longer, once, while the last end stays; one more would move it.

    ``ended``: when each node ends (`advisor_core.replay.sweep.ends`). ``counted``: the chains whose last end is meant.
    ``between``: of a long run, ns of each chain between two turns; ``ended`` is then of one turn, and the last end is
    that of a turn so much later that a further one changes nothing. Without it the recording is all there is.
    """
    turned, begun = graph.turned(), ended - graph.duration
    chains = int(max(graph.chain.max(initial=-1), counted.max(initial=-1))) + 1
    first = np.flatnonzero(graph.before < 0)
    behind = np.full(chains, NEVER, dtype=np.int64)
    behind[counted] = 0
    ways = ends(turned, behind)[::-1]
    if between is not None:
        for _ in range(TURNS):
            # A way that leads on into the next turn does so by its chain.
            behind = np.full(chains, NEVER, dtype=np.int64)
            behind[graph.chain[first]] = np.maximum(NEVER, ways[first] + between[graph.chain[first]])
            nearer, ways = ways, ends(turned, behind)[::-1]
            if _alike(nearer[first], ways[first]):
                break
    leads = ways > NEVER // 2
    last = int((begun + ways)[leads].max(initial=0))
    return np.where(leads, last - begun - ways, UNBOUNDED)


def _alike(nearer: Ints, further: Ints) -> bool:
    """Whether the ways from all chains have grown by the same: then all further turns only add that once more."""
    leads = further > NEVER // 2
    grown = (further - nearer)[leads]
    return bool((leads == (nearer > NEVER // 2)).all() and (grown == grown[:1]).all())
