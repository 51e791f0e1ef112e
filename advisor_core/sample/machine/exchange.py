"""Transfers in which members of a group read from each other: gathering, scattering, all-to-all, and transfers between
two ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Literal

from ..timeline import PlaneTask, PlaneTaskKind
from .links import FLAG_NS, LOCAL_BYTES_PER_S, RECORD_NS, TASK_GAP_NS, WAIT_NS, Link, SlowPair, slowdown

Pair = tuple[int, int]
"""A member that reads, and the one that it reads from."""


@dataclass(frozen=True, slots=True)
class ExchangePlan:
    """Size of the transfer of every pair, bytes, and its duration, nanoseconds; a pair that moves nothing is missing.

    ``size``: members of the group; only those who take part in the operation arrive. ``kind``: a copy, or a reduction
    of what is read. ``local_bytes``: what a rank moves within its own memory.
    """

    size: int
    kind: Literal["Memcpy", "Reduce_Inline"]
    nbytes: Mapping[Pair, int]
    ns: Mapping[Pair, int]
    local_bytes: Mapping[int, int]

    @classmethod
    def of(
        cls,
        size: int,
        kind: Literal["Memcpy", "Reduce_Inline"],
        nbytes: Mapping[Pair, int],
        link: Link,
        random: Random,
        slow_pairs: tuple[SlowPair, ...] = (),
    ) -> ExchangePlan:
        """The plan over a full mesh: every pair has a link of its own, in both directions."""
        between = {pair: count for pair, count in nbytes.items() if count > 0 and pair[0] != pair[1]}
        ns = {
            pair: round(link.transfer_ns(count, random) * slowdown(slow_pairs, *pair))
            for pair, count in between.items()
        }
        local = {reader: count for (reader, source), count in nbytes.items() if count > 0 and reader == source}
        return cls(size, kind, between, ns, local)

    def tasks(self, rank: int, arrivals: Mapping[int, int]) -> list[PlaneTask]:
        """The tasks of one member; ``arrivals``: when each of those who take part arrived.

        Nothing moves before all have arrived. A member is done when it has read what it wants and those who read from
        it have told it that they are done, too.
        """
        tasks: list[PlaneTask] = []

        def add(kind: PlaneTaskKind, plane: int, begin: int, duration: int, peer: int | None, nbytes: int) -> int:
            tasks.append(PlaneTask(kind, plane, begin, begin + duration, peer, nbytes, len(tasks)))
            return begin + duration + TASK_GAP_NS

        start = arrivals[rank]
        moves = _told(max(arrivals.values())) + TASK_GAP_NS
        clock = add("Reduce_Inline", 0, start, FLAG_NS, None, 4)
        if local := self.local_bytes.get(rank, 0):
            add("Memcpy", 0, clock, max(2_000, round(1e9 * local / LOCAL_BYTES_PER_S)), rank, local)
        end = moves
        for peer in sorted(arrivals, key=lambda other: (other - rank) % self.size):
            if peer == rank:
                continue
            plane = (peer - rank) % self.size
            waiting = add("Notify_Record", plane, start + FLAG_NS + TASK_GAP_NS, RECORD_NS, peer, 0)
            met = max(waiting + WAIT_NS, _told(arrivals[peer]))
            clock = max(add("Notify_Wait", plane, waiting, met - waiting, peer, 0), moves)
            if (rank, peer) in self.nbytes:
                clock = add(self.kind, plane, clock, self.ns[rank, peer], peer, self.nbytes[rank, peer])
            clock = add("Notify_Record", plane, clock, RECORD_NS, peer, 0)
            released = max(clock + WAIT_NS, moves + self.ns.get((peer, rank), 0) + 2 * TASK_GAP_NS + RECORD_NS)
            end = max(end, add("Notify_Wait", plane, clock, released - clock, peer, 0))
        add("Reduce_Inline", 0, end, FLAG_NS, None, 4)
        return tasks

    def end(self, rank: int, arrivals: Mapping[int, int]) -> int:
        """The end of the last of these tasks."""
        return max(task.end for task in self.tasks(rank, arrivals))


def _told(arrived: int) -> int:
    """The moment when a member's word has reached the others."""
    return arrived + FLAG_NS + 2 * TASK_GAP_NS + RECORD_NS + WAIT_NS
