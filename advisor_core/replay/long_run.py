"""What a recording would take when it is replayed: once as it stands, or as the repeating part of a long run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor_core.replay.graph import Graph, Ints
from advisor_core.replay.sweep import ends

_TURNS = 8
"""Where turns do not settle (a lead that grows and shrinks) this many are replayed, and the later half counts."""


@dataclass(frozen=True)
class Lasting:
    """``ns``: how long the recording takes; ``ended``: when each node ends in the last turn that was replayed;
    ``since`` and ``until``: when that turn began and ended, in the same time."""

    ns: int
    ended: Ints
    since: int
    until: int


def once(graph: Graph, free: Ints, counted: Ints, begun: int) -> Lasting:
    """From ``begun`` to the last end of the nodes ``counted``. ``free``: when each chain can begin."""
    ended = ends(graph, free)
    until = int(ended[counted].max())
    return Lasting(until - begun, ended, begun, until)


def repeated(graph: Graph, free: Ints, counted: Ints, between: Ints) -> Lasting:
    """A turn of a long run: the recording over and over, each turn beginning where every chain ended in the turn before
    it, ``between`` ns of the chain later, until two turns take equally long. ``counted``: the nodes whose last end is
    the end of a turn."""
    ended = ends(graph, free)
    lasts: list[int] = []
    reached = int(ended[counted].max())
    for _ in range(_TURNS):
        ended = ends(graph, _latest(graph, ended) + between)
        lasts.append(int(ended[counted].max()) - reached)
        reached += lasts[-1]
        if len(lasts) > 1 and lasts[-1] == lasts[-2]:
            break
    settled = lasts[-1] == lasts[-2]
    later = lasts[-1:] if settled else lasts[_TURNS // 2 :]
    return Lasting(sum(later) // len(later), ended, reached - lasts[-1], reached)


def _latest(graph: Graph, ended: Ints) -> Ints:
    """When each chain is done with all of its nodes."""
    latest = np.zeros(int(graph.chain.max()) + 1, dtype=np.int64)
    np.maximum.at(latest, graph.chain, ended)
    return latest
