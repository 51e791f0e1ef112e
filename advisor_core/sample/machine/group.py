"""Communication groups: where their members meet for an operation and how they then move the data."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from random import Random
from typing import Literal, Protocol

from ..layout import CommunicationGroup
from ..program import Communicate
from ..timeline import PlaneTask
from .des import Signal
from .exchange import ExchangePlan, Pair
from .links import SIO, AllReducePlan, Link, SlowPair


class Plan(Protocol):
    """The tasks of the members of a group in one operation."""

    def tasks(self, rank: int, arrivals: Mapping[int, int]) -> list[PlaneTask]:
        """The tasks of one member; ``arrivals``: when each of them arrived. Ranks are places in the group."""

    def end(self, rank: int, arrivals: Mapping[int, int]) -> int:
        """The end of the last of these tasks."""


class Rendezvous:
    """The meeting for one operation: it starts when the last member is there. Members are places in the group."""

    def __init__(self, members: int) -> None:
        self.met = Signal()
        self.arrivals: dict[int, int] = {}
        self.requests: dict[int, Communicate] = {}
        self.plan: Plan | None = None
        self._members = members

    def arrive(self, member: int, request: Communicate, now: int) -> bool:
        """A member arrives; whether it was the last one."""
        self.arrivals[member] = now
        self.requests[member] = request
        return len(self.arrivals) == self._members


class Groups:
    """The groups of a job: their links, and their meetings and plans."""

    def __init__(self, link: Link, seed: str, slow_pairs: Sequence[SlowPair] = ()) -> None:
        self._link = link
        self._seed = seed
        self._slow_pairs = tuple(slow_pairs)
        self._random: dict[tuple[str, tuple[int, ...]], Random] = {}
        self._meetings: dict[Hashable, Rendezvous] = {}

    def meeting(self, request: Communicate, member: int) -> Rendezvous:
        """The meeting for an operation, the same object for all who take part in it."""
        group = request.group
        occasion: Hashable = request.index
        if request.peer is not None:
            occasion = (frozenset((member, request.peer)), request.exchange)
        place = (group.key, group.ranks, occasion)
        if place not in self._meetings:
            self._meetings[place] = Rendezvous(len(group.ranks) if request.peer is None else 2)
        return self._meetings[place]

    def plan(self, meeting: Rendezvous, request: Communicate) -> Plan:
        """The movement of the data, the same for all members that met."""
        if meeting.plan is None:
            meeting.plan = self._made(meeting, request)
        return meeting.plan

    def _made(self, meeting: Rendezvous, request: Communicate) -> Plan:
        group, nbytes = request.group, request.data.nbytes
        size = len(group.ranks)
        link = SIO if group.transport == "SIO" else self._link
        random = self._random_of(group)
        slow = tuple(
            (group.local(one), group.local(other), factor)
            for one, other, factor in self._slow_pairs
            if {one, other} <= set(group.ranks)
        )
        if request.operation == "allReduce":
            return AllReducePlan.of(nbytes, size, link, random, slow)
        reads: dict[Pair, int] = {}
        if request.operation in {"allGather", "reduceScatter"}:
            reads = {(reader, source): nbytes for reader in range(size) for source in range(size)}
        else:
            for source, part in sorted(meeting.requests.items()):
                reads |= {(reader, source): count for reader, count in part.sends}
        kind: Literal["Memcpy", "Reduce_Inline"] = "Reduce_Inline" if request.operation == "reduceScatter" else "Memcpy"
        return ExchangePlan.of(size, kind, reads, link, random, slow)

    def _random_of(self, group: CommunicationGroup) -> Random:
        """Groups of different members have links of their own."""
        place = (group.key, group.ranks)
        if place not in self._random:
            named = "" if group.name == "default_group" else f"/{group.name}/{group.ranks}"
            self._random[place] = Random(f"{self._seed}/link{named}")
        return self._random[place]
