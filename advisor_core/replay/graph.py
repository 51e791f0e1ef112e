"""The dependency graph of a recording: nodes that take turns on chains, and edges between chains.

A chain is a server that takes one thing after the other: the threads that feed a device, the thread that empties the
task queue, a stream of the device, the meeting point of a collective. A node begins when

- the node before it on its chain has ended, ``pause`` ns ago (what the chain needs between the two), and
- the source of each edge into it has ended, ``lag`` ns ago,

and takes ``duration`` ns. So the end of a node is a maximum of sums, which makes it possible to replay a million of
nodes with a few operations on whole arrays (`advisor_core.replay.sweep`).

Nodes are numbered so that everything a node depends on has a lower number: `Graph.levels` relies on it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

NEVER = -(1 << 42)
"""The lag of an edge that does not hold: 73 minutes before all others, further than a recording reaches."""


def before_on_chain(chain: Ints) -> Ints:
    """The number of the node before each on its chain, -1 for the first of a chain. ``chain``: of each node, in
    order."""
    order = np.argsort(chain, kind="stable")
    before = np.full(len(chain), -1, dtype=np.int64)
    same = chain[order[1:]] == chain[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return before


@dataclass(frozen=True)
class Graph:
    """``chain``: the chain of each node, from 0; ``duration`` and ``pause``: ns, of each node. ``source``, ``target``
    and ``lag`` (ns): of each edge between nodes of different chains.

    Raises ValueError where an edge leads from a node to one with a lower number, or to itself.
    """

    chain: Ints
    duration: Ints
    pause: Ints
    source: Ints
    target: Ints
    lag: Ints

    def __post_init__(self) -> None:
        if (self.source >= self.target).any():
            raise ValueError("an edge leads backwards: nodes are not numbered in an order of dependence")

    def __len__(self) -> int:
        return len(self.chain)

    @cached_property
    def before(self) -> Ints:
        """The node before each on its chain, -1 for the first of a chain."""
        return before_on_chain(self.chain)

    @cached_property
    def levels(self) -> Ints:
        """How often the longest way to each node changes its chain. Along a chain the level never falls, so that the
        nodes of a chain in one level follow one another, and all edges into a level come from lower ones."""
        levels = [0] * len(self)
        reached = [0] * (int(self.chain.max()) + 1 if len(self) else 0)
        order = np.argsort(self.target, kind="stable")
        sources, targets = self.source[order].tolist(), self.target[order].tolist()
        sources.append(-1)
        targets.append(len(self))
        edge = 0
        for node, chain in enumerate(self.chain.tolist()):
            level = reached[chain]
            while targets[edge] == node:
                below = levels[sources[edge]]
                if below >= level:
                    level = below + 1
                edge += 1
            levels[node] = reached[chain] = level
        return np.array(levels, dtype=np.int64)

    def changed(self, *, duration: Ints | None = None, pause: Ints | None = None, lag: Ints | None = None) -> Graph:
        """The same nodes and edges with other times. What was found of its structure is kept."""
        other = replace(
            self,
            duration=self.duration if duration is None else duration,
            pause=self.pause if pause is None else pause,
            lag=self.lag if lag is None else lag,
        )
        for name in ("before", "levels", "layout", "_copies"):
            if name in self.__dict__:
                other.__dict__[name] = self.__dict__[name]
        return other

    @cached_property
    def turned(self) -> Graph:
        """The graph with every edge and chain turned round: what depended on a node comes before it. Its last node is
        the first of this one. Levels, the costly part of a structure, are those of this graph from the last one."""
        last = len(self) - 1
        after = np.full(len(self), -1, dtype=np.int64)
        chained = np.flatnonzero(self.before >= 0)
        after[self.before[chained]] = chained
        pause = np.where(after >= 0, self.pause[after], 0)
        other = Graph(
            self.chain[::-1], self.duration[::-1], pause[::-1], last - self.target, last - self.source, self.lag
        )
        other.__dict__["levels"] = (self.levels.max(initial=0) - self.levels)[::-1]
        return other

    @cached_property
    def layout(self) -> Layout:
        """The order in which a replay goes through the nodes."""
        return Layout.of(self)

    def side_by_side(self, count: int) -> Layout:
        """The order in which a replay goes through that many graphs of this structure at once."""
        if count not in self._copies:
            self._copies[count] = self.layout if count == 1 else self.layout.copies(count, len(self.source))
        return self._copies[count]

    @cached_property
    def _copies(self) -> dict[int, Layout]:
        return {}


@dataclass(frozen=True)
class Layout:
    """The nodes in order of level and chain. ``nodes``: the node at each place; ``place``: the place of each node;
    ``begins``: the first place of each level, and the number of nodes. ``block``: the number of each place's run of a
    chain within its level, counted within the level.

    ``sources`` and ``into`` (places), ``edges`` (numbers of the graph's edges, or -1 - node for the edge from the node
    before it on the chain in a lower level): the edges in order of their target.
    ``targets``: places with an edge into them, in order; ``first``: the first edge of each, counted within its level.
    ``target_begins`` and ``edge_begins``: the first target and the first edge of each level, and their numbers.
    """

    nodes: Ints
    place: Ints
    begins: Ints
    block: Ints
    sources: Ints
    into: Ints
    edges: Ints
    targets: Ints
    first: Ints
    target_begins: Ints
    edge_begins: Ints

    @classmethod
    def of(cls, graph: Graph) -> Layout:
        levels = graph.levels
        count = len(graph)
        nodes = np.lexsort((np.arange(count), graph.chain, levels))
        place = np.empty(count, dtype=np.int64)
        place[nodes] = np.arange(count)
        level, chain = levels[nodes], graph.chain[nodes]
        depth = int(level[-1]) + 1 if count else 0
        begins = np.searchsorted(level, np.arange(depth + 1))
        new_level = np.concatenate([[True], level[1:] != level[:-1]])[:count]
        new_block = new_level | np.concatenate([[True], chain[1:] != chain[:-1]])[:count]
        numbered = np.cumsum(new_block) - 1
        block = numbered - numbered[begins[:-1]][level] if count else numbered
        # A chain that goes on in a later level does so by an edge from its last node.
        goes_on = np.flatnonzero(new_block[place] & (graph.before >= 0))
        sources = place[np.concatenate([graph.source, graph.before[goes_on]])]
        targets = place[np.concatenate([graph.target, goes_on])]
        numbers = np.concatenate([np.arange(len(graph.source)), -1 - goes_on])
        order = np.argsort(targets, kind="stable")
        into = targets[order]
        entered, first = np.unique(into, return_index=True)
        target_begins = np.searchsorted(entered, begins)
        edge_begins = np.append(first, len(targets))[target_begins]
        return cls(
            nodes=nodes,
            place=place,
            begins=begins,
            block=block,
            sources=sources[order],
            into=into,
            edges=numbers[order],
            targets=entered,
            first=first - edge_begins[level[entered]],
            target_begins=target_begins,
            edge_begins=edge_begins,
        )

    def copies(self, count: int, edges: int) -> Layout:
        """The layout of that many graphs of this structure side by side, as one graph: in each level the places of the
        first, then those of the second. Node and edge numbers go on from one graph to the next. ``edges``: how many the
        graph has. It has as many levels as one of them, and going through a level costs little more."""
        place, target, edge = (
            _side_by_side(begins, count) for begins in (self.begins, self.target_begins, self.edge_begins)
        )
        number = np.arange(count)[:, np.newaxis]
        blocks, level_edges = self.block[self.begins[1:] - 1] + 1, np.diff(self.edge_begins)
        chained = self.edges < 0
        return Layout(
            nodes=_put(self.nodes + number * len(self.nodes), place),
            place=place[:, self.place].ravel(),
            begins=self.begins * count,
            block=_put(self.block + number * np.repeat(blocks, np.diff(self.begins)), place),
            sources=_put(place[:, self.sources], edge),
            into=_put(place[:, self.into], edge),
            edges=_put(self.edges + number * np.where(chained, -len(self.nodes), edges), edge),
            targets=_put(place[:, self.targets], target),
            first=_put(self.first + number * np.repeat(level_edges, np.diff(self.target_begins)), target),
            target_begins=self.target_begins * count,
            edge_begins=self.edge_begins * count,
        )

    def lags(self, lag: Ints, pause: Ints) -> Ints:
        """The lag of each of ``edges``, of a graph with these times."""
        chained = self.edges < 0
        lags = np.empty(len(self.edges), dtype=np.int64)
        lags[~chained] = lag[self.edges[~chained]]
        lags[chained] = pause[-1 - self.edges[chained]]
        return lags


def _side_by_side(begins: Ints, count: int) -> Ints:
    """Where each element of levels that begin at ``begins`` is in each of ``count`` copies side by side: a row for each
    copy."""
    sizes = np.diff(begins)
    low, size = np.repeat(begins[:-1], sizes), np.repeat(sizes, sizes)
    places: Ints = np.arange(len(low)) + (count - 1) * low + np.arange(count)[:, np.newaxis] * size
    return places


def _put(values: Ints, places: Ints) -> Ints:
    """The values of all copies in the order of their places."""
    ordered = np.empty(places.size, dtype=np.int64)
    ordered[places] = values
    return ordered
