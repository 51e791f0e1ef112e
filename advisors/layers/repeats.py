"""Units of a sequence that repeat: the layers of a pass, the passes of a step, the tokens of a decode.

Layers need not be alike kernel by kernel: a loop over experts runs as many kernels as the routing gives it, the first
layers of a model can have another feed-forward network, the first of them another mask. But some kernels run exactly
once in each. Kernels of one signature that occur n times are compared with the others that occur n times: where they
take turns (each occurs once between two of the other), they divide the sequence into n units. Of all such divisions the
one holds whose units have most in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

TAKING_TURNS = 2
"""So many different kernels must take turns: a single one that repeats divides any sequence."""

TRIED = 12
"""So many divisions into equally many units are tried; programs that were recorded have up to five."""

LAST = 2
"""The last unit is so many times as long as the longest other one, at most: what comes behind it has no border."""

FURTHEST = 8
"""The end of the last unit is looked for within so many times the longest other one, where units differ in size."""

LEAST_COMMON = 0.5
"""Units that have this share in common are alike."""

LEAST_KEPT = 2
"""Units that are left without the first or the last one, at least."""

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
        """Number of marked elements of each repetition."""
        start = self.start
        sums = np.concatenate([[0], np.cumsum(marked[start : self.end], dtype=np.int64)])
        return np.asarray(sums[self.ends - start] - sums[self.starts - start])

    def every(self, marked: Bools) -> bool:
        """Whether every repetition has an element that is marked."""
        return bool((self.counts(marked) > 0).all())


def best_repeat(
    sequence: Ints,
    types: Ints,
    start: int,
    end: int,
    rare: Bools,
    *,
    mirrored: bool = False,
    only: Callable[[Repeat], bool] | None = None,
) -> Repeat | None:
    """The unit of ``sequence[start:end]`` whose repetitions have most in common, ``None`` where nothing repeats.

    ``types``: coarser values, by which the end of a unit is recognised. ``rare``: elements that each repetition should
    have, if the stretch has any. Both are of the whole sequence. Where units differ in size, their first elements tell
    where they begin; ``mirrored``: their last ones tell where they end. ``only``: what is none of these is
    looked at without its first or last unit or both, which may have other sizes.
    """
    best, best_rank = None, (False, False, False, 0, 0, 0)
    order = slice(None, None, -1) if mirrored else slice(None)
    for division in _divisions(sequence[start:end][order], types[start:end][order]):
        repeat = (division.mirrored(end - start) if mirrored else division).placed(start)
        if only is not None and not only(repeat):
            kept = next((each for each in _without_ends(repeat, sequence) if only(each)), None)
            if kept is None:
                continue
            repeat = kept
        in_every, is_alike = repeat.every(rare), repeat.share >= LEAST_COMMON
        # Where units differ in most of their elements, those that leave no rare one outside are the right ones.
        inside = 0 if is_alike else int(repeat.counts(rare).sum())
        new_rank = (in_every, in_every or is_alike, is_alike, inside, repeat.common, -len(repeat.starts))
        if best is None or new_rank > best_rank:
            best, best_rank = repeat, new_rank
    return best


def _without_ends(repeat: Repeat, sequence: Ints) -> Iterator[Repeat]:
    """The same units without the first one, without the last one, and without both."""
    if len(repeat.starts) > LEAST_KEPT:
        start, units = repeat.start, repeat.placed(-repeat.start)
        values = np.unique(sequence[start : repeat.end], return_inverse=True)[1]
        for kept in (slice(1, None), slice(0, -1), slice(1, -1))[: len(units.starts) - 1]:
            yield _repeat(values, units.starts[kept], units.ends[kept]).placed(start)


def _divisions(sequence: Ints, types: Ints) -> Iterator[Repeat]:
    _, values, counts = np.unique(sequence, return_inverse=True, return_counts=True)
    order = np.argsort(values, kind="stable")
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    for count in np.unique(counts[counts > 1]).tolist():
        equally_frequent = np.flatnonzero(counts == count)
        if len(equally_frequent) >= TAKING_TURNS:
            places = np.stack([order[begin : begin + count] for begin in first[equally_frequent]])
            for group in _groups_taking_turns(places):
                yield _divided(values, types, places[group])


def _groups_taking_turns(places: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Groups of the rows that take turns with the first of the group. ``places``: places of a value, in order, a row
    for each value."""
    remaining = np.arange(len(places))
    for _ in range(TRIED):
        if len(remaining) < TAKING_TURNS:
            return
        reference, candidates = places[remaining[0]], places[remaining]
        behind = (candidates >= reference).all(axis=1) & (candidates[:, :-1] < reference[1:]).all(axis=1)
        before = (candidates <= reference).all(axis=1) & (candidates[:, 1:] > reference[:-1]).all(axis=1)
        offsets = np.abs(candidates - reference)
        inside = (offsets[:, -1] <= LAST * offsets[:, :-1].max(axis=1) + 1) & (
            offsets[:, 0] <= LAST * offsets[:, 1:].max(axis=1) + 1
        )
        takes_turns = (behind | before) & inside
        if takes_turns.sum() >= TAKING_TURNS:
            yield remaining[takes_turns]
        remaining = remaining[~takes_turns]


def _divided(values: Ints, types: Ints, places: npt.NDArray[np.int64]) -> Repeat:
    """The division by values that take turns. The first unit begins where it stops to look like the second one, read
    backwards; the last one ends where it stops to look like the one before it."""
    borders = places[int(np.argmin(places[:, 0]))]
    start = int(borders[0]) - _common_prefix(
        values[: borders[0]][::-1], values[: borders[1]][::-1], int(borders[1] - borders[0]) - 1
    )
    starts = borders - (int(borders[0]) - start)
    end = _last_unit_end(values, types, starts, places[int(np.argmax(places[:, -1]))])
    ends = _unit_ends(types, np.append(starts, end))
    return _repeat(values, starts, ends)


def _repeat(values: Ints, starts: Ints, ends: Ints) -> Repeat:
    """The units between these places, with what they have in common."""
    lengths = ends - starts
    inside = np.repeat(starts, lengths) + _ranks(lengths)
    unit = np.repeat(np.arange(len(starts)), lengths)
    return Repeat(starts, ends, _common(values[inside], unit, len(starts)))


def _ranks(lengths: Ints) -> Ints:
    """0, 1, 2 ... for each length."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def _unit_ends(types: Ints, borders: Ints) -> Ints:
    """The ends of the units: where the next one starts, unless one goes on after what the others have."""
    lengths = np.diff(borders)
    sizes, counts = np.unique(lengths, return_counts=True)
    ends = borders[1:].copy()
    usual_length = int(sizes[counts.argmax()])
    if counts.max() == 1 or counts.max() * 2 < len(lengths):
        return ends
    pattern = types[borders[:-1][lengths == usual_length][0] :][:usual_length]
    for number in np.flatnonzero(lengths > usual_length).tolist():
        start = int(borders[number])
        if np.array_equal(types[start : start + usual_length], pattern):
            ends[number] = start + usual_length
    return ends


def _last_unit_end(values: Ints, types: Ints, starts: Ints, last: Ints) -> int:
    """The end of the last unit. ``last``: places of the value that comes last in it."""
    behind_last = int(last[-1]) + 1
    pattern = values[last[-2] + 1 : starts[-1]]
    equal_count = _common_prefix(values[behind_last:], pattern, len(pattern))
    if equal_count == len(pattern):
        return behind_last + equal_count
    # What lies between differs from unit to unit: the end is where the last kernels of the unit before stand.
    limit = FURTHEST * int(np.diff(starts).max())
    last_but_one, following = types[starts[-2] : starts[-1]], types[starts[-1] : starts[-1] + limit]
    for length in range(2, min(TAIL, len(last_but_one)) + 1):
        tail = last_but_one[-length:]
        if len(_occurrences(last_but_one, tail)) == 1:
            tail_ends = _occurrences(following, tail) + starts[-1] + length
            tail_ends = tail_ends[tail_ends >= behind_last]
            if len(tail_ends):
                return int(tail_ends[0])
            break
    return behind_last + equal_count


def _occurrences(values: Ints, pattern: Ints) -> Ints:
    if len(values) < len(pattern):
        return np.zeros(0, dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(values, len(pattern))
    return np.flatnonzero((windows == pattern).all(axis=1))


def _common_prefix(left: Ints, right: Ints, limit: int) -> int:
    """Length of the common beginning of two sequences, at most ``limit``."""
    limit = max(min(limit, len(left), len(right)), 0)
    differ = np.flatnonzero(left[:limit] != right[:limit])
    return int(differ[0]) if len(differ) else limit


def _common(values: Ints, unit: Ints, units: int) -> int:
    """Number of elements of values that occur equally often in each of the units. ``values``: small numbers."""
    counts = np.bincount(values)
    divisible = np.flatnonzero((counts > 0) & (counts % units == 0))  # the others cannot
    index = np.full(len(counts), -1)
    index[divisible] = np.arange(len(divisible))
    is_divisible = index[values] >= 0
    cells = index[values[is_divisible]] * units + unit[is_divisible]
    occurrences = np.bincount(cells, minlength=len(divisible) * units).reshape(len(divisible), units)
    is_common = (occurrences == occurrences[:, :1]).all(axis=1)
    return int(counts[divisible[is_common]].sum())
