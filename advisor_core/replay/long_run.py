"""The time of a recording that is replayed: once as it stands, or as the repeating part of a long run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor_core.replay.graph import Graph, Ints
from advisor_core.replay.sweep import SideBySide

_TURNS = 8
"""Turns that are replayed where they do not settle (a lead that grows and shrinks); the later half counts."""


@dataclass(frozen=True)
class Lasting:
    """``ns``: how long the recording takes; ``ended``: when each node ends in the last turn that was replayed;
    ``since`` and ``until``: when that turn began and ended, in the same time."""

    ns: int
    ended: Ints
    since: int
    until: int


def once(graphs: Sequence[Graph], free: Ints, counted: Ints, begun: int) -> list[Lasting]:
    """Of each of ``graphs``, which differ in nothing but their times and are as many as one pass takes
    (`advisor_core.replay.sweep.passes`), from ``begun`` to the last end of the nodes ``counted``. ``free``: when each
    chain can begin."""
    found = []
    for ended in SideBySide(graphs).ends([free] * len(graphs)):
        until = int(ended[counted].max())
        found.append(Lasting(until - begun, ended, begun, until))
    return found


def repeated(graphs: Sequence[Graph], free: Ints, counted: Ints, between: Sequence[Ints]) -> list[Lasting]:
    """A turn of a long run of each of ``graphs`` (as of `once`): the recording over and over, each turn beginning where
    every chain ended in the turn before it, ``between`` ns of the chain later, until two turns take equally long and no
    chain takes longer for its own: a host that needs longer than the device uses up its lead in any number of turns,
    and then the turns take as long as it does. ``counted``: the nodes whose last end is the end of a turn."""
    side_by_side = SideBySide(graphs)
    recorded = side_by_side.ends([free] * len(graphs))
    runs = [
        _LongRun(graph, counted, pauses, ended) for graph, pauses, ended in zip(graphs, between, recorded, strict=True)
    ]
    while turning := [number for number, run in enumerate(runs) if run.turning]:
        begins = {number: runs[number].begins() for number in turning}
        new = [number for number in turning if not runs[number].again(begins[number])]
        swept = side_by_side.ends([begins[number] for number in new], new)
        for number, ended in zip(new, swept, strict=True):
            runs[number].turn(begins[number], ended)
        for number in turning:
            runs[number].use_up_lead()
    return [run.lasting() for run in runs]


class _LongRun:
    """The turns of one graph so far. ``ended``: when each node ends in the last of them."""

    def __init__(self, graph: Graph, counted: Ints, between: Ints, ended: Ints) -> None:
        self.graph, self._counted, self._between, self._ended = graph, counted, between, ended
        self._begun: Ints | None = None
        self._reached = int(ended[counted].max())
        self._lasts: list[int] = []
        self._later: Ints | None = None

    @property
    def turning(self) -> bool:
        return not self._settled and len(self._lasts) < _TURNS

    @property
    def _settled(self) -> bool:
        return len(self._lasts) > 1 and self._lasts[-1] == self._lasts[-2]

    def begins(self) -> Ints:
        """The begin of the next turn of each chain: when all of its nodes are done, and some time later."""
        latest = np.zeros(len(self._between), dtype=np.int64)
        np.maximum.at(latest, self.graph.chain, self._ended)
        later = 0 if self._later is None else self._later
        return latest + self._between + later

    def use_up_lead(self) -> None:
        """Once, where two turns took equally long and a chain longer than they for its own: it begins the next turn
        when all else has ended, a whole turn later, and turns are counted from there on."""
        if not self._settled or self._begun is None or self._later is not None:
            return
        begins = self.begins()
        behind = begins - self._begun > self._lasts[-1]
        if behind.any():
            self._later = np.where(behind, np.maximum(0, self._reached - begins) + self._lasts[-1], 0)
            self._lasts.clear()

    def again(self, begun: Ints) -> bool:
        """Whether the next turn is the last one once more, as it is where every chain begins equally long after it
        began with that one. Takes it, then."""
        if self._begun is None or not len(begun):
            return False
        later = begun - self._begun
        if (later != later[0]).any():
            return False
        self.turn(begun, self._ended + later[0])
        return True

    def turn(self, begun: Ints, ended: Ints) -> None:
        self._begun, self._ended = begun, ended
        if self._later is not None:
            self._later = np.zeros_like(self._later)
        self._lasts.append(int(ended[self._counted].max()) - self._reached)
        self._reached += self._lasts[-1]

    def lasting(self) -> Lasting:
        later = self._lasts[-1:] if self._settled else self._lasts[_TURNS // 2 :]
        until = self._reached
        return Lasting(sum(later) // len(later), self._ended, until - self._lasts[-1], until)
