"""The overlap analysis: when the device computed, communicated without computing, or did neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..intervals import Interval, gaps, subtract, union
from ..timeline import Collective, Timeline


def double_hash(text: str) -> int:
    """The number of a communication group: two polynomial hashes side by side (docs/sources.md#group-number)."""
    low = high = 0
    for byte in text.encode():
        high = (high * 29 + byte) & 0xFFFFFFFF
        low = (low * 131 + byte) & 0xFFFFFFFF
    return high << 32 | low


def collective_type(collective: Collective) -> str:
    """The type of an operation, as tables have it."""
    return f"hcom_{collective.operation}_"


def collective_name(collective: Collective) -> str:
    """The name of an operation: type, end of the group's number, running index."""
    return f"{collective_type(collective)}_{double_hash(collective.group.key) % 1000:03d}_{collective.index}_1"


@dataclass(frozen=True, slots=True)
class OverlapEvent:
    """An event of one lane."""

    lane: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OverlapAnalysis:
    """The lanes as lists of intervals."""

    LANES: ClassVar[tuple[str, ...]] = ("Computing", "Communication", "Communication(Not Overlapped)", "Free")

    computing: list[Interval]
    communication: list[Interval]

    @classmethod
    def of(cls, timeline: Timeline) -> OverlapAnalysis:
        """The lanes of a timeline: one event per kernel and per collective, or several that overlap."""
        return cls(
            [(task.start, task.end) for task in timeline.kernels],
            union((collective.start, collective.end) for collective in timeline.collectives),
        )

    def events(self) -> list[OverlapEvent]:
        """All events, lane by lane."""
        busy = union(self.computing)
        lanes = (
            self.computing,
            self.communication,
            subtract(union(self.communication), busy),
            gaps(union([*self.computing, *self.communication])),
        )
        return [
            OverlapEvent(name, start, end) for name, lane in zip(self.LANES, lanes, strict=True) for start, end in lane
        ]
