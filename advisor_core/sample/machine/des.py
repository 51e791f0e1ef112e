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
    """Something that happens once; whoever waits for it afterwards does not wait at all."""

    __slots__ = ("fired", "waiting")

    def __init__(self) -> None:
        self.fired = False
        self.waiting: list[Process] = []


Process = Generator["int | Signal", None, None]


class Simulator:
    """The clock and the agenda of ready processes."""

    def __init__(self, start: int = 0) -> None:
        self.now = start
        self._agenda: list[tuple[int, int, Process]] = []
        self._ticket = count()

    def spawn(self, process: Process) -> None:
        """Make a process ready to run now."""
        heapq.heappush(self._agenda, (self.now, next(self._ticket), process))

    def fire(self, signal: Signal) -> None:
        """Let the signal happen now; everything that waits for it becomes ready."""
        signal.fired = True
        for process in signal.waiting:
            self.spawn(process)
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
    """A first-in first-out queue between processes, bounded if a capacity is given."""

    def __init__(self, simulator: Simulator, capacity: int | None = None) -> None:
        self._simulator = simulator
        self._capacity = capacity
        self._items: deque[T] = deque()
        self._filled = Signal()
        self._drained = Signal()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._items

    def room(self) -> Process:
        """Wait while the queue is full."""
        while self._capacity is not None and len(self._items) >= self._capacity:
            self._drained = Signal()
            yield self._drained

    def post(self, item: T) -> None:
        """Append an item; a bounded queue must have :meth:`room` for it."""
        self._items.append(item)
        self._simulator.fire(self._filled)

    def get(self) -> Generator[int | Signal, None, T]:
        """Take the oldest item; wait while there is none."""
        while not self._items:
            self._filled = Signal()
            yield self._filled
        item = self._items.popleft()
        self._simulator.fire(self._drained)
        return item
