"""The dependency graph of one rank, with the recorded times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.device.work import work
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.host.full_queues import full_queues, none_held
from advisor_core.facts.host.launches import launches
from advisor_core.facts.intervals import empty
from advisor_core.facts.ledger.bookings import LATENCY_NS, LONGEST_LATENCY_NS
from advisor_core.facts.replay.draining import waiting_since
from advisor_core.facts.replay.edges import DONE, HANDED, LAUNCHED, Edges, edges_of
from advisor_core.facts.replay.nodes import CALL, FEED, TASK, Nodes, as_called, nodes_of
from advisor_core.facts.steps.backlog import backlog
from advisor_core.facts.steps.steps import steps
from advisor_core.replay.graph import Graph, Ints
from advisor_core.replay.sweep import ends

if TYPE_CHECKING:
    import numpy.typing as npt

_NOT_BOUND = -(1 << 63)


@dataclass(frozen=True)
class RankGraph:
    """``graph``: its replay gives the recorded times, to the nanosecond. ``nodes`` and ``edges``: what its nodes and
    edges are; ``talks``: the nodes that are collectives. ``free_ns``: when each chain could begin. ``origin_ns``: the
    moment that the replay counts from.
    """

    graph: Graph
    nodes: Nodes
    edges: Edges
    talks: npt.NDArray[np.bool_]
    free_ns: Ints
    origin_ns: int

    def replayed(self) -> Ints:
        """The end of each node in the unchanged replay, device time in ns."""
        return ends(self.graph, self.free_ns) + self.origin_ns

    def launching(self, *nodes: Ints) -> Ints:
        """The edges by which these nodes, launches and tasks, wait to be handed over or launched."""
        among = np.zeros(len(self.graph), dtype=np.bool_)
        for numbers in nodes:
            among[numbers] = True
        edges, targets = self._launching
        return edges[among[targets]]

    @cached_property
    def _launching(self) -> tuple[Ints, Ints]:
        """The edges by which anything waits to be handed over or launched, and their targets."""
        edges = np.flatnonzero(np.isin(self.edges.kind, (HANDED, LAUNCHED)))
        return edges, self.edges.target[edges]


@fact("rank_graph", needs=(work, launches, steps, PROFILE), wants=(host_activity, full_queues, backlog, HOST_EVENTS))
def rank_graph(facts: Facts) -> RankGraph:
    """The tasks, launches and calls of the rank with what each waited for, as a graph that can be replayed."""
    device, launched, windows = facts[work], facts[launches], facts[steps]
    begin, finish = int(windows["start_ns"].min()), int(windows["end_ns"].max())
    starts = device["start_ns"].to_numpy()
    rows = np.flatnonzero((starts >= begin) & (starts < finish))
    host = facts.get(host_activity)
    syncs = host.syncs if host is not None else empty()
    waiting = (
        waiting_since(syncs, launched, facts[HOST_EVENTS], facts[PROFILE].vocabulary)
        if host is not None
        else syncs.starts
    )
    held = facts[full_queues].frame if full_queues in facts else none_held()
    held = held[~np.isin(held["call_row"], syncs.ids)]
    launched = as_called(launched, held)
    nodes = nodes_of(device, rows, launched, syncs, waiting, held, windows["start_ns"].to_numpy())
    edges = edges_of(nodes, device, rows, launched, held)
    talks = (nodes.kind == TASK) & device["communication"].to_numpy()[np.minimum(nodes.row, len(device) - 1)]
    behind = np.zeros(len(nodes.kind), dtype=bool)
    if backlog in facts:
        behind = (nodes.kind == TASK) & (nodes.row == facts[backlog].task)
    return timed(nodes, edges, talks, behind)


def timed(nodes: Nodes, edges: Edges, talks: npt.NDArray[np.bool_], behind: npt.NDArray[np.bool_]) -> RankGraph:
    """The graph whose replay gives the recorded times: what nothing explains is a pause, or the latency of the edge
    that a node waited for. ``talks``: the nodes that are collectives. ``behind``: the first tasks of chains that were
    not free when the recording began."""
    count = len(nodes.kind)
    origin = int(nodes.start_ns.min()) if count else 0
    start, end = nodes.start_ns - origin, nodes.end_ns - origin
    nothing = np.zeros(count, dtype=np.int64)
    no_lag = np.zeros(len(edges.kind), dtype=np.int64)
    graph = Graph(nodes.chain, nothing, nothing, edges.source, edges.target, no_lag)
    before = graph.before
    free = np.where(before >= 0, end[np.maximum(before, 0)], _NOT_BOUND)
    lag = _latencies(graph, edges, talks, behind, free, start, end)
    ready = free.copy()
    np.maximum.at(ready, edges.target, end[edges.source] + lag)
    tasks = nodes.kind == TASK
    pause = np.where(tasks & (before >= 0) & (ready < start), start - free, 0)
    firsts = np.flatnonzero(before < 0)
    free_ns = np.zeros(int(nodes.chain.max()) + 1 if count else 0, dtype=np.int64)
    free_ns[nodes.chain[firsts]] = np.where(ready[firsts] < start[firsts], start[firsts], 0)
    began = np.where(tasks, start, np.where(ready > _NOT_BOUND, ready, start))
    began = np.where((nodes.kind == FEED) | (nodes.kind == CALL), start, began)
    duration = np.maximum(0, end - np.minimum(began, end))
    return RankGraph(graph.changed(duration=duration, pause=pause, lag=lag), nodes, edges, talks, free_ns, origin)


def _latencies(
    graph: Graph,
    edges: Edges,
    talks: npt.NDArray[np.bool_],
    behind: npt.NDArray[np.bool_],
    free: Ints,
    start: Ints,
    end: Ints,
) -> Ints:
    """The lag of each edge. The latency of a launch is seen where an idle device waited for it, and is the usual one
    elsewhere; so is what the thread behind the queue needs to take a task, where it had nothing to do."""
    lag = np.zeros(len(edges.kind), dtype=np.int64)
    is_launch, handed = edges.kind == LAUNCHED, edges.kind == HANDED
    lag[handed] = _taking(end[edges.source[handed]], start[edges.target[handed]], free[edges.target[handed]])
    others = free.copy()
    np.maximum.at(others, edges.target[~is_launch], end[edges.source[~is_launch]])
    launched_at, into = end[edges.source[is_launch]], edges.target[is_launch]
    latency = start[into] - launched_at
    waited = (launched_at >= others[into]) & ~behind[into]
    usual = int(np.median(latency[waited])) if waited.any() else 0
    own = np.where(waited, latency, np.minimum(usual, latency))
    lag[is_launch] = own
    explained = free.copy()
    np.maximum.at(explained, edges.target, end[edges.source] + lag)
    left = np.where(explained > _NOT_BOUND, start - explained, 0)
    # The host unfolds a collective into its tasks in one long call: that is still its launch.
    unfolded = talks[into] & (left[into] > LATENCY_NS) & (latency <= LONGEST_LATENCY_NS)
    lag[is_launch] = np.where(unfolded, latency, own)
    left[into[unfolded]] = 0
    # What nothing explains is a delay of what the task waited for.
    asks = (edges.kind != DONE) & (edges.kind != HANDED) & (left[edges.target] > 0) & ~behind[edges.target]
    binding = (
        asks & (end[edges.source] + lag == explained[edges.target]) & (explained[edges.target] > free[edges.target])
    )
    lag[binding] += left[edges.target[binding]]
    return lag


def _taking(handed_ns: Ints, began_ns: Ints, free_ns: Ints) -> Ints:
    """The time that each task lies in the queue before the thread behind it takes it, though that has nothing else to
    do: as recorded where it had nothing to do, elsewhere the usual time, so that a thread that is busy as recorded is
    not held up."""
    lies = began_ns - handed_ns
    idle = free_ns <= handed_ns
    seen = lies[idle & (lies > 0)]
    usual = int(np.median(seen)) if len(seen) else 0
    return np.where(idle, lies, np.minimum(usual, lies))
