"""Changes of a rank's graph: new times for the nodes and edges that a replay leaves out or shortens."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from advisor_core.facts.intervals import Ints, Layer, empty
from advisor_core.facts.replay.edges import DONE, LAUNCHED
from advisor_core.facts.replay.nodes import CALL, FEED, LAUNCH, RETURN, TASK
from advisor_core.facts.replay.rank_graph import RankGraph
from advisor_core.replay.graph import NEVER, Graph

Floats = npt.NDArray[np.float64]

ENTRY_NS = 3_000
"""Time to put a task into a queue where there was none: medians in real exports are 2.6 to 4.5 us."""

SHORT_GAP_NS = 30_000
"""Idle time up to this before a kernel is that of starting it and goes with it. Longer gaps between launched tasks (95
us between any two on a real export, where counters are read) come from elsewhere and stay."""

LONGEST = 4
"""An operator that took the host longer than this many times the usual was held up by something that stays: a garbage
collection, a full queue, Python around the operator. Of it, this much counts as the operator's own."""


@dataclass(frozen=True)
class HostChange:
    """The host time that a replay leaves out, as layers of device time.

    ``feeding``: left out of the threads that feed the device; a synchronising call that begins within it does not wait
    any more. ``launching``: left out of the thread that empties the task queue. ``handed_over``: done by a thread that
    takes the tasks from a queue, where the threads that feed the device did it themselves.
    """

    feeding: Layer = field(default_factory=empty)
    launching: Layer = field(default_factory=empty)
    handed_over: Layer = field(default_factory=empty)

    def apply(self, recorded: RankGraph) -> Graph:
        """The graph without this time."""
        nodes, graph = recorded.nodes, recorded.graph
        since, until = nodes.start_ns, nodes.end_ns

        def measured(layer: Layer, of: npt.NDArray[np.bool_]) -> Ints:
            found = np.zeros(len(since), dtype=np.int64)
            found[of] = layer.measure(until[of]) - layer.measure(since[of])
            return found

        feeds = nodes.kind == FEED
        own = feeds | (nodes.kind == CALL)
        launches = nodes.kind == LAUNCH
        duration = graph.duration - measured(self.feeding, own) - measured(self.launching, launches)
        moved = measured(self.handed_over, own)
        duration = duration - moved
        if len(self.handed_over):
            duration[feeds] += ENTRY_NS
            launched = nodes.of(LAUNCH, int(nodes.row[feeds].max()) + 1)[nodes.row[feeds]]
            duration[launched] += moved[feeds]
        gone = (nodes.kind == RETURN) & (self.feeding.at(_begins(recorded)) >= 0)
        duration = np.where(gone, 0, np.maximum(0, duration))
        edges = recorded.edges
        lag = np.where((edges.kind == DONE) & gone[edges.target], NEVER, graph.lag)
        return graph.changed(duration=duration, lag=lag)


def _begins(recorded: RankGraph) -> Ints:
    """The moment at which the call of each RETURN began; of other nodes their start."""
    nodes = recorded.nodes
    returns = np.flatnonzero(nodes.kind == RETURN)
    begins = nodes.start_ns.copy()
    if len(returns):
        calls = nodes.of(CALL, int(nodes.row[returns].max()) + 1)
        begins[returns] = nodes.end_ns[calls[nodes.row[returns]]]
    return begins


@dataclass(frozen=True)
class Merging:
    """Kernels that become one: ``tasks``, rows of the fact ``work``; ``chain``, the number of the chain of each, from
    0; ``before_ns`` and ``after_ns``, what each chain takes and would take as one kernel."""

    tasks: Ints
    chain: Ints
    before_ns: Floats
    after_ns: Floats

    @classmethod
    def none(cls, tasks: Ints, before_ns: Floats, after_ns: Floats) -> Merging:
        """Every task stays, and takes ``after_ns`` in place of ``before_ns``."""
        return cls(tasks, np.arange(len(tasks)), before_ns, after_ns)

    def apply(self, recorded: RankGraph) -> Graph:
        """The graph in which the first kernel of each chain does the work of all, and the others are not launched."""
        nodes, graph, edges = recorded.nodes, recorded.graph, recorded.edges
        rows = 1 + max(int(nodes.row.max(initial=-1)), int(self.tasks.max(initial=-1)))
        task, launch, feed = (nodes.of(kind, rows) for kind in (TASK, LAUNCH, FEED))
        replayed = task[self.tasks] >= 0
        order = np.lexsort((self.tasks[replayed], self.chain[replayed]))
        tasks, chain = self.tasks[replayed][order], self.chain[replayed][order]
        if not len(tasks):
            return graph
        first = np.concatenate([[True], chain[1:] != chain[:-1]])
        own = task[tasks]
        taken = np.bincount(chain, weights=graph.duration[own], minlength=len(self.before_ns))
        shrunk = taken * self.after_ns / np.maximum(self.before_ns, 1)
        stays = np.where(first | (graph.pause[own] <= SHORT_GAP_NS), 0, graph.pause[own])
        shrunk += np.bincount(chain, weights=stays, minlength=len(shrunk))
        duration, pause, lag = graph.duration.copy(), graph.pause.copy(), graph.lag.copy()
        duration[own[first]] = np.rint(shrunk[chain[first]]).astype(np.int64)
        gone = tasks[~first]
        duration[task[gone]], pause[task[gone]] = 0, 0
        freed, launched = feed[gone][feed[gone] >= 0], launch[gone][launch[gone] >= 0]
        fed = graph.duration[nodes.kind == FEED]
        usual = float(np.median(fed[fed > 0])) if (fed > 0).any() else 0.0
        duration[freed] -= np.minimum(duration[freed], int(LONGEST * usual))
        duration[launched] = 0
        unlaunched = np.zeros(len(graph), dtype=np.bool_)
        unlaunched[task[gone]] = True
        lag[(edges.kind == LAUNCHED) & unlaunched[edges.target]] = NEVER
        return graph.changed(duration=duration, pause=pause, lag=lag)


Change = HostChange | Merging
