"""A minimal discrete-event kernel: processes are generators, time is int64 nanoseconds.

A process yields either a delay in nanoseconds or a :class:`Signal` to wait for. Ties are broken
by the order in which processes were made ready, so that a run is a function of its inputs alone.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Generator
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


class Signal:
    """Something that happens once, ``at`` a time; whoever waits for it afterwards does not wait at all."""

    __slots__ = ("at", "fired", "waiting")

    def __init__(self) -> None:
        self.fired = False
        self.at = 0
        self.waiting: list[Process] = []


Process = Generator["int | Signal", None, None]


class Chain:
    """A thread or a stream, which does one thing after the other: ``at`` is how far it has come, nanoseconds.

    A chain may be ahead of the simulator's clock, as long as nobody else can change what it does until then: what is
    handed from one chain to another carries its time, so that the other one goes on at the later of the two.
    """

    __slots__ = ("at",)

    def __init__(self, at: int) -> None:
        self.at = at

    def wait(self, signal: Signal) -> Process:
        """Go on when the signal has happened, or at once if it has."""
        if not signal.fired:
            yield signal
        self.at = max(self.at, signal.at)


class Simulator:
    """The clock and the agenda of ready processes."""

    def __init__(self, start: int = 0) -> None:
        self.now = start
        self._agenda: list[tuple[int, int, Process]] = []
        self._ticket = count()

    def spawn(self, process: Process) -> None:
        """Make a process ready to run now."""
        heapq.heappush(self._agenda, (self.now, next(self._ticket), process))

    def fire(self, signal: Signal, at: int) -> None:
        """Let the signal happen at a time that is not over; everything that waits for it becomes ready then."""
        signal.fired, signal.at = True, at
        for process in signal.waiting:
            heapq.heappush(self._agenda, (at, next(self._ticket), process))
        signal.waiting.clear()

    def run(self) -> None:
        """Run until nothing is ready; a process that still waits then waits forever."""
        while self._agenda:
            self.now, _, process = heapq.heappop(self._agenda)
            for wish in process:
                if isinstance(wish, Signal):
                    if wish.fired:
                        continue
                    wish.waiting.append(process)
                elif wish <= 0:
                    continue
                else:
                    heapq.heappush(self._agenda, (self.now + wish, next(self._ticket), process))
                break


class Channel(Generic[T]):
    """A first-in first-out queue from one chain to another, bounded if a capacity is given.

    The chains may be ahead of the clock: whoever takes an item goes on no sooner than it was posted, and whoever posts
    to a full queue no sooner than room was made.
    """

    def __init__(self, simulator: Simulator, capacity: int | None = None) -> None:
        self._simulator = simulator
        self._capacity = capacity
        self._items: deque[tuple[int, T]] = deque()
        self._posted = 0
        self._taken: list[int] = []
        self._filled = Signal()
        self._drained = Signal()

    def room(self, chain: Chain) -> Process:
        """Wait while the queue is full."""
        if self._capacity is None or (first := self._posted - self._capacity) < 0:
            return
        while len(self._taken) <= first:
            self._drained = Signal()
            yield self._drained
        chain.at = max(chain.at, self._taken[first])

    def post(self, item: T, at: int) -> None:
        """Append an item; a bounded queue must have :meth:`room` for it."""
        self._posted += 1
        self._items.append((at, item))
        if self._filled.waiting:
            self._simulator.fire(self._filled, at)

    def get(self, chain: Chain) -> Generator[int | Signal, None, T]:
        """Take the oldest item; wait while there is none."""
        while not self._items:
            self._filled = Signal()
            yield self._filled
        posted, item = self._items.popleft()
        if posted > chain.at:
            chain.at = posted
        if self._capacity is not None:
            self._taken.append(chain.at)
            if self._drained.waiting:
                self._simulator.fire(self._drained, chain.at)
        return item
