"""A communication group: where its ranks meet for a collective and how they then move the data."""

from __future__ import annotations

from random import Random

from .des import Signal
from .links import AllReducePlan, Link


class Rendezvous:
    """The meeting for one collective: it starts when the last rank is there."""

    def __init__(self, ranks: int) -> None:
        self.met = Signal()
        self.ready = 0
        self._missing = ranks

    def arrive(self, now: int) -> bool:
        """A rank arrives; whether it was the last one."""
        self._missing -= 1
        self.ready = now
        return self._missing == 0


class Group:
    """The group of all ranks: its links, and its meetings and plans by index of the collective."""

    def __init__(self, ranks: int, link: Link, seed: str) -> None:
        self.ranks = ranks
        self._link = link
        self._random = Random(f"{seed}/link")
        self._meetings: dict[int, Rendezvous] = {}
        self._plans: dict[int, AllReducePlan] = {}

    def meeting(self, index: int) -> Rendezvous:
        """The meeting for a collective, the same object for every rank."""
        return self._meetings.setdefault(index, Rendezvous(self.ranks))

    def plan(self, index: int, nbytes: int) -> AllReducePlan:
        """The phases of a collective, the same for every rank."""
        if index not in self._plans:
            self._plans[index] = AllReducePlan.of(nbytes, self.ranks, self._link, self._random)
        return self._plans[index]
