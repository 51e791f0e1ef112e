"""Links between devices and the way an all-reduce uses them.

Bandwidth against packet size follows measured all-reduces on HCCS: 14 GB/s at 1.2 MB, 15 at 2 MB,
17.5 at 19 MB, up to 20.9 for large ones (facts A6 and the profile they come from).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from .timeline import PlaneTask, PlaneTaskKind

FLAG_NS = 640
"""A four-byte reduction that marks begin and end of a collective."""
RECORD_NS = 700
WAIT_NS = 20
TASK_GAP_NS = 900
LOCAL_BYTES_PER_S = 500e9


@dataclass(frozen=True, slots=True)
class Link:
    """A point-to-point link: bandwidth for large packets and the packet size that reaches half of it."""

    bytes_per_s: float = 20.5e9
    half_size_bytes: float = 0.5e6
    latency_ns: int = 9_000

    def transfer_ns(self, nbytes: int, random: Random) -> int:
        """Time of one packet, nanoseconds."""
        bandwidth = self.bytes_per_s * nbytes / (nbytes + self.half_size_bytes)
        return self.latency_ns + round(1e9 * nbytes / bandwidth * (1 + 0.015 * abs(random.gauss(0, 1))))


@dataclass(frozen=True, slots=True)
class AllReducePlan:
    """Durations of the phases of an all-reduce over a full mesh, equal on all ranks."""

    share_bytes: int
    reduce_ns: int
    gather_ns: int
    local_ns: int

    @classmethod
    def of(cls, nbytes: int, ranks: int, link: Link, random: Random) -> AllReducePlan:
        """Every rank reduces one share of the data and then gathers the other ranks' shares."""
        share = -(-nbytes // ranks)
        local = max(2_000, round(1e9 * share / LOCAL_BYTES_PER_S))
        return cls(share, link.transfer_ns(share, random), link.transfer_ns(share, random), local)

    @property
    def duration_ns(self) -> int:
        """From the arrival of the last rank to the end."""
        return (
            FLAG_NS
            + self.reduce_ns
            + self.gather_ns
            + self.local_ns
            + FLAG_NS
            + 4 * RECORD_NS
            + 2 * WAIT_NS
            + 8 * TASK_GAP_NS
        )

    def tasks(self, rank: int, ranks: int, start: int, ready: int) -> list[PlaneTask]:
        """The tasks of one rank that arrived at ``start`` while the last one arrived at ``ready``.

        Plane 0 is the own device; planes 1.. lead to the peers. Waiting for a late rank shows as
        the first ``Notify_Wait`` on the plane to it.
        """
        tasks: list[PlaneTask] = []

        def add(kind: PlaneTaskKind, plane: int, begin: int, duration: int, peer: int | None, nbytes: int) -> int:
            tasks.append(PlaneTask(kind, plane, begin, begin + duration, peer, nbytes, len(tasks)))
            return begin + duration + TASK_GAP_NS

        peers = [(rank + distance) % ranks for distance in range(1, ranks)]
        add("Reduce_Inline", 0, start, FLAG_NS, None, 4)
        add("Memcpy", 0, start + FLAG_NS + TASK_GAP_NS, self.local_ns, rank, self.share_bytes)
        after = ready
        for plane, peer in enumerate(peers, 1):
            waiting = add("Notify_Record", plane, start + FLAG_NS + TASK_GAP_NS, RECORD_NS, peer, 0)
            met = max(waiting + WAIT_NS, ready + FLAG_NS + 2 * TASK_GAP_NS + RECORD_NS + WAIT_NS)
            clock = add("Notify_Wait", plane, waiting, met - waiting, peer, 0)
            clock = add("Reduce_Inline", plane, clock, self.reduce_ns, peer, self.share_bytes)
            clock = add("Notify_Record", plane, clock, RECORD_NS, peer, 0)
            clock = add("Notify_Wait", plane, clock, WAIT_NS, peer, 0)
            clock = add("Memcpy", plane, clock, self.gather_ns, peer, self.share_bytes)
            clock = add("Notify_Record", plane, clock, RECORD_NS, peer, 0)
            after = max(after, clock)
        add("Reduce_Inline", 0, after, FLAG_NS, None, 4)
        return tasks
