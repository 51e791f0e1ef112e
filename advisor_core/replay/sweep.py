"""The end of each node: one pass over the levels of the graph, a few operations on arrays for each.

Within a run of a chain, or of a track that goes on from chain to chain (`advisor_core.replay.tracks`),
``end[i] = max(ready[i], end[i-1] + pause[i]) + duration[i]``, where ``ready`` is when the sources of its edges have
ended. With ``sums[i]`` the running sum of pauses and durations that is
``end[i] = sums[i] + max over j <= i of (ready[j] + duration[j] - sums[j])``: a running sum and a running maximum (the
recurrence of Lindley for queues, which is linear in the (max, +) algebra). Runs of one level do not depend on one
another and are laid so far apart that one running maximum serves them all. Graphs of one structure with other times go
through it side by side, each a column, as many as there is room for: a level costs nearly the same for all of them as
for one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from advisor_core.replay.graph import NEVER, Graph, Ints
from advisor_core.replay.layout import Layout

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
    """The end of each node, ns. ``free``: when each chain can begin with its first node, by default at 0; nothing but
    edges and chains holds a node up."""
    if free is None:
        free = np.zeros(int(graph.chain.max(initial=-1)) + 1, dtype=np.int64)
    return SideBySide([graph]).ends([free])[0]


def passes(count: int, nodes: int) -> Iterator[tuple[int, int]]:
    """The first and the last, exclusive, of ``count`` graphs that each pass takes. Who makes the graphs only when their
    pass comes holds no more of them than that."""
    at_once = max(1, min(MOST_SIDE_BY_SIDE, SIDE_BY_SIDE // max(1, nodes)))
    return ((first, min(count, first + at_once)) for first in range(0, count, at_once))


class SideBySide:
    """Graphs that differ in nothing but their times (`Graph.changed`), made ready for any number of passes over all of
    them. `passes` says how many there is room for."""

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self._parts: list[tuple[list[int], _Columns]] = []
        if not graphs:
            return
        structure = graphs[0].structure
        quick = structure.quick_layout
        serves = [quick is not None and quick.tracks.serve(graph) for graph in graphs]
        for layout, served in ((quick, True), (structure.layout, False)):
            numbers = [number for number, does in enumerate(serves) if does == served]
            if layout is not None and numbers:
                self._parts.append((numbers, _Columns.of(layout, [graphs[number] for number in numbers])))

    def ends(self, free: Sequence[Ints], of: Sequence[int] | None = None) -> list[Ints]:
        """The end of each node, ns, of each of the graphs with the numbers ``of``, by default of all. ``free``: of each
        of these, when each chain can begin with its first node."""
        begins = dict(enumerate(free)) if of is None else dict(zip(of, free, strict=True))
        found: dict[int, Ints] = {}
        for numbers, columns in self._parts:
            chosen = [place for place, number in enumerate(numbers) if number in begins]
            if chosen:
                ended = columns.ends([begins[numbers[place]] for place in chosen], chosen)
                found |= dict(zip((numbers[place] for place in chosen), ended, strict=True))
        return [found[number] for number in begins]


@dataclass(frozen=True)
class _Columns:
    """Graphs that one layout serves. A column of the arrays is a graph; a row of ``own`` and ``shift`` a place of the
    layout, one of ``takes`` an edge. All is counted from ``shift``, which is taken off each place: then an edge is one
    addition. ``own``: the duration of a node. ``first_chains``: the chain of each of the first nodes."""

    layout: Layout
    own: Ints
    shift: Ints
    takes: Ints
    first_chains: Ints

    @classmethod
    def of(cls, layout: Layout, graphs: Sequence[Graph]) -> _Columns:
        nodes, edges = len(graphs[0]), len(graphs[0].source)
        times = np.empty((edges + nodes, len(graphs)), dtype=np.int64)
        durations = np.empty((nodes, len(graphs)), dtype=np.int64)
        for number, graph in enumerate(graphs):
            durations[:, number] = graph.duration
            times[:edges, number] = graph.lag
            times[edges:, number] = graph.pause
        own = durations.take(layout.nodes, axis=0)
        shift = times.take(layout.times, axis=0)
        block = _parted(layout, shift)
        shift += own
        np.cumsum(shift, axis=0, out=shift)
        shift -= block * _APART
        own -= shift
        takes = times.take(layout.edge_times, axis=0)
        takes += shift.take(layout.sources, axis=0)
        takes += own.take(layout.into, axis=0)
        return cls(layout, own, shift, takes, graphs[0].chain[layout.firsts])

    def ends(self, free: Sequence[Ints], of: Sequence[int]) -> list[Ints]:
        """As `SideBySide.ends`, of these columns."""
        layout, own, shift, takes = self.layout, self.own, self.shift, self.takes
        if len(of) < own.shape[1]:
            own, shift, takes = (times.take(of, axis=1) for times in (own, shift, takes))
        reached = own + _UNBOUND
        begun = np.stack([since[self.first_chains] for since in free], axis=1)
        reached[layout.first_places] = own[layout.first_places] + begun
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
        for number in range(len(of)):
            ended = np.empty(len(own), dtype=np.int64)
            ended[layout.nodes] = reached[:, number]
            found.append(ended)
        return found


def _parted(layout: Layout, between: Ints) -> Ints:
    """The number of each place's run within its level, in each graph: a turn that does not hold ends a run. Nothing
    passes there, then. ``between``: what passes between each place and the one before, of each graph."""
    turns = between[layout.turn_places]
    broken, of = np.nonzero(turns < NEVER // 2)
    if not len(broken):
        return layout.block[:, np.newaxis]
    between[layout.turn_places[broken], of] = 0
    ended = np.zeros_like(between)
    ended[layout.turn_places[broken], of] = 1
    np.cumsum(ended, axis=0, out=ended)
    ended -= ended.take(layout.begin, axis=0)
    ended += layout.block[:, np.newaxis]
    return ended


def _latest(arrived: Ints, first: Ints) -> Ints:
    """Of each target the latest of its edges. ``first``: the first edge of each."""
    one = len(first) == 1
    latest: Ints = np.maximum.reduce(arrived, axis=0) if one else np.maximum.reduceat(arrived, first, axis=0)
    return latest
