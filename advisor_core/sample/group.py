"""A communication group: where its ranks meet for a collective and how they then move the data."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from .des import Signal
from .links import AllReducePlan, Link, SlowPair


class Rendezvous:
    """The meeting for one collective: it starts when the last rank is there. ``arrivals``: by rank."""

    def __init__(self, ranks: int) -> None:
        self.met = Signal()
        self.arrivals: dict[int, int] = {}
        self._ranks = ranks

    def arrive(self, rank: int, now: int) -> bool:
        """A rank arrives; whether it was the last one."""
        self.arrivals[rank] = now
        return len(self.arrivals) == self._ranks


class Group:
    """The group of all ranks: its links, and its meetings and plans by index of the collective."""

    def __init__(self, ranks: int, link: Link, seed: str, slow_pairs: Sequence[SlowPair] = ()) -> None:
        self.ranks = ranks
        self._link = link
        self._slow_pairs = tuple(slow_pairs)
        self._random = Random(f"{seed}/link")
        self._meetings: dict[int, Rendezvous] = {}
        self._plans: dict[int, AllReducePlan] = {}

    def meeting(self, index: int) -> Rendezvous:
        """The meeting for a collective, the same object for every rank."""
        return self._meetings.setdefault(index, Rendezvous(self.ranks))

    def plan(self, index: int, nbytes: int) -> AllReducePlan:
        """The phases of a collective, the same for every rank."""
        if index not in self._plans:
            self._plans[index] = AllReducePlan.of(nbytes, self.ranks, self._link, self._random, self._slow_pairs)
        return self._plans[index]
