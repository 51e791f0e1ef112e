"""The dependency graph of a recording: nodes that take turns on chains, and edges between chains.

A chain is a server that takes one thing after the other: the threads that feed a device, the thread that empties the
task queue, a stream of the device, the meeting point of a collective. A node begins when

- the node before it on its chain has ended, ``pause`` ns ago (what the chain needs between the two), and
- the source of each edge into it has ended, ``lag`` ns ago,

and takes ``duration`` ns. So the end of a node is a maximum of sums, which makes it possible to replay a million of
nodes with a few operations on whole arrays (`advisor_core.replay.sweep`).

Nodes are numbered so that everything a node depends on has a lower number: `advisor_core.replay.tracks` relies on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.replay.structure import Structure

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"

NEVER = -(1 << 42)
"""The lag of an edge that does not hold: 73 minutes before all others, further than a recording reaches."""


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
        """Without what was found of its structure, which is found again where it is needed."""
        return {name: value for name, value in vars(self).items() if name != "structure"}

    @cached_property
    def structure(self) -> Structure:
        """Its nodes and edges without their times."""
        return Structure(self.chain, self.source, self.target)

    @property
    def before(self) -> Ints:
        """The node before each on its chain, -1 for the first of a chain."""
        return self.structure.before

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
            structure=self.structure,
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
        levels = self.structure.levels
        other.structure.__dict__.update(levels=(levels.max(initial=0) - levels)[::-1], quick_layout=None)
        return other
