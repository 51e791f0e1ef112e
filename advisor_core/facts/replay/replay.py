"""Replay of the recorded steps of a rank after a change.

With two recorded steps or more the answer is about a long run of such steps: the recorded ones, over and over, each
turn beginning where every chain ended in the turn before it, until two turns take equally long. The profile begins with
an idle device and a host without a lead, which does not count in a long run. A single step is replayed as it stands.

Other ranks are taken to gain as much: a collective takes as long as it did, waiting included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.host.launches import ahead_ns, launches
from advisor_core.facts.intervals import Ints, Layer, earliest_start_wins, union
from advisor_core.facts.matching import matching
from advisor_core.facts.replay.around import around_ns, between_steps_ns, leading_to
from advisor_core.facts.replay.changes import Change, HostChange
from advisor_core.facts.replay.nodes import FEED, FEEDERS, TASK, openings
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph
from advisor_core.facts.steps.steps import steps
from advisor_core.replay.graph import Graph
from advisor_core.replay.long_run import once, repeated
from advisor_core.replay.sweep import passes


@dataclass(frozen=True)
class Replay:
    """``recorded``: the graph of the rank; ``steps``: how many steps it has; ``openings``: of each recorded step but
    the first the nodes of the feeding threads up to its first task, whose host time is that between two steps; none for
    a recording that is replayed once. ``starts_ns``: when each step begins, device time. ``around_ns``: the host time
    from the last task of the recording round to the first, ``None`` unknown (`advisor_core.facts.replay.around`).
    """

    recorded: RankGraph
    steps: int
    openings: tuple[Ints, ...]
    starts_ns: Ints
    around_ns: int | None = None

    def once(self) -> Replay:
        """The recorded steps as they stand, for what does not happen in every turn of a long run."""
        return replace(self, openings=())

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
        """Host time between two turns of a long run: as recorded around the steps, of which as much stays with a change
        as between two of them; that between two steps, the median, where the other is not known."""
        usual = between_steps_ns(graph, self.openings)
        if self.around_ns is None or not self._recorded_between_ns:
            return usual
        return round(self.around_ns * usual / self._recorded_between_ns)

    @cached_property
    def _recorded_between_ns(self) -> int:
        return between_steps_ns(self.recorded.graph, self.openings)

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
        if not self.openings:
            begun = int(nodes.start_ns[tasks].min()) - self.recorded.origin_ns
            return [lasting.ns for lasting in once(graphs, free, tasks, begun)]
        between = [np.zeros(len(free), dtype=np.int64) for _ in graphs]
        for pauses, graph in zip(between, graphs, strict=True):
            pauses[FEEDERS] = self.between_ns(graph)
        return [lasting.ns for lasting in repeated(graphs, free, tasks, between)]


@fact("replay", needs=(rank_graph, steps, HOST_EVENTS, PROFILE), wants=(host_activity, launches))
def replay(facts: Facts) -> Replay:
    """The replay of the recorded steps after a change (a long run of them where several were recorded)."""
    recorded, windows = facts[rank_graph], facts[steps]
    starts = windows["start_ns"].to_numpy()
    opening: tuple[Ints, ...] = ()
    around = None
    # Without the calls of the host it is not known where it waited for the device.
    if host_activity in facts:
        nodes = recorded.nodes
        feeds = np.flatnonzero(nodes.kind == FEED)
        started = nodes.start_ns[nodes.at(TASK, nodes.row[feeds])]
        opening = leading_to(nodes, openings(started, starts))
        usual = between_steps_ns(recorded.graph, opening)
        around = around_ns(nodes, _marks(facts), facts[host_activity].syncs, usual) if opening else None
    return Replay(recorded, len(windows), opening, starts, around)


def _marks(facts: Facts) -> Layer:
    """The marks of steps on the host, in device time."""
    events = facts[HOST_EVENTS]
    marks = events[matching(events["name"], facts[PROFILE].vocabulary.step_mark)]
    starts = marks["start_ns"].to_numpy() - ahead_ns(facts.get(launches))
    ends = starts + marks["duration_ns"].to_numpy()
    return earliest_start_wins(starts, ends)
