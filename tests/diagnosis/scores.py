"""Scores over many outcomes: detection, precision, ranking and prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from tests.diagnosis.diagnosis import Outcome, Prediction


@dataclass(frozen=True)
class CauseScore:
    """One cause over all scenarios that have it. ``serious``: found at medium or high severity. ``errors``: relative
    errors of the predictions, ``kept`` how many of them keep what their basis promises. ``quiet``: too small to be
    worth finding."""

    cause: str
    present: int
    found: int
    serious: int
    firsts: tuple[int, int]
    predictions: tuple[Prediction, ...]
    quiet: int
    missed_in: tuple[str, ...]

    @property
    def kept(self) -> int:
        return sum(prediction.kept for prediction in self.predictions)


def by_cause(outcomes: Sequence[Outcome]) -> list[CauseScore]:
    """A score per cause, in the order of first appearance."""
    names = dict.fromkeys(c.cause for o in outcomes for c in (*o.causes, *o.small))
    return [_score(name, outcomes) for name in names]


def _score(name: str, outcomes: Sequence[Outcome]) -> CauseScore:
    here = [(o, c) for o in outcomes for c in o.causes if c.cause == name]
    largest = [o for o, c in here if c is o.causes[0] and not c.risk]
    return CauseScore(
        name,
        present=len(here),
        found=sum(c.rule is not None for _, c in here),
        serious=sum(c.severity in ("high", "medium") for _, c in here),
        firsts=(sum(bool(o.ranked) for o in largest), len(largest)),
        predictions=tuple(c.prediction for _, c in here if c.prediction is not None),
        quiet=sum(c.cause == name for o in outcomes for c in o.small),
        missed_in=tuple(o.scenario for o, c in here if c.rule is None),
    )


@dataclass(frozen=True)
class Totals:
    """``true_positives``: causes found at medium or high; ``false_positives``: serious findings that name no cause and
    are no symptom of one; ``healthy_alarms``: of those, in jobs without causes."""

    causes: int
    found: int
    serious: int
    false_positives: int
    healthy: int
    healthy_alarms: int
    ranked: int
    rankable: int
    predictions: tuple[Prediction, ...]

    @property
    def recall(self) -> float:
        return self.found / self.causes if self.causes else 1.0

    @property
    def precision(self) -> float:
        said = self.serious + self.false_positives
        return self.serious / said if said else 1.0

    @property
    def top1(self) -> float:
        return self.ranked / self.rankable if self.rankable else 1.0

    @property
    def kept(self) -> int:
        return sum(prediction.kept for prediction in self.predictions)

    @property
    def claims_kept(self) -> int:
        return sum(prediction.claim_kept for prediction in self.predictions)

    def median_error(self, *bases: str) -> float:
        """Median of the absolute relative errors of predictions with these bases; NaN without any."""
        errors = [abs(p.error) for p in self.predictions if p.basis in bases]
        return median(errors) if errors else float("nan")


def total(outcomes: Sequence[Outcome]) -> Totals:
    """Everything in one row."""
    causes = [c for o in outcomes for c in o.causes]
    healthy = [o for o in outcomes if not o.causes and not o.small]
    return Totals(
        causes=len(causes),
        found=sum(c.rule is not None for c in causes),
        serious=sum(c.severity in ("high", "medium") for c in causes),
        false_positives=sum(len(o.false_findings) for o in outcomes),
        healthy=len(healthy),
        healthy_alarms=sum(len(o.false_findings) for o in healthy),
        ranked=sum(bool(o.ranked) for o in outcomes),
        rankable=sum(o.ranked is not None for o in outcomes),
        predictions=tuple(c.prediction for c in causes if c.prediction is not None),
    )
