"""What real machines do and the model of the advisor does not know: all of it is off unless a job asks for it.

With it a prediction meets a machine that is not the one that the predictor has in mind. Sizes are up to the job; those
that are given with a field are assumed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from operator import mul
from random import Random

from ..described import FROM_FILES
from ..kernels import AiCpuWork, Kernel
from .draws import Draws


@dataclass(frozen=True, slots=True)
class Physics:
    """``contention``: by what share a kernel slows while data of its rank moves between devices; each type of kernel
    has a share of its own between these two (0.1 to 0.4). ``wake_up_ns``: the mean time that the thread behind the task
    queue, which had nothing to do, needs until it runs again when something enters the queue (50 us).
    ``kernel_jitter`` and ``host_jitter``: standard deviations of the logarithm of durations, besides those that every
    job has (0.03, 0.3). ``clock_offsets_ns``: how far the clock of each host is off the true time; a host has
    ``ranks_per_host`` ranks."""

    __pydantic_config__ = FROM_FILES
    contention: tuple[float, float] = (0.0, 0.0)
    wake_up_ns: int = 0
    kernel_jitter: float = 0.0
    host_jitter: float = 0.0
    clock_offsets_ns: tuple[int, ...] = ()
    ranks_per_host: int = 8

    def __post_init__(self) -> None:
        least, most = self.contention
        if not 0 <= least <= most:
            raise ValueError("contention is two shares, the smaller one first")
        if self.wake_up_ns < 0 or self.kernel_jitter < 0 or self.host_jitter < 0 or self.ranks_per_host < 1:
            raise ValueError("latencies and jitter are not negative, and a host has a rank")

    def clock_offset_ns(self, rank: int) -> int:
        """How far the clock of a rank's host is off; hosts that are not listed are right."""
        host = rank // self.ranks_per_host
        return self.clock_offsets_ns[host] if host < len(self.clock_offsets_ns) else 0


IDEAL = Physics()


class Disturbance:
    """The physics of one rank. It draws from random numbers of its own: without it a job is what it is."""

    def __init__(self, physics: Physics, draws: Draws, rank: int) -> None:
        self._physics = physics
        self._draws = draws
        self._rank = rank
        self._kernels = draws.log_normal(f"{rank}/kernel jitter", physics.kernel_jitter)
        self._wake_up = Random(f"{draws.key}/{rank}/wake-up")
        self._contention: dict[str, float] = {}

    def of_host(self, actor: str, factors: Iterator[float]) -> Iterator[float]:
        """By what factors what a thread of the host does takes longer than its mean, with jitter on top of these."""
        if not (spread := self._physics.host_jitter):
            return factors
        return map(mul, factors, self._draws.log_normal(f"{self._rank}/{actor} jitter", spread))

    def of_kernel(self) -> float:
        """By what factor a kernel takes longer than it should."""
        return next(self._kernels) if self._physics.kernel_jitter else 1.0

    def wake_up_ns(self) -> int:
        """How long a thread that had nothing to do needs until it runs again."""
        mean = self._physics.wake_up_ns
        return round(self._wake_up.expovariate(1 / mean)) if mean else 0

    def contention(self, kernel: Kernel) -> float:
        """By what factor a kernel is slower while data moves: the same for its type on every rank of the job."""
        least, most = self._physics.contention
        if not most or isinstance(kernel.work, AiCpuWork):
            return 1.0
        if kernel.type not in self._contention:
            drawn = Random(f"{self._draws.machine}/contention/{kernel.type}").uniform(least, most)
            self._contention[kernel.type] = 1 + drawn
        return self._contention[kernel.type]


class Traffic:
    """When data of a rank moves between devices, as far as it is known: intervals that do not overlap."""

    def __init__(self) -> None:
        self._moving: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> None:
        """Data moves from ``start`` to ``end``."""
        insort(self._moving, (start, end))
        merged: list[tuple[int, int]] = []
        for begin, until in self._moving:
            if merged and begin <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(until, merged[-1][1]))
            else:
                merged.append((begin, until))
        self._moving = merged[-64:]

    def end(self, start: int, work_ns: int, factor: float) -> int:
        """When something is done that begins at ``start``, takes ``work_ns`` by itself and is slower by a factor while
        data moves."""
        now, left = start, float(work_ns)
        for begin, until in self._moving:
            if until <= now:
                continue
            free = max(0, begin - now)
            if left <= free:
                break
            left -= free
            now = max(now, begin)
            if left * factor <= until - now:
                return now + round(left * factor)
            left -= (until - now) / factor
            now = until
        return now + round(left)
