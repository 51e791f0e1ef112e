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

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from advisor_core.replay.layout import Ints, Layout

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


_OF_STRUCTURE = ("before", "levels", "layout")
"""What is found of a graph once, whatever its times are."""


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

    def __getstate__(self) -> dict[str, object]:
        """What was found of its structure for replays is found again where it is replayed again."""
        return {name: value for name, value in vars(self).items() if name not in ("levels", "layout")}

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
        other = object.__new__(Graph)  # what was checked of the edges need not be checked again
        other.__dict__.update(
            chain=self.chain,
            duration=self.duration if duration is None else duration,
            pause=self.pause if pause is None else pause,
            source=self.source,
            target=self.target,
            lag=self.lag if lag is None else lag,
            **{name: self.__dict__[name] for name in _OF_STRUCTURE if name in self.__dict__},
        )
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
        return Layout.of(self.levels, self.chain, self.before, self.source, self.target)
