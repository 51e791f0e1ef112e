"""Scores over many counterfactuals: errors of steps and of savings, ranges, and what no prediction can avoid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median

from tests.diagnosis.counterfactuals.measure import Counterfactual

NEAR = 0.05
"""The error that the joint step of all cures may have."""


@dataclass(frozen=True)
class Errors:
    """Absolute relative errors."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, errors: Iterable[float | None]) -> Errors:
        """Of those that there are."""
        return cls(tuple(sorted(abs(error) for error in errors if error is not None)))

    @property
    def median(self) -> float:
        """NaN without any."""
        return median(self.values) if self.values else float("nan")

    @property
    def p95(self) -> float:
        """The smallest error that 95 % do not exceed; NaN without any."""
        return self.values[ceil(0.95 * len(self.values)) - 1] if self.values else float("nan")


@dataclass(frozen=True)
class Score:
    """``count``: sets of cures; ``predicted``: of them, those that the report predicts; ``silent``: of the others,
    those where what has no finding wins too little; ``inside``: of the predicted ones, those whose truth is in the
    promised range; ``near``: those whose step is within 5 %; ``alike``: the steps of those whose recording is
    representative; ``steady``: of those for which the report asks for no more steps; ``asked`` and ``inside_asked``:
    steps and ranges where the job is recorded again as the report asks; ``widths``: of the promised
    ranges, over the true savings; ``noise``: how far the truths may be off."""

    count: int
    predicted: int
    silent: int
    inside: int
    near: int
    steps: Errors
    alike: Errors
    steady: Errors
    asked: Errors
    inside_asked: int
    savings: Errors
    widths: Errors
    noise: Errors


def score(found: Sequence[Counterfactual]) -> Score:
    """Everything in one row."""
    return Score(
        count=len(found),
        predicted=sum(one.predicted_ns is not None for one in found),
        silent=sum(bool(one.rightly_silent) for one in found),
        inside=sum(bool(one.inside) for one in found),
        near=sum(one.step_error is not None and abs(one.step_error) <= NEAR for one in found),
        steps=Errors.of(one.step_error for one in found),
        alike=Errors.of(one.step_error for one in found if one.representative),
        steady=Errors.of(one.step_error for one in found if one.steps_wanted is None),
        asked=Errors.of(one.error_as_asked for one in found),
        inside_asked=sum(bool(one.inside_as_asked) for one in found),
        savings=Errors.of(one.saving_error for one in found),
        widths=Errors.of(one.width for one in found),
        noise=Errors.of(one.noise for one in found),
    )
