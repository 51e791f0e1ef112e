"""Changes of a rank's graph: new times for the nodes and edges that a replay leaves out or shortens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.contracts.cure import Cure
from advisor_core.facts.intervals import Ints, Layer, empty, union
from advisor_core.facts.replay.capture import Capturing
from advisor_core.facts.replay.edges import DONE
from advisor_core.facts.replay.nodes import CALL, FEED, LAUNCH, RETURN, TASK
from advisor_core.facts.replay.overlapping import Overlapping
from advisor_core.facts.replay.rank_graph import RankGraph
from advisor_core.replay.graph import NEVER, Graph

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"

ENTRY_NS = 3_000
"""Time to put a task into a queue where there was none: medians in real exports are 2.6 to 4.5 us."""

SHORT_GAP_NS = 30_000
"""Idle time up to this before a kernel is that of starting it and goes with it. Longer gaps between launched tasks (95
us between any two on a real export, where counters are read) come from elsewhere and stay."""

LONGEST = 4.0
"""An operator that took the host longer than this many times the usual was held up by something that stays: a garbage
collection, a full queue, Python around the operator. Of it, this much counts as the operator's own."""


@dataclass(frozen=True)
class HostChange(Cure):
    """The host time that a replay leaves out, as layers of device time.

    ``feeding``: left out of the threads that feed the device; a synchronising call that begins within it does not wait
    any more. ``launching``: left out of the thread that empties the task queue. ``handed_over``: done by a thread that
    takes the tasks from a queue, where the threads that feed the device did it themselves; a task that no queue held is
    put into one.
    """

    feeding: Layer = field(default_factory=empty)
    launching: Layer = field(default_factory=empty)
    handed_over: Layer = field(default_factory=empty)

    @property
    def changes_nothing(self) -> bool:
        return not (len(self.feeding) or len(self.launching) or len(self.handed_over))

    def apply(self, recorded: RankGraph, graph: Graph) -> Graph:
        """The graph without this time. ``graph``: that of ``recorded``, with other changes made already."""
        nodes, edges = recorded.nodes, recorded.edges
        duration, lag = graph.duration.copy(), graph.lag
        feeds = nodes.numbers(FEED)
        own = np.concatenate([feeds, nodes.numbers(CALL)])

        def measured(layer: Layer, of: Ints) -> Ints:
            return layer.measure(nodes.end_ns[of]) - layer.measure(nodes.start_ns[of])

        if len(self.feeding):
            duration[own] -= measured(self.feeding, own)
        if len(self.launching):
            launches = nodes.numbers(LAUNCH)
            duration[launches] -= measured(self.launching, launches)
        if len(self.handed_over):
            moved = measured(self.handed_over, own)
            duration[own] -= moved
            launch = nodes.at(LAUNCH, nodes.row[feeds])
            no_queue = nodes.end_ns[launch] == nodes.end_ns[feeds]
            duration[feeds] += np.where(no_queue, ENTRY_NS, 0)
            duration[launch] += moved[: len(feeds)]
        duration = np.maximum(0, duration)
        if len(self.feeding):
            returns = nodes.numbers(RETURN)
            gone = np.zeros(len(duration), dtype=np.bool_)
            gone[returns] = self.feeding.at(nodes.start_ns[returns]) >= 0
            duration[gone] = 0
            lag = np.where((edges.kind == DONE) & gone[edges.target], NEVER, lag)
        return graph.changed(duration=duration, lag=lag)


@dataclass(frozen=True)
class Merging(Cure):
    """Kernels that become one: ``tasks``, rows of the fact ``work``; ``chain``, the number of the chain of each, from
    0; ``before_ns`` and ``after_ns``, what each chain takes and would take as one kernel. ``longest``: how many times
    the usual host time of an operator goes at most with each kernel that is not launched. ``waits``: what the host no
    longer does between them, such as to wait for a number that only they need. ``at_end``: the last kernel of a chain
    stays, not the first: they are transfers, and what is moved together leaves when all of it is ready."""

    tasks: Ints
    chain: Ints
    before_ns: Floats
    after_ns: Floats
    longest: float = LONGEST
    waits: HostChange = field(default_factory=HostChange)
    at_end: bool = False

    @classmethod
    def none(cls, tasks: Ints, before_ns: Floats, after_ns: Floats) -> Merging:
        """Every task stays, and takes ``after_ns`` in place of ``before_ns``."""
        return cls(tasks, np.arange(len(tasks)), before_ns, after_ns)

    @property
    def changes_nothing(self) -> bool:
        return not len(self.tasks) and self.waits.changes_nothing

    def apply(self, recorded: RankGraph, graph: Graph) -> Graph:
        """The graph in which one kernel of each chain does the work of all, and the others are not launched.
        ``graph``: that of ``recorded``, with other changes made already; what a kernel takes there shrinks by as much
        as in the recording."""
        if len(self.waits.feeding):
            graph = self.waits.apply(recorded, graph)
        return self.places(recorded).merged(self, graph)

    def places(self, recorded: RankGraph) -> Places:
        """The places of the kernels in the graph of a rank, the same with any other changes."""
        nodes = recorded.nodes
        replayed = nodes.at(TASK, self.tasks) >= 0
        order = np.lexsort((self.tasks[replayed], self.chain[replayed]))
        tasks, chain = self.tasks[replayed][order], self.chain[replayed][order]
        border = chain[1:] != chain[:-1]
        stays = np.concatenate([border, [True]] if self.at_end else [[True], border])[: len(tasks)]
        own = nodes.at(TASK, tasks)
        freed, launched = (nodes.at(kind, tasks[~stays]) for kind in (FEED, LAUNCH))
        launched = launched[launched >= 0]
        return Places(
            chain=chain,
            own=own,
            stays=stays,
            freed=freed[freed >= 0],
            launched=launched,
            launching=recorded.launching(own[~stays], launched),
            feeds=nodes.numbers(FEED),
        )


@dataclass(frozen=True)
class Places:
    """The nodes of kernels that become one: ``own``, of the kernels, in order of their chains; ``stays``, which of them
    do; ``freed`` and ``launched``, of the host that does not launch the others any more; ``launching``: the edges by
    which these would wait for it. ``feeds``: all of the host that hand something over."""

    chain: Ints
    own: Ints
    stays: npt.NDArray[np.bool_]
    freed: Ints
    launched: Ints
    launching: Ints
    feeds: Ints

    def merged(self, change: Merging, graph: Graph) -> Graph:
        """The graph with the change."""
        own, chain, stays = self.own, self.chain, self.stays
        if not len(own):
            return graph
        taken = np.bincount(chain, weights=graph.duration[own], minlength=len(change.before_ns))
        shrunk = taken * change.after_ns / np.maximum(change.before_ns, 1)
        pauses = np.where(stays | (graph.pause[own] <= SHORT_GAP_NS), 0, graph.pause[own])
        shrunk += np.bincount(chain, weights=pauses, minlength=len(shrunk))
        duration, pause, lag = graph.duration.copy(), graph.pause.copy(), graph.lag.copy()
        duration[own[stays]] = np.rint(shrunk[chain[stays]]).astype(np.int64)
        gone = own[~stays]
        duration[gone], pause[gone] = 0, 0
        fed = graph.duration[self.feeds]
        if (fed > 0).any():
            longest = change.longest * float(np.median(fed[fed > 0]))
            duration[self.freed] -= np.minimum(duration[self.freed], longest).astype(np.int64)
        duration[self.launched] = 0
        lag[self.launching] = NEVER
        return graph.changed(duration=duration, pause=pause, lag=lag)


@dataclass(frozen=True)
class Shortening(Cure):
    """Tasks that take less. ``tasks``: rows of the fact ``work``; ``steps``: over how many steps; ``by_ns``: by how
    much all of them together are shorter in a step, at most by what they take."""

    tasks: Ints
    steps: int
    by_ns: int = 0

    def promised(self, ns_per_step: int) -> Cure:
        """As much shorter as the rule says that they could be, where the advisor does not say it."""
        return self if self.by_ns else replace(self, by_ns=ns_per_step)

    @property
    def changes_nothing(self) -> bool:
        return not len(self.tasks)

    def apply(self, recorded: RankGraph, graph: Graph) -> Graph:
        """The graph in which each of the tasks is shorter by the same share. ``graph``: that of ``recorded``, with
        other changes made already."""
        tasks = recorded.nodes.at(TASK, self.tasks)
        tasks = tasks[tasks >= 0]
        took = int(recorded.graph.duration[tasks].sum())
        if not took:
            return graph
        stays = 1 - min(1.0, self.by_ns * self.steps / took)
        duration = graph.duration.copy()
        duration[tasks] = np.rint(duration[tasks] * stays).astype(np.int64)
        return graph.changed(duration=duration)


Change = HostChange | Merging | Shortening | Overlapping | Capturing

_ORDER = (Merging, Shortening, Overlapping, Capturing)
"""The order of kinds: computing that was changed hides less, and only kernels that are still launched are captured."""


HELD = 8
"""Of so many choices of changes of the host, those asked for last, the graph is kept: the plan asks for each change on
top of the same others."""


class Changing:
    """The graphs of a rank with several changes at once. Host time that several of them leave out goes once."""

    def __init__(self, recorded: RankGraph) -> None:
        self._recorded = recorded
        self._of_host: dict[tuple[int, ...], tuple[list[HostChange], Graph]] = {}
        self._places: dict[int, tuple[Merging, Places]] = {}

    def changed(self, changes: Sequence[Change]) -> Graph:
        """The graph with these changes."""
        of_host = [change for change in changes if isinstance(change, HostChange)]
        of_host += [change.waits for change in changes if isinstance(change, Merging)]
        graph = self._with_host([change for change in of_host if not change.changes_nothing])
        others = [change for change in changes if not isinstance(change, HostChange)]
        for change in sorted(others, key=lambda other: _ORDER.index(type(other))):
            if isinstance(change, Merging):
                graph = self._places_of(change).merged(change, graph)
            else:
                graph = change.apply(self._recorded, graph)
        return graph

    def _places_of(self, change: Merging) -> Places:
        # Changes are known by their ids, and held as long as these are, so that they stay theirs.
        if id(change) not in self._places:
            self._places[id(change)] = change, change.places(self._recorded)
        return self._places[id(change)][1]

    def _with_host(self, changes: list[HostChange]) -> Graph:
        if not changes:
            return self._recorded.graph
        key = tuple(map(id, changes))
        held = self._of_host.pop(key, None) or (changes, joined(changes).apply(self._recorded, self._recorded.graph))
        self._of_host[key] = held
        if len(self._of_host) > HELD:
            del self._of_host[next(iter(self._of_host))]
        return held[1]


def joined(changes: Sequence[HostChange]) -> HostChange:
    """One change that leaves out what any of these does. What a thread no longer does it does not hand over either."""
    feeding = _together([change.feeding for change in changes])
    handed_over = _together([change.handed_over for change in changes])
    return HostChange(feeding, _together([change.launching for change in changes]), handed_over.without(feeding))


def _together(layers: Sequence[Layer]) -> Layer:
    if not layers:
        return empty()
    return union(np.concatenate([one.starts for one in layers]), np.concatenate([one.ends for one in layers]))
