"""The order in which a replay goes through the nodes of a graph: level by level, and in a level track by track."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from advisor_core.replay.tracks import Tracks

if TYPE_CHECKING:
    from advisor_core.replay.graph import Ints


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
    """The nodes in order of level and track. ``tracks``: the tracks; ``nodes``: the node at each place; ``block``: the
    number of each place's run of a track within its level, counted within the level; ``begin``: the first place of its
    level. ``times``: the place of what passes between it and the one before on the track, as of
    `advisor_core.replay.tracks.Tracks`. ``firsts``: the first nodes of the chains, and ``first_places``, where they
    are. ``turn_places``: where tracks go on to another chain.

    ``sources`` and ``into`` (places), ``edge_times`` (as ``times``): the edges in order of their target. A track that
    goes on in a later level does so by an edge, too.
    """

    tracks: Tracks
    nodes: Ints
    block: Ints
    begin: Ints
    times: Ints
    firsts: Ints
    first_places: Ints
    turn_places: Ints
    sources: Ints
    into: Ints
    edge_times: Ints
    levels: list[Level]

    @classmethod
    def of(cls, tracks: Tracks, before: Ints) -> Layout:
        """``before``: the node before each on its chain, -1 for the first of a chain."""
        count, link = len(before), tracks.link
        nodes = np.lexsort((np.arange(count), tracks.number, tracks.levels))
        place = np.empty(count, dtype=np.int64)
        place[nodes] = np.arange(count)
        level, track = tracks.levels[nodes], tracks.number[nodes]
        depth = int(level[-1]) + 1 if count else 0
        begins = np.searchsorted(level, np.arange(depth + 1))
        new_level = np.concatenate([[True], level[1:] != level[:-1]])[:count]
        new_block = new_level | np.concatenate([[True], track[1:] != track[:-1]])[:count]
        numbered = np.cumsum(new_block) - 1
        begin = begins[:-1][level]
        goes_on = np.flatnonzero(new_block[place] & (link >= 0))
        sources = place[np.concatenate([tracks.source, link[goes_on]])]
        targets = place[np.concatenate([tracks.target, goes_on])]
        order = np.argsort(targets, kind="stable")
        sources, into = sources[order], targets[order]
        block, firsts = numbered - numbered[begin], np.flatnonzero(before < 0)
        return cls(
            tracks=tracks,
            nodes=nodes,
            block=block,
            begin=begin,
            times=tracks.time[nodes],
            firsts=firsts,
            first_places=place[firsts],
            turn_places=np.sort(place[(link >= 0) & (link != before) & ~new_block[place]]),
            sources=sources,
            into=into,
            edge_times=np.concatenate([tracks.edge_time, tracks.time[goes_on]])[order],
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
