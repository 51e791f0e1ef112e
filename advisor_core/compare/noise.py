"""Interval for the factor between two means, from the noise of the steps.

The question is by which factor the steps of one run differ from those of the other. Both answers take the steps of a
run as draws of one distribution, independent of one another; neither knows how much two runs of the same job differ,
which can be more.

Many steps on both sides: the bootstrap. Steps are drawn with replacement on each side, and the interval holds the
middle 95 % of the ratios of the means.

Few steps: a bootstrap of few values is too sure. The interval then holds all factors that an exact test does not
refuse: with the earlier steps multiplied by the factor, are there enough ways to divide all steps into two sides whose
means differ at least as much? With very few steps it refuses nothing, and there is no interval.

Both are from docs/sources.md#noise-of-steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

CONFIDENCE: Final = 0.95
BOOTSTRAP_FROM: Final = 10
"""Steps on each side from which the bootstrap is used. A convention: below it an exact test can go through all ways to
divide the steps."""

DRAWS: Final = 10_000
"""Of the bootstrap, and ways to divide that are drawn where all of them are too many."""

MOST_DIVISIONS: Final = 50_000
"""All ways to divide up to nine and nine steps are gone through."""

_SEED: Final = 0
_HALVINGS: Final = 50


@dataclass(frozen=True)
class Noise:
    """``interval``: factors minus one that the steps allow. ``least``: where no interval can be told, the smallest
    probability that the exact test could give with so few steps; 1 where a side has one step."""

    method: Literal["bootstrap", "permutation", "none"]
    interval: tuple[float, float] | None
    least: float = 1.0


def noise(before: Floats, after: Floats) -> Noise:
    """The interval for the factor between two series of step times, which are above zero."""
    if min(len(before), len(after)) < 2:
        return Noise("none", None)
    if min(len(before), len(after)) >= BOOTSTRAP_FROM:
        return Noise("bootstrap", _bootstrap(before, after))
    probability = _test(before, after)
    apart = 2 * float(after.max() / before.min()), 0.5 * float(after.min() / before.max())
    least = max(probability(factor) for factor in apart)
    if least > 1 - CONFIDENCE:
        return Noise("permutation", None, least)
    middle = float(after.mean() / before.mean())
    low, high = (_border(probability, middle, outside) for outside in (apart[1], apart[0]))
    return Noise("permutation", (low - 1, high - 1))


def _bootstrap(before: Floats, after: Floats) -> tuple[float, float]:
    generator = np.random.default_rng(_SEED)
    means = [side[generator.integers(0, len(side), (DRAWS, len(side)))].mean(axis=1) for side in (before, after)]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means[1] / means[0], [tail, 1 - tail])
    return float(low) - 1, float(high) - 1


def _test(before: Floats, after: Floats) -> Callable[[float], float]:
    """The probability that chance divides the steps at least as unevenly, by the factor that the earlier ones are
    multiplied with."""
    small = min(len(before), len(after))
    total = len(before) + len(after)
    divisions = _divisions(total, small)

    def probability(factor: float) -> float:
        scaled = before * factor
        own, other = (scaled, after) if len(before) == small else (after, scaled)
        steps = np.concatenate([own, other])  # the first ``small`` are the division that was found
        sums = steps[divisions].sum(axis=1)
        means = sums / small - (steps.sum() - sums) / (total - small)
        found = own.mean() - other.mean()
        return float((np.abs(means) >= abs(found) - 1e-9 * steps.mean()).mean())

    return probability


def _divisions(total: int, small: int) -> npt.NDArray[np.int64]:
    """Ways to choose ``small`` of ``total`` steps, a row each: all, or where they are too many the one that was found
    and others at random."""
    if comb(total, small) <= MOST_DIVISIONS:
        return np.array(list(combinations(range(total), small)), dtype=np.int64)
    generator = np.random.default_rng(_SEED)
    drawn = [generator.choice(total, small, replace=False) for _ in range(DRAWS - 1)]
    return np.stack([np.arange(small), *drawn]).astype(np.int64)


def _border(probability: Callable[[float], float], inside: float, outside: float) -> float:
    """The factor at which the test begins to refuse, between one that it does not refuse and one that it does."""
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        if probability(middle) > 1 - CONFIDENCE:
            inside = middle
        else:
            outside = middle
    return outside
