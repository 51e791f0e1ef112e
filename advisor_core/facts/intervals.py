"""Arithmetic of half-open time intervals on whole arrays.

A `Layer` is a set of disjoint, sorted intervals, each with an id. Everything that is booked is booked by laying
layers over one another and cutting time at their borders (`cut`): between two borders nothing changes, so each
piece belongs to exactly one id of each layer, and the pieces tile the window. All functions cost a sort; none loops
over intervals in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

NOTHING = -1
"""The id where a layer has no interval."""


@dataclass(frozen=True)
class Layer:
    """Disjoint intervals ``[starts, ends)`` in ascending order; ``ids`` are >= 0."""

    starts: Ints
    ends: Ints
    ids: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Self:
        """The intervals of a frame (``start_ns``, ``end_ns``: disjoint, in order); ids are the numbers of its rows."""
        return cls(frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy(), np.arange(len(frame)))

    def at(self, times: Ints) -> Ints:
        """The id of the interval that holds each time, `NOTHING` where none does."""
        if not len(self):
            return np.full(len(times), NOTHING, dtype=np.int64)
        place = np.searchsorted(self.starts, times, side="right") - 1
        inside = (place >= 0) & (times < self.ends[place])
        return np.where(inside, self.ids[place], NOTHING)

    def measure(self, times: Ints) -> Ints:
        """Covered time before each of ``times``; ``measure(b) - measure(a)`` is what the layer covers of [a, b)."""
        if not len(self):
            return np.zeros(len(times), dtype=np.int64)
        before = np.concatenate([[0], np.cumsum(self.ends - self.starts)])
        place = np.searchsorted(self.starts, times, side="right") - 1
        partial = np.minimum(times, self.ends[place]) - self.starts[place]
        return np.where(place >= 0, before[np.maximum(place, 0)] + partial, 0)

    def total(self) -> int:
        return int((self.ends - self.starts).sum())

    def clip(self, start: int, end: int) -> Layer:
        """The part of the intervals within [start, end)."""
        starts, ends = np.maximum(self.starts, start), np.minimum(self.ends, end)
        return _kept(starts, ends, self.ids)

    def without(self, other: Layer) -> Layer:
        """The part in which ``other`` has nothing, as a `union`."""
        if not len(self) or not len(other):
            return union(self.starts, self.ends)
        start, end = int(self.starts[0]), int(self.ends[-1])
        pieces = cut(start, end, [self, complement(other, start, end)], within=self)
        outside = pieces.ids[1] != NOTHING
        return union(pieces.starts[outside], pieces.ends[outside])


def _kept(starts: Ints, ends: Ints, ids: Ints) -> Layer:
    keep = ends > starts
    return Layer(starts[keep], ends[keep], ids[keep])


def empty() -> Layer:
    none = np.zeros(0, dtype=np.int64)
    return Layer(none, none, none)


def union(starts: Ints, ends: Ints, identity: int = 0) -> Layer:
    """The time covered by any of the intervals; touching ones merge. Empty ones vanish."""
    keep = ends > starts
    starts, ends = starts[keep], ends[keep]
    if not len(starts):
        return empty()
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate([[True], starts[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    merged = starts[first]
    return Layer(merged, reach[last], np.full(len(merged), identity, dtype=np.int64))


def earliest_start_wins(starts: Ints, ends: Ints) -> Layer:
    """Disjoint pieces: where intervals overlap, the one that started first keeps the time. Ids are row numbers."""
    order = np.lexsort((ends, starts))
    starts, ends = starts[order], ends[order]
    reach = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(ends)[:-1]]) if len(ends) else ends
    return _kept(np.maximum(starts, reach), ends, order.astype(np.int64))


def latest_end_wins(starts: Ints, ends: Ints, ties: Ints) -> Layer:
    """Disjoint pieces: where intervals overlap, the one that ends last takes the time; of those that end together,
    the one with the smallest of ``ties``. Ids are row numbers."""
    order = np.lexsort((ties, -ends))
    starts, ends = starts[order], ends[order]
    reach = np.concatenate([[np.iinfo(np.int64).max], np.minimum.accumulate(starts)[:-1]]) if len(ends) else ends
    pieces = _kept(starts, np.minimum(ends, reach), order.astype(np.int64))
    ascending = np.argsort(pieces.starts, kind="stable")
    return Layer(pieces.starts[ascending], pieces.ends[ascending], pieces.ids[ascending])


def complement(layer: Layer, start: int, end: int) -> Layer:
    """The gaps of a layer within [start, end), numbered from 0."""
    inside = layer.clip(start, end)
    starts = np.concatenate([[start], inside.ends])
    ends = np.concatenate([inside.starts, [end]])
    keep = ends > starts
    return Layer(starts[keep], ends[keep], np.arange(int(keep.sum()), dtype=np.int64))


@dataclass(frozen=True)
class Pieces:
    """A window cut at all borders. ``ids[i]`` are the ids of layer ``i``, one per piece."""

    starts: Ints
    ends: Ints
    ids: tuple[Ints, ...]

    @property
    def lengths(self) -> Ints:
        return self.ends - self.starts


def cut(start: int, end: int, layers: Sequence[Layer], within: Layer | None = None) -> Pieces:
    """Cut [start, end) at every border of every layer. The pieces tile the window; with ``within``, which is one of the
    layers, only its part of the window: what the others are elsewhere is not looked up."""
    borders = [np.array([start, end], dtype=np.int64)]
    for layer in layers:
        borders += [layer.starts, layer.ends]
    # the borders are runs in order, which a stable sort merges; `np.unique` hashes them, a hundred times as long
    points = np.sort(np.clip(np.concatenate(borders), start, end), kind="stable")
    points = points[np.concatenate([[True], points[1:] != points[:-1]])]
    starts, ends = points[:-1], points[1:]
    if within is not None:
        inside = within.at(starts) != NOTHING
        starts, ends = starts[inside], ends[inside]
    return Pieces(starts, ends, tuple(layer.at(starts) for layer in layers))


def first_of(layers: Sequence[Layer]) -> Layer:
    """One layer out of several: at each time the id is the number of the first layer that covers it."""
    numbers = np.array([number for number, layer in enumerate(layers) if len(layer)], dtype=np.int64)
    if not len(numbers):
        return empty()
    covered = [layers[number] for number in numbers.tolist()]
    start = min(int(layer.starts[0]) for layer in covered)
    end = max(int(layer.ends[-1]) for layer in covered)
    pieces = cut(start, end, covered)
    active = np.stack([ids != NOTHING for ids in pieces.ids])
    number = np.where(active.any(axis=0), numbers[active.argmax(axis=0)], NOTHING)
    keep = number != NOTHING
    return Layer(pieces.starts[keep], pieces.ends[keep], number[keep])
