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


def margin_ns(steps_ns: Ints) -> float:
    """By how much the mean over many such steps may be off from the mean of these, ns. Of a single step, whose spread
    is not known, 0: a range then does not have this part."""
    count = len(steps_ns)
    if count < 2:
        return 0.0
    quantile = STUDENT[min(count - 1, len(STUDENT)) - 1]
    return quantile * float(np.std(steps_ns, ddof=1)) / math.sqrt(count)
