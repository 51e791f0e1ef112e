"""Links between devices and the way collectives use them.

Bandwidth against packet size follows measured all-reduces on HCCS: 14 GB/s at 1.2 MB, 15 at 2 MB,
17.5 at 19 MB, up to 20.9 for large ones (docs/sources.md#links).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from ..described import FROM_FILES, Factor, Natural
from ..timeline import PlaneTask, PlaneTaskKind

FLAG_NS = 640
"""A four-byte reduction that marks begin and end of a collective."""
RECORD_NS = 700
WAIT_NS = 20
TASK_GAP_NS = 900
LOCAL_BYTES_PER_S = 500e9


@dataclass(frozen=True, slots=True)
class Link:
    """A point-to-point link: bandwidth for large packets and the packet size that reaches half of it."""

    __pydantic_config__ = FROM_FILES
    bytes_per_s: Factor = 20.5e9
    half_size_bytes: Factor = 0.5e6
    latency_ns: Natural = 9_000

    def transfer_ns(self, nbytes: int, random: Random) -> int:
        """Time of one packet, nanoseconds."""
        bandwidth = self.bytes_per_s * nbytes / (nbytes + self.half_size_bytes)
        return self.latency_ns + round(1e9 * nbytes / bandwidth * (1 + 0.015 * abs(random.gauss(0, 1))))


HCCS = Link()
"""The links between the devices of one server."""
SIO = Link(bytes_per_s=164e9)
"""Between the two dies of a module: 224 GB/s (docs/sources.md#links), of which transfers reach the same share as on
HCCS."""

SlowPair = tuple[int, int, float]
"""Two ranks, and by what factor the link between them is slower than the others."""


def slowdown(slow_pairs: tuple[SlowPair, ...], rank: int, peer: int) -> float:
    """By what factor the link between two ranks is slower than the others."""
    pair = {rank, peer}
    return max((factor for one, other, factor in slow_pairs if {one, other} == pair), default=1.0)


@dataclass(frozen=True, slots=True)
class AllReducePlan:
    """Durations of the phases of an all-reduce over a full mesh, equal on all ranks but for slow pairs."""

    share_bytes: int
    reduce_ns: int
    gather_ns: int
    local_ns: int
    slow_pairs: tuple[SlowPair, ...] = ()

    @classmethod
    def of(
        cls, nbytes: int, ranks: int, link: Link, random: Random, slow_pairs: tuple[SlowPair, ...] = ()
    ) -> AllReducePlan:
        """Every rank reduces one share of the data and then gathers the other ranks' shares."""
        share = -(-nbytes // ranks)
        local = max(2_000, round(1e9 * share / LOCAL_BYTES_PER_S))
        return cls(share, link.transfer_ns(share, random), link.transfer_ns(share, random), local, slow_pairs)

    def tasks(self, rank: int, arrivals: Mapping[int, int]) -> list[PlaneTask]:
        """The tasks of one rank; ``arrivals``: when each rank arrived.

        Plane 0 is the own device; planes 1.. lead to the peers. Data moves once all have arrived. Waiting for a late
        rank shows as the first ``Notify_Wait`` on the plane to it; waiting for a share that a slow link still holds up
        as the second one.
        """
        tasks: list[PlaneTask] = []

        def add(kind: PlaneTaskKind, plane: int, begin: int, duration: int, peer: int | None, nbytes: int) -> int:
            tasks.append(PlaneTask(kind, plane, begin, begin + duration, peer, nbytes, len(tasks)))
            return begin + duration + TASK_GAP_NS

        def transfer(kind: PlaneTaskKind, plane: int, begin: int, duration: int, peer: int) -> int:
            return add(kind, plane, begin, round(duration * self._factor(rank, peer)), peer, self.share_bytes)

        ranks, start, ready = len(arrivals), arrivals[rank], max(arrivals.values())
        peers = [(rank + distance) % ranks for distance in range(1, ranks)]
        add("Reduce_Inline", 0, start, FLAG_NS, None, 4)
        add("Memcpy", 0, start + FLAG_NS + TASK_GAP_NS, self.local_ns, rank, self.share_bytes)
        for plane, peer in enumerate(peers, 1):
            waiting = add("Notify_Record", plane, start + FLAG_NS + TASK_GAP_NS, RECORD_NS, peer, 0)
            met = max(waiting + WAIT_NS, self._met(arrivals[peer]))
            clock = max(add("Notify_Wait", plane, waiting, met - waiting, peer, 0), self._met(ready) + TASK_GAP_NS)
            clock = transfer("Reduce_Inline", plane, clock, self.reduce_ns, peer)
            clock = add("Notify_Record", plane, clock, RECORD_NS, peer, 0)
            shared = max(clock + WAIT_NS, self._reduced(peer, ranks, ready))
            clock = add("Notify_Wait", plane, clock, shared - clock, peer, 0)
            clock = transfer("Memcpy", plane, clock, self.gather_ns, peer)
            clock = add("Notify_Record", plane, clock, RECORD_NS, peer, 0)
            # A rank is done when its peers are: whoever is at the end of a slow link keeps the others waiting.
            if (late := self._done(peer, ranks, ready) - clock) > 0:
                add("Notify_Wait", plane, clock, late, peer, 0)
        add("Reduce_Inline", 0, self._gathered(ranks, ready), FLAG_NS, None, 4)
        return tasks

    def end(self, rank: int, arrivals: Mapping[int, int]) -> int:
        """The end of the last of these tasks."""
        copied = arrivals[rank] + FLAG_NS + TASK_GAP_NS + self.local_ns
        return max(self._gathered(len(arrivals), max(arrivals.values())) + FLAG_NS, copied)

    def _factor(self, rank: int, peer: int) -> float:
        return slowdown(self.slow_pairs, rank, peer)

    def _worst(self, rank: int, ranks: int) -> float:
        return max(self._factor(rank, peer) for peer in range(ranks) if peer != rank)

    @staticmethod
    def _met(ready: int) -> int:
        """The moment when the last rank's word has reached the others."""
        return ready + FLAG_NS + 2 * TASK_GAP_NS + RECORD_NS + WAIT_NS

    def _reduced(self, rank: int, ranks: int, ready: int) -> int:
        """The moment when a rank has told the others that its share is complete."""
        if not self.slow_pairs:
            return 0
        reduced = self._met(ready) + TASK_GAP_NS + round(self.reduce_ns * self._worst(rank, ranks))
        return reduced + TASK_GAP_NS + RECORD_NS + TASK_GAP_NS + WAIT_NS

    def _done(self, rank: int, ranks: int, ready: int) -> int:
        """The moment when a rank with a slow link has everything; 0 for one without."""
        return self._gathered(ranks, ready) if self._worst(rank, ranks) > 1.0 else 0

    def _gathered(self, ranks: int, ready: int) -> int:
        """The moment when the last rank has everything: the same moment on all of them."""
        worst = max((factor for *_, factor in self.slow_pairs), default=1.0)
        reduced = self._met(ready) + TASK_GAP_NS + round(self.reduce_ns * worst) + TASK_GAP_NS + RECORD_NS
        gathered = reduced + 2 * TASK_GAP_NS + WAIT_NS + round(self.gather_ns * worst)
        return gathered + 2 * TASK_GAP_NS + RECORD_NS
