"""The progress of a run, for one who looks from another thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

from advisor_core.contracts.profile import RankInput

Stage = Literal["find", "ranks", "job"]
"""Profiles are looked for; ranks are read and judged; they are put together."""

WATCHING: Final = "progress"
"""The name of the thread that looks. It has to be between two lines of its own while the process is copied."""


class Work:
    """``ranks``: how many there are, and how many are ``judged``; ``bytes``: of their files."""

    def __init__(self) -> None:
        self.stage: Stage = "find"
        self.ranks = 0
        self.judged = 0
        self.bytes = 0
        self._read = 0
        self._copied = 0
        self._copied_before = 0
        self._elsewhere: Callable[[], int] = int
        self._copied_elsewhere: Callable[[], int] = int

    def begin_ranks(
        self, sources: Sequence[RankInput], elsewhere: Callable[[], int], copied: Callable[[], int] = int
    ) -> None:
        """From now on ranks are read; ``elsewhere``: bytes that other processes have read so far; ``copied``: bytes
        that they have copied from URLs."""
        self.ranks = len(sources)
        self.bytes = sum(source.bytes for source in sources)
        self._read, self._elsewhere, self._copied_elsewhere = 0, elsewhere, copied
        self._copied_before = self.copied_bytes()
        self.stage = "ranks"

    def add(self, size: int) -> None:
        """Bytes that this process has read."""
        self._read += size

    def copy(self, size: int) -> None:
        """Bytes that this process has copied from a URL."""
        self._copied += size

    def copied_bytes(self) -> int:
        """Bytes that were copied from URLs."""
        return self._copied + self._copied_elsewhere()

    def copied_of_ranks(self) -> int:
        """Of them, those that were copied since ranks are read."""
        return self.copied_bytes() - self._copied_before

    def judge_one(self) -> None:
        """A rank is judged, or cannot be."""
        self.judged += 1

    def read_bytes(self) -> int:
        """Of `bytes`, how many are read."""
        return min(self.bytes, self._read + self._elsewhere())
