"""A graph without its times, and all that is found of that once for all replays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from advisor_core.replay.layout import Layout
from advisor_core.replay.tracks import chains_of, levels, turning

if TYPE_CHECKING:
    from advisor_core.replay.graph import Ints


WIDE = 256
"""Levels with more nodes than this in the middle cost what their nodes cost, however many they are: a level costs about
as much as so many nodes (10 us and 40 ns)."""

QUICK = 0.75
"""Another order pays where it has at most this share of the levels."""


def before_on_chain(chain: Ints) -> Ints:
    """The number of the node before each on its chain, -1 for the first of a chain. ``chain``: of each node, in
    order."""
    order = np.argsort(chain, kind="stable")
    before = np.full(len(chain), -1, dtype=np.int64)
    same = chain[order[1:]] == chain[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return before


@dataclass(frozen=True)
class Structure:
    """``chain``: of each node; ``source`` and ``target``: of each edge (`advisor_core.replay.graph.Graph`)."""

    chain: Ints
    source: Ints
    target: Ints

    def __len__(self) -> int:
        return len(self.chain)

    @cached_property
    def before(self) -> Ints:
        """The node before each on its chain, -1 for the first of a chain."""
        return before_on_chain(self.chain)

    @cached_property
    def levels(self) -> Ints:
        """The number of times that the longest way to each node changes its chain."""
        return levels(self.before, self.source, self.target)

    @cached_property
    def layout(self) -> Layout:
        """The order in which a replay goes through the nodes, chain by chain."""
        return Layout.of(chains_of(self), self.before)

    @cached_property
    def quick_layout(self) -> Layout | None:
        """An order with fewer levels, which serves most graphs of this structure, not all; ``None`` where it would gain
        little."""
        if len(self) > WIDE * len(self.layout.levels):
            return None
        quick = Layout.of(turning(self), self.before)
        return quick if len(quick.levels) <= QUICK * len(self.layout.levels) else None
