"""The kernels around the anchor of an expression, and what was found among the same kernels before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisors.fusion.computations import Computation
from advisors.fusion.dataflow import REACH, Window
from advisors.fusion.expressions import Expression
from advisors.fusion.match import ways
from advisors.fusion.sequence import Kernels
from advisors.fusion.stretches import Stretches, Words, combined, mixed

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

Match: TypeAlias = tuple[Computation, Ints]
"""A computation and the places of its kernels, in order."""


class Surroundings:
    """Remembers what was found in the same surroundings. ``barred``: kernels that no computation may have."""

    def __init__(self, kernels: Kernels, barred: Bools) -> None:
        self._kernels, self._barred = kernels, barred
        self._stretches = Stretches(kernels.signature)
        self._borders = {across: _borders(kernels.part if across else kernels.group) for across in (False, True)}
        self._windows: dict[bytes, Window] = {}
        self._ways: dict[tuple[int, int], list[Ints]] = {}

    def found(self, computation: Computation, form: Expression, anchors: Ints, taken: Bools) -> Iterator[Ints]:
        """The kernels of the form of the computation around these anchors, where they are free, which takes them."""
        if not len(anchors):
            return
        starts, ends = self._within(computation, anchors, anchors, REACH)
        alike = _Alike(combined(self._stretches.numbers(starts, ends), anchors - starts))
        blocks: list[tuple[Ints, Ints]] = []
        for number, own in alike.groups():
            first = own[0]
            key = id(form), number
            if key not in self._ways:
                self._ways[key] = self._searched(form, int(anchors[first]), int(starts[first]), int(ends[first]))
            blocks += self._readable(computation, anchors[own], self._ways[key])
        yield from _free(blocks, taken)

    def _searched(self, form: Expression, anchor: int, start: int, end: int) -> list[Ints]:
        """The ways to read the form, the nearest first, as places counted from the anchor."""
        signatures = self._kernels.signature[start:end]
        key = signatures.tobytes()
        if key not in self._windows:
            self._windows[key] = Window([self._kernels.nodes[signature] for signature in signatures.tolist()])
        found = ways(self._windows[key], form, anchor - start)
        return [np.array(sorted(members), dtype=np.int64) + (start - anchor) for members in found]

    def _readable(self, computation: Computation, anchors: Ints, found: Sequence[Ints]) -> Iterator[tuple[Ints, Ints]]:
        """For each anchor the nearest way that has no kernel that is barred: anchors, and a row of places for each. A
        computation that reaches across collectives is none where its nearest way stays on one side of them."""
        for way in found:
            if not len(anchors):
                return
            places = anchors[:, np.newaxis] + way
            if computation.across:
                groups = self._kernels.group[places]
                reaches = (groups != groups[:, :1]).any(axis=1)
                anchors, places = anchors[reaches], places[reaches]
            is_open = ~self._barred[places].any(axis=1)
            if is_open.any():
                yield anchors[is_open], places[is_open]
            anchors = anchors[~is_open]

    def around(self, matches: Sequence[Match], reach: int) -> tuple[Ints, Ints, Ints]:
        """Of each match the stretch that ends so many kernels before and behind it, and a number: equal where it is the
        same computation on the same kernels of such a stretch, with the same borders."""
        lengths = np.array([len(members) for _, members in matches], dtype=np.int64)
        members = np.concatenate([members for _, members in matches])
        begins = np.cumsum(lengths) - lengths
        first, last = members[begins], members[begins + lengths - 1]
        starts, ends = np.maximum(first - reach, 0), np.minimum(last + 1 + reach, len(self._kernels.signature))
        own = np.add.reduceat(mixed(members - np.repeat(first, lengths)), begins, dtype=np.uint64)
        lows, highs = np.empty_like(first), np.empty_like(first)
        is_across = np.array([computation.across for computation, _ in matches], dtype=np.bool_)
        for across in (False, True):
            rows = np.flatnonzero(is_across == across)
            borders = self._borders[across]
            border = np.searchsorted(borders, first[rows], side="right")
            lows[rows], highs[rows] = borders[border - 1], borders[border]
        numbers: Words = combined(
            np.array([id(computation) for computation, _ in matches], dtype=np.int64),
            own,
            self._stretches.numbers(starts, ends),
            first - starts,
            ends - starts,
            np.maximum(lows - starts, 0),
            np.minimum(highs, ends) - starts,
        )
        return starts, ends, numbers.view(np.int64)

    def _within(self, computation: Computation, first: Ints, last: Ints, reach: int) -> tuple[Ints, Ints]:
        """The stretches so many kernels before and behind, within what the computation may reach."""
        borders = self._borders[computation.across]
        border = np.searchsorted(borders, first, side="right")
        return np.maximum(first - reach, borders[border - 1]), np.minimum(last + reach + 1, borders[border])


class _Alike:
    """The rows with equal numbers."""

    def __init__(self, numbers: Words) -> None:
        self._order = np.argsort(numbers, kind="stable")
        ordered = numbers[self._order]
        self._begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        self._numbers = ordered[self._begins]

    def groups(self) -> Iterator[tuple[int, Ints]]:
        """Each number with its rows, in order."""
        yield from zip(self._numbers.tolist(), np.split(self._order, self._begins[1:]), strict=True)


def _free(blocks: Sequence[tuple[Ints, Ints]], taken: Bools) -> Iterator[Ints]:
    """The rows of places that are free, in the order of their anchors; they are taken, and those that share a place
    with an earlier one are left."""
    if not blocks:
        return
    free: list[tuple[Ints, Ints]] = []
    for anchors, places in blocks:
        is_free = ~taken[places].any(axis=1)
        free.append((anchors[is_free], places[is_free]))
    order = np.argsort(np.concatenate([anchors for anchors, _ in free]), kind="stable")
    rows: list[Ints] = [row for _, places in free for row in places]
    candidates = [rows[number] for number in order.tolist()]
    members = np.sort(np.concatenate([places.ravel() for _, places in free]))
    apart = bool((members[1:] != members[:-1]).all())
    taken[members if apart else members[:0]] = True
    for own in candidates:
        if apart:
            yield own
        elif not taken[own].any():
            taken[own] = True
            yield own


def _borders(group: Ints) -> Ints:
    return np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1, [len(group)]])
