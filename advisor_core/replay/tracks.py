"""Tracks: the ways through a graph that a pass takes in one run each.

The chains of a graph are such ways, and each time that the longest way to a node changes its chain costs a level. Where
streams and threads take turns (a collective after each kernel, a host that reads each number back) that is as many
levels as turns. A track may go on by an edge to another chain instead, and stay in its level.

What leads past such a turn, from a node of a chain to the next one, need not be looked at where the way through the
other chain takes as long in any case. Whether it does depends on the times: so these tracks serve only graphs of which
`Tracks.serve` says so; chains serve any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from advisor_core.replay.graph import Graph, Ints
    from advisor_core.replay.structure import Structure


@dataclass(frozen=True)
class Tracks:
    """``number``: the track of each node; ``link``: the node before each on its track, -1 for the first of a track;
    ``time``: the place of what passes between the two among the lags of the edges of the graph followed by the pauses
    of its nodes. ``source``, ``target`` and ``edge_time`` (as ``time``): what else leads to each node. ``levels``: of
    each node (`levels`).

    ``past``: nodes whose link from the one before on the chain is left out, for the way ``there`` (an edge), through
    the node ``over`` and ``back`` (an edge).
    """

    number: Ints
    link: Ints
    time: Ints
    source: Ints
    target: Ints
    edge_time: Ints
    levels: Ints
    past: Ints
    there: Ints
    over: Ints
    back: Ints

    def serve(self, graph: Graph) -> bool:
        """Whether a graph of this structure can be replayed along these tracks."""
        around = graph.lag[self.there] + graph.duration[self.over] + graph.lag[self.back]
        return bool((graph.pause[self.past] <= around).all())


def chains_of(graph: Structure) -> Tracks:
    """The chains of a graph as its tracks."""
    edges, none = len(graph.source), np.zeros(0, dtype=np.int64)
    times = edges + np.arange(len(graph))
    own = np.arange(edges)
    return Tracks(
        graph.chain, graph.before, times, graph.source, graph.target, own, graph.levels, none, none, none, none
    )


def turning(graph: Structure) -> Tracks:
    """Tracks that go on by the edge that the first node of a chain in a level waits for, where that leads from the last
    node of another chain in the level before."""
    before, source, target, edges = graph.before, graph.source, graph.target, len(graph.source)
    after = np.full(len(graph), -1, dtype=np.int64)
    chained = np.flatnonzero(before >= 0)
    after[before[chained]] = chained
    level = graph.levels
    last = (after < 0) | (level[after] > level)
    first = (before < 0) | (level[before] < level)
    other = graph.chain[source] != graph.chain[target]
    turns = np.flatnonzero(other & last[source] & first[target] & (level[target] == level[source] + 1))
    turns = turns[np.unique(source[turns], return_index=True)[1]]
    turns = turns[np.unique(target[turns], return_index=True)[1]]
    link, time = before.copy(), edges + np.arange(len(graph))
    left = after[source[turns]]
    link[left[left >= 0]] = -1
    link[target[turns]] = source[turns]
    time[target[turns]] = turns
    past, there, over, back = _ways_past(graph, link)
    stays, linked = np.ones(edges, dtype=np.bool_), link == before
    stays[turns], linked[past] = False, True
    own, chained = np.flatnonzero(stays), np.flatnonzero((before >= 0) & ~linked)
    sources, targets = np.concatenate([source[own], before[chained]]), np.concatenate([target[own], chained])
    edge_time = np.concatenate([own, edges + chained])
    return Tracks(
        _numbered(link),
        link,
        time,
        sources,
        targets,
        edge_time,
        levels(link, sources, targets),
        past,
        there,
        over,
        back,
    )


def _numbered(link: Ints) -> Ints:
    """The number of the track of each node."""
    found = list(range(len(link)))
    for node, linked in enumerate(link.tolist()):
        if linked >= 0:
            found[node] = found[linked]
    return np.array(found, dtype=np.int64)


def _ways_past(graph: Structure, link: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """``past``, ``there``, ``over`` and ``back`` (`Tracks`) of the nodes that a track reaches by an edge from another
    chain, to which the node before on their own chain leads as well."""
    source, target, before, count = graph.source, graph.target, graph.before, len(graph)
    back = np.flatnonzero((before[target] >= 0) & (link[target] == source))
    key = source * count + target
    order = np.argsort(key, kind="stable")
    wanted = before[target[back]] * count + source[back]
    place = np.searchsorted(key[order], wanted)
    there = order[np.minimum(place, len(key) - 1)] if len(key) else place
    known = key[there] == wanted
    there, back = there[known], back[known]
    return target[back], there, source[back], back


def levels(link: Ints, source: Ints, target: Ints) -> Ints:
    """The number of times that the longest way to each node changes its track. Along a track the level never falls, so
    that the nodes of a track in one level follow one another, and all edges into a level come from lower ones.
    ``link``: as of `Tracks`; ``source`` and ``target``: what else leads to each node."""
    found = [0] * len(link)
    order = np.argsort(target, kind="stable")
    sources, targets = source[order].tolist(), target[order].tolist()
    sources.append(-1)
    targets.append(len(link))
    edge = 0
    for node, linked in enumerate(link.tolist()):
        level = found[linked] if linked >= 0 else 0
        while targets[edge] == node:
            below = found[sources[edge]]
            if below >= level:
                level = below + 1
            edge += 1
        found[node] = level
    return np.array(found, dtype=np.int64)
