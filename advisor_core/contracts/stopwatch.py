"""Time of the parts of a run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class Stopwatch:
    """Time of the wall clock by name. Every moment counts once: what runs inside of another part is not time of that
    one, so that an advisor does not pay for a fact that it is the first to ask for."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = {}
        self._running: list[str] = []
        self._since = 0

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count the time meanwhile as ``name``'s."""
        self._count()
        self._running.append(name)
        try:
            yield
        finally:
            self._count()
            self._running.pop()

    def _count(self) -> None:
        now = time.perf_counter_ns()
        if self._running:
            name = self._running[-1]
            self._spent[name] = self._spent.get(name, 0) + now - self._since
        self._since = now

    def seconds(self) -> Mapping[str, float]:
        """Seconds by name."""
        return {name: ns / 1e9 for name, ns in self._spent.items()}
