"""Slack: by how much longer a node could take before anything ends too late.

From where a node begins there is a longest way to the end of each chain. What it lacks to when the chain has to end, on
the chain where that is least, is the slack of the node. All ways are found as ends are: by one pass over the graph
turned round, whose levels are those of the graph from the last to the first.

In a long run a chain has to end so that it can begin with the next turn when it has to. That can be as it does now, or
as late as possible: each chain begins when the first choice lets it begin at the latest, and so in every turn. Neither
makes the turns longer, and a node has the slack that is more. So its slack is free in every turn; it may have more.
"""

from __future__ import annotations

import numpy as np

from advisor_core.replay.graph import NEVER, Graph, Ints
from advisor_core.replay.long_run import Lasting
from advisor_core.replay.sweep import ends

UNBOUNDED = -NEVER
"""The slack of a node that no chain which has to end waits for; and when a chain ends that may end at any time."""


def slack(graph: Graph, ended: Ints, until: Ints) -> Ints:
    """Of each node the ns by which it could take longer, once, while no chain ends later than ``until`` says; with one
    more one of them would. ``ended``: when each node ends (`advisor_core.replay.sweep.ends`), none too late."""
    # A chain that has to end sooner is as one with a longer way behind it.
    behind = np.where(until < UNBOUNDED, -until, NEVER)
    ways = ends(graph.turned, behind)[::-1]
    begun = ended - graph.duration
    return np.where(ways > NEVER // 2, -ways - begun, UNBOUNDED)


def repeated_slack(graph: Graph, lasting: Lasting, between: Ints) -> Ints:
    """Of each node the ns by which it could take longer in every turn of a long run, while turns take as long as they
    do. ``lasting``: the last turn of the replay of the run; ``between``: ns of each chain between two turns."""
    first = np.flatnonzero(graph.before < 0)
    chains = graph.chain[first]
    begun = np.full(len(between), UNBOUNDED, dtype=np.int64)
    ended = lasting.ended - lasting.since
    begun[chains] = (ended - graph.duration)[first]
    now = slack(graph, ended, _until(graph, ended, begun + lasting.ns - between))
    late = begun.copy()
    late[chains] = np.minimum(UNBOUNDED, begun[chains] + now[first])
    bound = np.where(late < UNBOUNDED, late, begun)
    later = ends(graph, bound)
    return np.maximum(now, slack(graph, later, _until(graph, later, late + lasting.ns - between)))


def _until(graph: Graph, ended: Ints, until: Ints) -> Ints:
    """``until``, and no sooner than each chain ends: where turns do not take equally long, one may be longer."""
    latest = np.full(len(until), NEVER, dtype=np.int64)
    np.maximum.at(latest, graph.chain, ended)
    return np.where(until < UNBOUNDED // 2, np.maximum(until, latest), UNBOUNDED)
