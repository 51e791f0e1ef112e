"""Which events of a recording belong to a slice of it: those in a window, with the arrows that end there.

Events are columns of numbers, whatever they were read from, so that a recording of any size can be looked at without
its texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from advisor_core.contracts.tables import Int64Array

SLICE, POINT, BEGIN, END, HEADING = range(5)
"""Kinds: what takes time; what is at a moment; the two ends of an arrow; the name of a process or thread."""

OPEN: Final = -1
"""The lane of a heading that is of a whole process."""

_DEEPEST: Final = 64
"""Slices before a moment among which the one that holds it is looked for. A launch holds nothing else, so that it is
nearly always the last one."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Chosen:
    """``ordinals``: of the events of a slice, in the order of the recording. ``start_ns``, ``end_ns``: the window.
    ``arrows``: how many are whole. ``left_out``: the shortest events of the window, for which there was no room."""

    ordinals: Int64Array
    start_ns: int
    end_ns: int
    arrows: int
    left_out: int = 0


@dataclass(frozen=True, eq=False)
class Events:
    """The events of a recording. ``process`` and ``lane`` (a thread of a process): numbers; ``arrow``: the same for the
    ends of one, -1 for what is none; ``bytes``: as written. Times are ns on the clock of the canonical tables."""

    kind: npt.NDArray[np.int8]
    process: npt.NDArray[np.int32]
    lane: npt.NDArray[np.int32]
    arrow: npt.NDArray[np.int64]
    start_ns: Int64Array
    end_ns: Int64Array
    bytes: npt.NDArray[np.int32]

    def choose(self, start_ns: int, end_ns: int, margin_ns: int, most_bytes: int) -> Chosen:
        """What lies in the stretch and ``margin_ns`` before and after it, in at most ``most_bytes``: where that is too
        much, the margin is halved, then the stretch; in a moment with too much the longest events are kept."""
        while True:
            start, end = start_ns - margin_ns, end_ns + margin_ns
            plain = (self.start_ns <= end) & (self.end_ns >= start) & ((self.kind == SLICE) | (self.kind == POINT))
            if int(self.bytes[plain].sum()) <= most_bytes:  # arrows and headings only add to it
                mask, arrows = self._around(start, end)
                if int(self.bytes[mask].sum()) <= most_bytes:
                    return Chosen(np.flatnonzero(mask), start, end, arrows)
            if margin_ns > 0:
                margin_ns //= 2
            elif end_ns - start_ns > 1:
                end_ns = start_ns + (end_ns - start_ns) // 2
            else:
                return self._longest(start, end, most_bytes)

    def _around(self, start: int, end: int) -> tuple[Mask, int]:
        """The events of a window with the arrows that end in it and what these begin in, and the number of arrows."""
        inside = (self.start_ns <= end) & (self.end_ns >= start) & (self.kind != HEADING)
        mask = inside & ((self.kind == SLICE) | (self.kind == POINT))
        ends = np.flatnonzero((self.kind == BEGIN) | (self.kind == END))
        ends = ends[np.isin(self.arrow[ends], np.unique(self.arrow[ends[inside[ends]]]))]
        holders = self._holders(ends)
        ends, holders = ends[holders >= 0], holders[holders >= 0]
        whole = np.intersect1d(self.arrow[ends[self.kind[ends] == BEGIN]], self.arrow[ends[self.kind[ends] == END]])
        kept = np.isin(self.arrow[ends], whole)
        mask[ends[kept]] = True
        mask[holders[kept]] = True
        return mask | self._headings(mask), len(whole)

    def _headings(self, mask: Mask) -> Mask:
        """The names of the processes and threads that have an event in the slice."""
        headings: Mask = (
            (self.kind == HEADING)
            & np.isin(self.process, np.unique(self.process[mask]))
            & ((self.lane == OPEN) | np.isin(self.lane, np.unique(self.lane[mask])))
        )
        return headings

    def _longest(self, start: int, end: int, most_bytes: int) -> Chosen:
        """The longest events of a window that has too many, without arrows."""
        inside = (self.start_ns <= end) & (self.end_ns >= start) & (self.kind == SLICE)
        rows = np.flatnonzero(inside)
        heading = int(self.bytes[self._headings(inside)].sum())
        order = rows[np.argsort(self.start_ns[rows] - self.end_ns[rows], kind="stable")]
        fits = order[np.cumsum(self.bytes[order]) + heading <= most_bytes]
        mask = np.zeros(len(self.kind), np.bool_)
        mask[fits] = True
        return Chosen(np.flatnonzero(mask | self._headings(mask)), start, end, 0, len(rows) - len(fits))

    @cached_property
    def _by_lane(self) -> tuple[Int64Array, Int64Array]:
        """The slices by lane and start, an outer one before those in it; where each lane begins, and the end."""
        rows = np.flatnonzero(self.kind == SLICE)
        rows = rows[np.lexsort((-self.end_ns[rows], self.start_ns[rows], self.lane[rows]))]
        lanes = int(self.lane.max(initial=OPEN)) + 1
        return rows, np.searchsorted(self.lane[rows], np.arange(lanes + 1))

    def _holders(self, ends: Int64Array) -> Int64Array:
        """The innermost slice that holds each end of an arrow, in its lane; -1 for none."""
        rows, first = self._by_lane
        places = np.full(len(ends), -1, np.int64)
        for lane in np.unique(self.lane[ends]).tolist():
            if lane == OPEN:
                continue
            here = self.lane[ends] == lane
            own = rows[first[lane] : first[lane + 1]]
            places[here] = first[lane] + np.searchsorted(self.start_ns[own], self.start_ns[ends[here]], "right") - 1
        bottom = first[np.maximum(self.lane[ends], 0)]
        found = np.full(len(ends), -1, np.int64)
        for _ in range(_DEEPEST):
            looking = np.flatnonzero((found < 0) & (places >= bottom))
            if not len(looking):
                break
            candidate = rows[places[looking]]
            holds = self.end_ns[candidate] >= self.start_ns[ends[looking]]
            found[looking[holds]] = candidate[holds]
            places[looking[~holds]] -= 1
        return found
