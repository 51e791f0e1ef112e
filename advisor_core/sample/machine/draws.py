"""Random numbers as they are drawn by the million: the same as those of :class:`random.Random`, a block at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from random import Random

import numpy as np
import numpy.typing as npt

_BLOCK = 512
"""Normal numbers that are made at once, an even count: they come in pairs."""


class Draws:
    """Normal numbers by what they are for. ``machine``: equal ones have equal machines, and equal numbers in the same
    ``run``. ``mirrored``: with their signs changed, so that what is long in one run is short in the other, and the mean
    of both is nearer to that of many runs (antithetic variates)."""

    def __init__(self, machine: str, run: int = 0, *, mirrored: bool = False) -> None:
        self.machine = machine
        self.key = f"{machine}/{run}" if run else machine
        self._sign = -1.0 if mirrored else 1.0

    def standard_normal(self, what: str) -> Iterator[float]:
        """Numbers as of ``Random(f"{key}/{what}").gauss(0, 1)``, again and again: the pairs of Box and Muller from
        the same uniform numbers, up to the last digit of the functions."""
        return chain.from_iterable((block * self._sign).tolist() for block in _blocks(Random(f"{self.key}/{what}")))

    def log_normal(self, what: str, sigma: float) -> Iterator[float]:
        """``exp(sigma * ...)`` of the same."""
        spread = sigma * self._sign
        return chain.from_iterable(np.exp(block * spread).tolist() for block in _blocks(Random(f"{self.key}/{what}")))


def _blocks(random: Random) -> Iterator[npt.NDArray[np.float64]]:
    _, state, _ = random.getstate()
    source = np.random.RandomState()
    source.set_state(("MT19937", np.array(state[:-1], dtype=np.uint32), state[-1], 0, 0.0))
    while True:
        pairs = source.random_sample((_BLOCK // 2, 2))
        angle, radius = pairs[:, 0] * (2 * np.pi), np.sqrt(-2.0 * np.log(1.0 - pairs[:, 1]))
        yield np.stack((np.cos(angle) * radius, np.sin(angle) * radius), axis=1).ravel()
