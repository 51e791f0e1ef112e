"""What the recorded steps would take after a change.

With two recorded steps or more the answer is about a long run of such steps: the recorded ones, over and over, each
turn beginning where every chain ended in the turn before it, until two turns take equally long. The profile begins with
an idle device and a host without a lead, and the host time before its first task is in no step; neither counts in a
long run. A single step is replayed as it stands.

Other ranks are taken to gain as much: a collective takes as long as it did, waiting included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.intervals import Ints, union
from advisor_core.facts.replay.changes import Change, HostChange
from advisor_core.facts.replay.nodes import FEED, FEEDERS, TASK
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph
from advisor_core.facts.steps.steps import steps
from advisor_core.replay.graph import Graph
from advisor_core.replay.sweep import ends

_TURNS = 8
"""Where turns do not settle (a lead that grows and shrinks) this many are replayed, and the later half counts."""


@dataclass(frozen=True)
class Replay:
    """``recorded``: the graph of the rank; ``steps``: how many steps it has; ``around``: the host time of the steps
    before the first and after the last node of its chain, as (from, until) in device time; ``None`` for a single step.
    """

    recorded: RankGraph
    steps: int
    around: tuple[int, int] | None

    def once(self) -> Replay:
        """The recorded steps as they stand, for what does not happen in every turn of a long run."""
        return replace(self, around=None)

    def saved_ns(self, waits: pd.DataFrame) -> int:
        """By how much the recorded steps would be shorter without these calls (``start_ns``, ``end_ns`` in device time)
        of the threads that feed the device, none of which waits for the device any more."""
        return self.saved_by(HostChange(union(waits["start_ns"].to_numpy(), waits["end_ns"].to_numpy())))

    def saved_by(self, change: Change) -> int:
        """By how much the recorded steps would be shorter, ns (all of them together)."""
        if not len(self.recorded.graph):
            return 0
        around = change.feeding if isinstance(change, HostChange) else None
        outside = 0
        if self.around is not None and around is not None:
            first, last = self._host
            outside = int(
                (around.measure(np.array([first])) - around.measure(np.array([self.around[0]])))[0]
                + (around.measure(np.array([self.around[1]])) - around.measure(np.array([last])))[0]
            )
        return max(0, self.recorded_ns - self._lasts(change.apply(self.recorded), outside))

    @cached_property
    def recorded_ns(self) -> int:
        """How long the replayed steps take when nothing is changed: in a long run, else as recorded."""
        return self._lasts(self.recorded.graph, 0)

    @cached_property
    def _host(self) -> tuple[int, int]:
        """When the first and the last node of the feeding threads end."""
        nodes = self.recorded.nodes
        fed = nodes.end_ns[nodes.chain == FEEDERS]
        return int(fed.min()), int(fed.max())

    def _lasts(self, graph: Graph, left_out: int) -> int:
        """How long the steps take. ``left_out``: of the host time around the nodes, ns."""
        nodes = self.recorded.nodes
        tasks = nodes.kind == TASK
        if not tasks.any():
            return 0
        free = self.recorded.free_ns
        ended = ends(graph, free)
        if self.around is None or not (nodes.kind == FEED).any():
            begun = int(nodes.start_ns[tasks].min()) - self.recorded.origin_ns
            return int(ended[tasks].max()) - begun
        first, last = self._host
        between = max(0, first - self.around[0] + self.around[1] - last - left_out)
        lasts: list[int] = []
        reached = int(ended[tasks].max())
        for _ in range(_TURNS):
            free = _latest(graph, ended)
            free[FEEDERS] += between
            ended = ends(graph, free)
            lasts.append(int(ended[tasks].max()) - reached)
            reached += lasts[-1]
            if len(lasts) > 1 and lasts[-1] == lasts[-2]:
                return lasts[-1]
        later = lasts[_TURNS // 2 :]
        return sum(later) // len(later)


def _latest(graph: Graph, ended: Ints) -> Ints:
    """When each chain is done with all of its nodes."""
    latest = np.zeros(int(graph.chain.max()) + 1, dtype=np.int64)
    np.maximum.at(latest, graph.chain, ended)
    return latest


@fact("replay", needs=(rank_graph, steps, HOST_EVENTS), wants=(host_activity,))
def replay(facts: Facts) -> Replay:
    """What the recorded steps would take after a change (a long run of them where several were recorded)."""
    # Without the calls of the host it is not known where it waited for the device.
    host = facts.get(host_activity)
    windows = len(facts[steps])
    around = None
    if windows > 1 and host is not None and len(host.steps):
        nodes = facts[rank_graph].nodes
        fed = nodes.end_ns[nodes.kind == FEED]
        if len(fed):
            first, last = int(host.steps.starts[0]), int(host.steps.ends[-1])
            around = min(first, int(fed.min())), max(last, int(nodes.end_ns[nodes.chain == FEEDERS].max()))
    return Replay(facts[rank_graph], windows, around)
