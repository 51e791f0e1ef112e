"""The order in which a replay goes through the nodes of a graph: level by level, and in a level chain by chain."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"


class Level(NamedTuple):
    """A level. ``low`` and ``high``: its places. ``runs``: some node of it follows another one on its chain.

    ``since`` and ``until``: the edges into it; ``sources``: where they come from. ``targets``: the places that they
    lead to, once each, as a slice where these follow one another. ``first``: the first edge of each of them, ``None``
    where each has one edge.
    """

    low: int
    high: int
    runs: bool
    since: int
    until: int
    sources: Ints
    targets: slice | Ints
    first: Ints | None


@dataclass(frozen=True)
class Layout:
    """The nodes in order of level and chain. ``nodes``: the node at each place; ``block``: the number of each place's
    run of a chain within its level, counted within the level; ``firsts``: the first nodes of the chains, and
    ``first_places``, where they are.

    ``sources`` and ``into`` (places): the edges in order of their target. A chain that goes on in a later level does so
    by an edge, too. ``times``: the place of the time of each among the lags of the edges of the graph followed by the
    pauses of its nodes.
    """

    nodes: Ints
    block: Ints
    firsts: Ints
    first_places: Ints
    sources: Ints
    into: Ints
    times: Ints
    levels: list[Level]

    @classmethod
    def of(cls, level: Ints, chain: Ints, before: Ints, source: Ints, target: Ints) -> Layout:
        """``level``, ``chain`` and ``before`` (`advisor_core.replay.graph.Graph`): of each node; ``source`` and
        ``target``: of each edge."""
        count = len(chain)
        nodes = np.lexsort((np.arange(count), chain, level))
        place = np.empty(count, dtype=np.int64)
        place[nodes] = np.arange(count)
        level, chain = level[nodes], chain[nodes]
        depth = int(level[-1]) + 1 if count else 0
        begins = np.searchsorted(level, np.arange(depth + 1))
        new_level = np.concatenate([[True], level[1:] != level[:-1]])[:count]
        new_block = new_level | np.concatenate([[True], chain[1:] != chain[:-1]])[:count]
        numbered = np.cumsum(new_block) - 1
        block = numbered - numbered[begins[:-1]][level] if count else numbered
        goes_on = np.flatnonzero(new_block[place] & (before >= 0))
        sources = place[np.concatenate([source, before[goes_on]])]
        targets = place[np.concatenate([target, goes_on])]
        order = np.argsort(targets, kind="stable")
        sources, into = sources[order], targets[order]
        firsts = np.flatnonzero(before < 0)
        return cls(
            nodes=nodes,
            block=block,
            firsts=firsts,
            first_places=place[firsts],
            sources=sources,
            into=into,
            times=np.concatenate([np.arange(len(source)), len(source) + goes_on])[order],
            levels=_levels(begins, block, sources, into),
        )


def _levels(begins: Ints, block: Ints, sources: Ints, into: Ints) -> list[Level]:
    """``begins``: the first place of each level, and the number of places; the others as of `Layout`."""
    entered, first = np.unique(into, return_index=True)
    target_begins = np.searchsorted(entered, begins)
    edge_begins = np.append(first, len(into))[target_begins]
    borders = (begins, target_begins, edge_begins)
    found = []
    for (low, high), (one, other), (since, until) in zip(
        *(itertools.pairwise(border.tolist()) for border in borders), strict=True
    ):
        targets: slice | Ints = entered[one:other]
        if other > one and into[until - 1] - into[since] == other - one - 1:
            targets = slice(int(into[since]), int(into[until - 1]) + 1)
        found.append(
            Level(
                low=low,
                high=high,
                runs=int(block[high - 1]) + 1 < high - low,
                since=since,
                until=until,
                sources=sources[since:until],
                targets=targets,
                first=None if other - one == until - since else first[one:other] - since,
            )
        )
    return found
