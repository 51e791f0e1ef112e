"""Replay of the recorded steps of a rank after a change.

With two recorded steps or more the answer is about a long run of such steps: the recorded ones, over and over, each
turn beginning where every chain ended in the turn before it, until two turns take equally long. The profile begins with
an idle device and a host without a lead, and the host time before its first task is in no step; neither counts in a
long run. A single step is replayed as it stands.

Other ranks are taken to gain as much: a collective takes as long as it did, waiting included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.intervals import Ints, union
from advisor_core.facts.replay.changes import Change, HostChange
from advisor_core.facts.replay.nodes import FEED, FEEDERS, TASK, openings
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph
from advisor_core.facts.steps.steps import steps
from advisor_core.replay.graph import Graph
from advisor_core.replay.long_run import once, repeated
from advisor_core.replay.sweep import passes


@dataclass(frozen=True)
class Replay:
    """``recorded``: the graph of the rank; ``steps``: how many steps it has; ``openings``: the first nodes of the
    feeding threads in each recorded step but the first, whose host time is that between two turns of a long run; none
    for a recording that is replayed once. ``starts_ns``: when each step begins, device time.
    """

    recorded: RankGraph
    steps: int
    openings: Ints
    starts_ns: Ints

    def once(self) -> Replay:
        """The recorded steps as they stand, for what does not happen in every turn of a long run."""
        return replace(self, openings=self.openings[:0])

    def step_of(self, moments: Ints) -> Ints:
        """The number of the recorded step of each moment, device time."""
        return np.maximum(0, np.searchsorted(self.starts_ns, moments, side="right") - 1)

    def saved_ns(self, waits: pd.DataFrame) -> int:
        """By how much the recorded steps would be shorter without these calls (``start_ns``, ``end_ns`` in device time)
        of the threads that feed the device, none of which waits for the device any more."""
        return self.saved_by(HostChange(union(waits["start_ns"].to_numpy(), waits["end_ns"].to_numpy())))

    def saved_by(self, change: Change) -> int:
        """By how much the recorded steps would be shorter, ns (all of them together)."""
        return self.saved_by_each([change])[0]

    def saved_by_each(self, changes: Sequence[Change]) -> list[int]:
        """As `saved_by`, of each of these changes alone: quicker than to ask for one after the other."""
        if not len(self.recorded.graph):
            return [0] * len(changes)
        lasts: list[int] = []
        for first, last in passes(len(changes), len(self.recorded.graph)):
            lasts += self._lasts([change.apply(self.recorded, self.recorded.graph) for change in changes[first:last]])
        return [max(0, self.recorded_ns - ns) for ns in lasts]

    def between_ns(self, graph: Graph) -> int:
        """Host time between two turns of a long run: that between two recorded steps, the median. What the host does
        before the first and after the last node of a recording is that of starting and stopping the profiler."""
        return int(np.median(graph.duration[self.openings])) if len(self.openings) else 0

    @cached_property
    def recorded_ns(self) -> int:
        """Time of the replayed steps when nothing is changed: in a long run, else as recorded."""
        return self._lasts([self.recorded.graph])[0]

    def _lasts(self, graphs: Sequence[Graph]) -> list[int]:
        """Time of the steps on each of these graphs."""
        nodes = self.recorded.nodes
        tasks = np.flatnonzero(nodes.kind == TASK)
        if not len(tasks):
            return [0] * len(graphs)
        free = self.recorded.free_ns
        if not len(self.openings):
            begun = int(nodes.start_ns[tasks].min()) - self.recorded.origin_ns
            return [lasting.ns for lasting in once(graphs, free, tasks, begun)]
        between = [np.zeros(len(free), dtype=np.int64) for _ in graphs]
        for pauses, graph in zip(between, graphs, strict=True):
            pauses[FEEDERS] = self.between_ns(graph)
        return [lasting.ns for lasting in repeated(graphs, free, tasks, between)]


@fact("replay", needs=(rank_graph, steps, HOST_EVENTS), wants=(host_activity,))
def replay(facts: Facts) -> Replay:
    """The replay of the recorded steps after a change (a long run of them where several were recorded)."""
    recorded, windows = facts[rank_graph], facts[steps]
    starts = windows["start_ns"].to_numpy()
    opening = np.zeros(0, dtype=np.int64)
    # Without the calls of the host it is not known where it waited for the device.
    if host_activity in facts:
        nodes = recorded.nodes
        feeds = np.flatnonzero(nodes.kind == FEED)
        started = nodes.start_ns[nodes.at(TASK, nodes.row[feeds])]
        opening = feeds[openings(started, starts)]
    return Replay(recorded, len(windows), opening, starts)
