"""How far a run is, for one who looks from another thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from advisor_core.contracts.profile import RankInput

Stage = Literal["find", "ranks", "job"]
"""Profiles are looked for; ranks are read and judged; they are put together."""


class Work:
    """``ranks``: how many there are, and how many are ``judged``; ``bytes``: of their files."""

    def __init__(self) -> None:
        self.stage: Stage = "find"
        self.ranks = 0
        self.judged = 0
        self.bytes = 0
        self._read = 0
        self._elsewhere: Callable[[], int] = int

    def begin_ranks(self, sources: Sequence[RankInput], elsewhere: Callable[[], int]) -> None:
        """From now on ranks are read; ``elsewhere``: bytes that other processes have read so far."""
        self.ranks = len(sources)
        self.bytes = sum(source.bytes for source in sources)
        self._read, self._elsewhere = 0, elsewhere
        self.stage = "ranks"

    def add(self, size: int) -> None:
        """Bytes that this process has read."""
        self._read += size

    def judge_one(self) -> None:
        """A rank is judged, or cannot be."""
        self.judged += 1

    def read_bytes(self) -> int:
        """Of `bytes`, how many are read."""
        return min(self.bytes, self._read + self._elsewhere())
