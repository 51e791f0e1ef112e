"""Kernels that are captured as a graph: the host launches the graph in place of each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor_core.contracts.cure import Cure
from advisor_core.facts.intervals import Ints
from advisor_core.facts.replay.nodes import FEED, LAUNCH, TASK
from advisor_core.facts.replay.rank_graph import RankGraph
from advisor_core.replay.graph import NEVER, Graph

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Capturing(Cure):
    """Tasks that are replayed as graphs. ``tasks``: rows of the fact ``work``; ``graph``: the number of the graph of
    each; ``given``: those that the host gives new parameters at each replay, with the time that it took to launch them,
    and that wait for these. ``call_ns``: what each adds to the call that replays its graph, which also takes as long as
    the launch of its first task; ``gap_ns``: between two tasks of a stream in a graph."""

    tasks: Ints
    graph: Ints
    given: npt.NDArray[np.bool_]
    call_ns: Ints
    gap_ns: int

    def apply(self, recorded: RankGraph, graph: Graph) -> Graph:
        """The graph in which the host launches the first task of each graph, and the others follow it. ``graph``: that
        of ``recorded``, with other changes made already."""
        nodes = recorded.nodes
        task, launch, feed = (nodes.at(kind, self.tasks) for kind in (TASK, LAUNCH, FEED))
        known = (task >= 0) & (launch >= 0)
        order = np.flatnonzero(known)[np.lexsort((feed[known], self.graph[known]))]
        task, launch, feed, given = task[order], launch[order], feed[order], self.given[order]
        number = self.graph[order]
        first = np.concatenate([[True], number[1:] != number[:-1]])[: len(number)]
        duration, pause, lag = graph.duration.copy(), graph.pause.copy(), graph.lag.copy()
        follows = ~first & ~given
        duration[feed[follows]] = 0
        duration[launch[follows]] = 0
        np.add.at(duration, launch[first][np.cumsum(first) - 1], self.call_ns[order])
        inside = task[~first]
        runs = (graph.before[inside] >= 0) & (graph.duration[inside] > 0)
        pause[inside] = np.where(runs, self.gap_ns, pause[inside])
        lag[recorded.launching(task[follows], launch[follows])] = NEVER
        return graph.changed(duration=duration, pause=pause, lag=lag)
