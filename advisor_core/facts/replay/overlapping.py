"""Transfers that begin when their data is ready, and run beside the computing that makes the data of the next ones.

The order of the recorded work stays: a transfer that is hidden is one that takes no time where it was recorded. How
much can be hidden follows from what is computed then, with other changes made already: kernels that are fused hide
less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from advisor_core.contracts.cure import Cure
from advisor_core.facts.intervals import Ints
from advisor_core.facts.replay.nodes import FEED, LAUNCH, TASK
from advisor_core.facts.replay.rank_graph import RankGraph
from advisor_core.replay.graph import Graph

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Overlapping(Cure):
    """Transfers behind the computing that makes their data. ``tasks``: rows of the fact ``work``, in order of time;
    ``chain``: the number of the series of each, from 0; ``moves_ns``: for how long each moves data uncovered;
    ``stays_ns``: of each series what cannot be hidden, whatever is computed before. ``made``: rows of ``work`` of the
    kernels that make the data, ``made_chain`` the series of each; ``ready_ns``: of each series the computing during
    which some of its data is there already, as recorded. The thread that launches the transfers does so while the
    others launch kernels, as far as it has nothing else to do then.

    ``lead_ns``: of each transfer how much is computed behind the moment when its data is ready, as recorded; infinite
    where that is not known: it is then taken to be ready when those before it have moved. Transfers follow each other,
    so what is left of them when the computing ends is the most that follows the data of any of them, less its lead."""

    tasks: Ints
    chain: Ints
    moves_ns: Floats
    stays_ns: Floats
    made: Ints
    made_chain: Ints
    ready_ns: Floats
    lead_ns: Floats | None = None

    def apply(self, recorded: RankGraph, graph: Graph) -> Graph:
        """The graph in which what can be hidden takes no time, the first transfers of each series first: the data of
        the last is ready last. ``graph``: that of ``recorded``, with other changes made already."""
        nodes, count, duration = recorded.nodes, len(self.ready_ns), graph.duration.copy()
        there = nodes.at(TASK, self.tasks) >= 0
        tasks, chain = self.tasks[there], self.chain[there]
        own, launch = nodes.at(TASK, tasks), nodes.at(LAUNCH, tasks)
        moves = self.moves_ns[there] * duration[own] / np.maximum(recorded.graph.duration[own], 1)
        last = np.zeros(count)
        last[chain[moves > 0]] = moves[moves > 0]  # the last one that still moves something is left there
        total, was = np.bincount(chain, moves, count), np.bincount(chain, self.moves_ns[there], count)
        stays = np.maximum(self.stays_ns * np.minimum(total / np.maximum(was, 1), 1), last)
        before, then = (self._made(recorded, of, TASK) for of in (recorded.graph, graph))
        shrunk = then / np.maximum(before, 1)
        hidden: Floats = np.clip(total - stays, 0, self.ready_ns * shrunk)
        if self.lead_ns is not None:
            leads = self.lead_ns[there]
            known = np.isfinite(leads)  # of an infinite lead no part is nothing, however little is computed
            leads[known] *= shrunk[chain[known]]
            hidden = np.minimum(hidden, total - outlasting(moves, chain, leads, count))
        duration[own] = np.maximum(0, duration[own] - np.rint(_from_the_first(moves, chain, hidden)).astype(np.int64))

        free = np.maximum(self._made(recorded, graph, FEED), then) - self._made(recorded, graph, LAUNCH)
        known = (launch >= 0) & (hidden > 0)[chain]
        takes, launch, chain = duration[launch[known]].astype(np.float64), launch[known], chain[known]
        duration[launch] -= np.rint(_from_the_first(takes, chain, np.maximum(free, 0))).astype(np.int64)
        return graph.changed(duration=duration)

    def _made(self, recorded: RankGraph, graph: Graph, kind: int) -> Floats:
        """Of each series, the time of the nodes of a kind that belong to the kernels that make its data, ns."""
        found = recorded.nodes.at(kind, self.made)
        known = found >= 0
        took = np.bincount(self.made_chain[known], graph.duration[found[known]], len(self.ready_ns))
        return took.astype(np.float64)


def outlasting(moves_ns: Floats, chain: Ints, leads_ns: Floats, chains: int) -> Floats:
    """Of each of so many series of transfers what is left of it when the computing ends, ns, if each transfer begins
    with its data: the most that follows the data of any of them, less its lead; nothing where no lead is known.
    ``chain``: the series of each transfer, ascending; ``moves_ns``: how long it moves data; ``leads_ns``: as
    ``lead_ns`` of `Overlapping`."""
    left, known = np.zeros(chains), np.isfinite(leads_ns)
    np.maximum.at(left, chain[known], _and_following(moves_ns, chain)[known] - leads_ns[known])
    return left


def _and_following(parts: Floats, chain: Ints) -> Floats:
    """Of each part the sum of it and of those behind it in its chain. ``chain``: of each part, ascending."""
    following = np.cumsum(parts[::-1])[::-1]
    behind = np.append(following, 0.0)[np.searchsorted(chain, chain, side="right")]
    found: Floats = following - behind
    return found


def _from_the_first(parts: Floats, chain: Ints, amount: Floats) -> Floats:
    """The amount that is taken of each part, if ``amount`` is taken of each chain from its first part on. ``chain``: of
    each part, ascending."""
    if not len(parts):
        return parts
    until = np.cumsum(parts)
    begins = np.concatenate([[True], chain[1:] != chain[:-1]])
    before = until - parts
    before = before - before[begins][np.cumsum(begins) - 1]
    taken: Floats = np.clip(amount[chain] - before, 0, parts)
    return taken
