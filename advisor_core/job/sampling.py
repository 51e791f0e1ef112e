"""Margin between the mean of a few recorded steps and that of a long run.

Steps differ: a data loader takes longer for one batch than for another. The mean of n of them is off by up to
``t * s / sqrt(n)`` in 95 of 100 recordings, where ``s`` is their standard deviation and ``t`` the quantile of Student's
distribution for n - 1 degrees of freedom.
"""

from __future__ import annotations

import math

import numpy as np

from advisor_core.facts.intervals import Ints

STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""The 97.5 % quantiles for 1 to 10 degrees of freedom, as any table of the distribution has them. For more of them the
last is used: they fall to 1.96 only."""


MOST_STEPS = 100
"""More steps are not asked for: recordings become too large for viewers (docs/index.md#how-to-profile). Our choice."""


def margin_ns(steps_ns: Ints) -> float:
    """By how much the mean over many such steps may be off from the mean of these, ns. Of a single step, whose spread
    is not known, 0: a range then does not have this part."""
    count = len(steps_ns)
    if count < 2:
        return 0.0
    return _quantile(count) * float(np.std(steps_ns, ddof=1)) / math.sqrt(count)


def steps_for(steps_ns: Ints, within_ns: float) -> int:
    """The number of steps, which differ as these do, to record for their mean to be off by at most ``within_ns``, up
    to `MOST_STEPS`; of a single step, whose spread is not known, 0."""
    if len(steps_ns) < 2:
        return 0
    spread = float(np.std(steps_ns, ddof=1))
    enough = (n for n in range(2, MOST_STEPS) if _quantile(n) * spread <= within_ns * math.sqrt(n))
    return next(enough, MOST_STEPS)


def _quantile(count: int) -> float:
    return STUDENT[min(count - 1, len(STUDENT)) - 1]
