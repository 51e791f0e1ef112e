"""Units of a sequence that repeat: the layers of a pass, the passes of a step, the tokens of a decode.

Layers need not be alike kernel by kernel: a loop over experts runs as many kernels as the routing gives it, the first
layers of a model can have another feed-forward network, the first of them another mask. But some kernels run exactly
once in each. Kernels of one signature that occur n times are compared with the others that occur n times: where they
take turns (each occurs once between two of the other), they divide the sequence into n units. Of all such divisions the
one holds whose units have most in common.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TAKING_TURNS = 2
"""So many different kernels must take turns: a single one that repeats divides any sequence."""

TRIED = 12
"""So many divisions into equally many units are tried; programs that were recorded have up to five."""

LAST = 2
"""The last unit is so many times as long as the longest other one, at most: what comes behind it has no border."""

FURTHEST = 8
"""Where units differ in size, the end of the last one is looked for within so many times the longest other one."""

LEAST_COMMON = 0.5
"""Units that have this share in common are alike."""

TAIL = 16
"""So many elements are enough to recognise the end of a unit."""


@dataclass(frozen=True)
class Repeat:
    """A unit that repeats: elements ``starts[i]`` to ``ends[i]``. ``common``: how many of them are of a value that
    occurs equally often in every repetition."""

    starts: Ints
    ends: Ints
    common: int

    @property
    def start(self) -> int:
        """Place of the first element."""
        return int(self.starts[0])

    @property
    def end(self) -> int:
        """Place behind the last element."""
        return int(self.ends[-1])

    @property
    def share(self) -> float:
        """Share of the elements that all repetitions have in common."""
        return self.common / int((self.ends - self.starts).sum())

    def placed(self, start: int) -> Repeat:
        """The same unit in a sequence that has so many more elements in front."""
        return Repeat(self.starts + start, self.ends + start, self.common)

    def mirrored(self, length: int) -> Repeat:
        """The same unit in the reversed sequence of so many elements."""
        return Repeat(length - self.ends[::-1], length - self.starts[::-1], self.common)

    def counts(self, marked: Bools) -> Ints:
        """How many marked elements each repetition has."""
        sums = np.concatenate([[0], np.cumsum(marked)])
        return np.asarray(sums[self.ends] - sums[self.starts])

    def every(self, marked: Bools) -> bool:
        """Whether every repetition has an element that is marked."""
        return bool((self.counts(marked) > 0).all())


def best_repeat(
    sequence: Ints, types: Ints, start: int, end: int, rare: Bools, *, mirrored: bool = False
) -> Repeat | None:
    """The unit of ``sequence[start:end]`` whose repetitions have most in common, ``None`` where nothing repeats.

    ``types``: coarser values, by which the end of a unit is recognised. ``rare``: elements that each repetition should
    have, if the stretch has any. Both are of the whole sequence. Where units differ in size, their first elements tell
    where they begin; ``mirrored``: their last ones tell where they end.
    """
    best, rank = None, (False, False, False, 0, 0, 0)
    turn = slice(None, None, -1) if mirrored else slice(None)
    for one in _divisions(sequence[start:end][turn], types[start:end][turn]):
        found = (one.mirrored(end - start) if mirrored else one).placed(start)
        every, alike = found.every(rare), found.share >= LEAST_COMMON
        # Where units differ in most of their elements, those that leave no rare one outside are the right ones.
        inside = 0 if alike else int(found.counts(rare).sum())
        new = (every, every or alike, alike, inside, found.common, -len(found.starts))
        if best is None or new > rank:
            best, rank = found, new
    return best


def _divisions(sequence: Ints, types: Ints) -> Iterator[Repeat]:
    _, values, counts = np.unique(sequence, return_inverse=True, return_counts=True)
    order = np.argsort(values, kind="stable")
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    for times in np.unique(counts[counts > 1]).tolist():
        alike = np.flatnonzero(counts == times)
        if len(alike) >= TAKING_TURNS:
            places = np.stack([order[begin : begin + times] for begin in first[alike]])
            for group in _turns(places):
                yield _divided(values, types, places[group])


def _turns(places: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Groups of the rows that take turns with the first of the group. ``places``: places of a value, in order, a row
    for each value."""
    left = np.arange(len(places))
    for _ in range(TRIED):
        if len(left) < TAKING_TURNS:
            return
        reference, others = places[left[0]], places[left]
        behind = (others >= reference).all(axis=1) & (others[:, :-1] < reference[1:]).all(axis=1)
        before = (others <= reference).all(axis=1) & (others[:, 1:] > reference[:-1]).all(axis=1)
        offsets = np.abs(others - reference)
        inside = (offsets[:, -1] <= LAST * offsets[:, :-1].max(axis=1) + 1) & (
            offsets[:, 0] <= LAST * offsets[:, 1:].max(axis=1) + 1
        )
        member = (behind | before) & inside
        if member.sum() >= TAKING_TURNS:
            yield left[member]
        left = left[~member]


def _divided(values: Ints, types: Ints, places: npt.NDArray[np.int64]) -> Repeat:
    """The division by values that take turns. The first unit begins where it stops to look like the second one, read
    backwards; the last one ends where it stops to look like the one before it."""
    begin = places[int(np.argmin(places[:, 0]))]
    start = int(begin[0]) - _alike(values[: begin[0]][::-1], values[: begin[1]][::-1], int(begin[1] - begin[0]) - 1)
    starts = begin - (int(begin[0]) - start)
    end = _end(values, types, starts, places[int(np.argmax(places[:, -1]))])
    ends = _ends(types, np.append(starts, end))
    inside = np.repeat(starts, ends - starts) + _ranks(ends - starts)
    unit = np.repeat(np.arange(len(starts)), ends - starts)
    return Repeat(starts, ends, _common(values[inside], unit, len(starts)))


def _ranks(lengths: Ints) -> Ints:
    """0, 1, 2 ... for each length."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _ends(types: Ints, borders: Ints) -> Ints:
    """The ends of the units: where the next one starts, unless one goes on after what the others have."""
    lengths = np.diff(borders)
    sizes, counts = np.unique(lengths, return_counts=True)
    ends = borders[1:].copy()
    usual = int(sizes[counts.argmax()])
    if counts.max() == 1 or counts.max() * 2 < len(lengths):
        return ends
    pattern = types[borders[:-1][lengths == usual][0] :][:usual]
    for number in np.flatnonzero(lengths > usual).tolist():
        start = int(borders[number])
        if np.array_equal(types[start : start + usual], pattern):
            ends[number] = start + usual
    return ends


def _end(values: Ints, types: Ints, starts: Ints, last: Ints) -> int:
    """Where the last unit ends. ``last``: places of the value that comes last in it."""
    behind = int(last[-1]) + 1
    pattern = values[last[-2] + 1 : starts[-1]]
    alike = _alike(values[behind:], pattern, len(pattern))
    if alike == len(pattern):
        return behind + alike
    # What lies between differs from unit to unit: the end is where the last kernels of the unit before stand.
    most = FURTHEST * int(np.diff(starts).max())
    unit, rest = types[starts[-2] : starts[-1]], types[starts[-1] : starts[-1] + most]
    for length in range(2, min(TAIL, len(unit)) + 1):
        tail = unit[-length:]
        if len(_occurrences(unit, tail)) == 1:
            again = _occurrences(rest, tail) + starts[-1] + length
            again = again[again >= behind]
            if len(again):
                return int(again[0])
            break
    return behind + alike


def _occurrences(values: Ints, pattern: Ints) -> Ints:
    if len(values) < len(pattern):
        return np.zeros(0, dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(values, len(pattern))
    return np.flatnonzero((windows == pattern).all(axis=1))


def _alike(one: Ints, other: Ints, most: int) -> int:
    """How many elements two sequences begin with that are equal, at most ``most``."""
    most = max(min(most, len(one), len(other)), 0)
    differ = np.flatnonzero(one[:most] != other[:most])
    return int(differ[0]) if len(differ) else most


def _common(values: Ints, unit: Ints, units: int) -> int:
    """How many elements are of a value that occurs equally often in each of the units. ``values``: small numbers."""
    counts = np.bincount(values)
    often = np.flatnonzero((counts > 0) & (counts % units == 0))  # the others cannot
    number = np.full(len(counts), -1)
    number[often] = np.arange(len(often))
    chosen = number[values] >= 0
    times = np.zeros((len(often), units), dtype=np.int32)
    np.add.at(times, (number[values[chosen]], unit[chosen]), 1)
    equally = (times == times[:, :1]).all(axis=1)
    return int(counts[often[equally]].sum())
