"""Rows of two sides by key, where each side lists only its largest by themselves."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
Sums = tuple[int, ...]


def side_by_side(
    before: Mapping[K, Sums], after: Mapping[K, Sums], kind_of: Callable[[K], K], rest: K
) -> Iterator[tuple[K, Sums, Sums]]:
    """The sums of both sides by key. ``kind_of``: the key of the row that stands for all of its kind that are not
    listed, ``rest``: of the one for all kinds that are not.

    A row without a partner has gone or come only where the other side lists everything it could be part of. Where it
    does not, the row joins what is not listed, on both sides.
    """
    of_kind = _folded(before, after, kind_of)
    old, new = _folded(*of_kind, lambda key: rest)
    for key in dict.fromkeys([*old, *new]):
        none = (0,) * len(old.get(key) or new[key])
        yield key, old.get(key, none), new.get(key, none)


def _folded(
    before: Mapping[K, Sums], after: Mapping[K, Sums], remainder_of: Callable[[K], K]
) -> tuple[dict[K, Sums], dict[K, Sums]]:
    """Both sides; a row without a partner joins the remainder that it may be part of on the other side, where a side
    has such a remainder."""
    remainders = {key for key in (*before, *after) if key == remainder_of(key)}
    sides: tuple[dict[K, Sums], dict[K, Sums]] = ({}, {})
    for side, other, folded in ((before, after, sides[0]), (after, before, sides[1])):
        for key, sums in side.items():
            joins = key not in other and remainder_of(key) in remainders
            target = remainder_of(key) if joins else key
            known = folded.get(target)
            folded[target] = sums if known is None else tuple(a + b for a, b in zip(known, sums, strict=True))
    return sides
