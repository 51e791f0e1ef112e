"""Unions of half-open intervals in integer nanoseconds, as the overlap analysis of an export needs them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

Interval = tuple[int, int]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Sorted, disjoint and maximal intervals that cover the same points."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def subtract(whole: list[Interval], holes: list[Interval]) -> list[Interval]:
    """The difference of two unions: the first without the second."""
    rest: list[Interval] = []
    index = 0
    for start, end in whole:
        while index < len(holes) and holes[index][1] <= start:
            index += 1
        cursor = index
        while cursor < len(holes) and holes[cursor][0] < end:
            if holes[cursor][0] > start:
                rest.append((start, holes[cursor][0]))
            start = max(start, holes[cursor][1])
            cursor += 1
        if start < end:
            rest.append((start, end))
    return rest


def gaps(covered: list[Interval]) -> list[Interval]:
    """The space between the members of one union."""
    return [(left[1], right[0]) for left, right in pairwise(covered)]
