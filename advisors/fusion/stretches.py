"""Stretches of a sequence of kernels told by numbers, so that what repeats is looked at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Words: TypeAlias = "npt.NDArray[np.uint64]"

BASE = 0x9E3779B97F4A7C15
"""An odd number, so that it has an inverse modulo 2 to the 64."""


def mixed(values: Ints) -> Words:
    """Numbers of 64 bits without order, one for each value (the finaliser of SplitMix64, Steele et al. 2014)."""
    words = (values.astype(np.uint64) + np.uint64(1)) * np.uint64(BASE)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(words ^ (words >> np.uint64(31)), dtype=np.uint64)


def combined(*parts: Words | Ints) -> Words:
    """One number for each row of the columns ``parts``; equal rows have equal numbers."""
    total = np.zeros(len(parts[0]), dtype=np.uint64)
    for part in parts:
        total = mixed((total * np.uint64(BASE) + part.astype(np.uint64)).view(np.int64))
    return total


class Stretches:
    """Numbers for stretches of a sequence: equal stretches have equal ones, wherever they begin. Of different stretches
    two have equal ones by chance, once in 2 to the 64: it is a polynomial of their mixed values."""

    def __init__(self, values: Ints) -> None:
        powers = np.full(len(values) + 1, BASE, dtype=np.uint64)
        inverse = np.full(len(values) + 1, pow(BASE, -1, 1 << 64), dtype=np.uint64)
        powers[0] = inverse[0] = 1
        self._inverse: Words = np.cumprod(inverse, dtype=np.uint64)
        terms = mixed(values) * np.cumprod(powers, dtype=np.uint64)[:-1]
        self._sums: Words = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])

    def numbers(self, starts: Ints, ends: Ints) -> Words:
        """The numbers of the stretches ``[start, end)``."""
        return (self._sums[ends] - self._sums[starts]) * self._inverse[starts]
