"""Runs the advisor on a simulated job and holds what it says against the truth."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from advisor_core.result.finding import Finding
from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from advisor_core.sample.causes import Cause
from advisor_core.sample.export.generation import NAMES
from advisor_core.sample.export.recording import RECORDINGS, Level
from advisor_core.sample.job import simulate
from advisor_core.sample.scenarios import Scenario
from advisor_core.sample.text import write_text
from tests.diagnosis.expectations import allowed, names, true_of
from tests.diagnosis.truth import CauseCost, Truth, truth_of

SERIOUS = ("high", "medium")
TIE = 0.9
"""A cause that costs at least this share of the largest one may come first as well."""


@dataclass(frozen=True)
class Prediction:
    """What a rule measured by itself against what the cure saves, ns per step. ``error``: relative to what is saved.
    ``claimed_ns``: what is left of it beside the other findings, which is what a report shows as time at stake."""

    basis: str
    predicted_ns: float
    saved_ns: float
    claimed_ns: float

    @property
    def error(self) -> float:
        return (self.predicted_ns - self.saved_ns) / self.saved_ns

    @property
    def kept(self) -> bool:
        """Exact and estimated impacts are meant to be within 20 %, upper bounds never below what is saved."""
        return self._keeps(self.predicted_ns)

    @property
    def claim_kept(self) -> bool:
        """The same of what the report shows."""
        return self._keeps(self.claimed_ns)

    def _keeps(self, said_ns: float) -> bool:
        error = (said_ns - self.saved_ns) / self.saved_ns
        return error >= -0.01 if self.basis == "upper_bound" else abs(error) <= 0.20


@dataclass(frozen=True)
class CauseOutcome:
    """A cause and the findings that name it. ``rule``: of the first of them, ``None`` if it was not found. ``risk``: it
    must be found although it costs little time."""

    cause: str
    saved_ns: float
    share: float
    rule: str | None
    severity: str | None
    prediction: Prediction | None
    risk: bool = False


@dataclass(frozen=True)
class Outcome:
    """A scenario judged. ``causes``: those worth finding, and behind them risks; ``small``: the others;
    ``false_findings``: rule and title of serious findings that name no cause and are no symptom of one; ``first``: the
    rule that comes first below symptoms; ``ranked``: that finding names the largest cause that costs time (``None``
    without one)."""

    scenario: str
    seed: int
    step_ns: float
    causes: tuple[CauseOutcome, ...]
    small: tuple[CauseOutcome, ...]
    false_findings: tuple[tuple[str, str], ...]
    first: str | None
    ranked: bool | None


def analyse(scenario: Scenario, seed: int, level: Level = "level1", *drop: str) -> RunResult:
    """The advisor's result on one simulated job, from a text export without the files named in ``drop``. Raises
    `RuntimeError` where a rule fails."""
    with tempfile.TemporaryDirectory(prefix="diagnosis-") as folder:
        for rank in write(scenario, seed, Path(folder), level):
            for path in rank.rglob("*"):
                if path.is_file() and path.name.startswith(drop):
                    path.unlink()
        result = run([Path(folder)], RunOptions(), jobs=1)
    refuse_broken(scenario, result)
    return result


def refuse_broken(scenario: Scenario, result: RunResult) -> None:
    """Raise `RuntimeError` where a rule failed."""
    broken = [f"{rule.rule}: {rule.reason.en if rule.reason else ''}" for rule in result.rules if rule.state == "error"]
    if broken:
        raise RuntimeError(f"{scenario.name}: {'; '.join(broken)}")


def write(scenario: Scenario, seed: int, folder: Path, level: Level = "level1") -> list[Path]:
    """The text export of a job that need not be in the catalogue."""
    names, recording = NAMES[scenario.headers], RECORDINGS[level]
    return [write_text(timeline, folder, names, recording) for timeline in simulate(scenario, seed)]


@cache
def diagnose(scenario: Scenario, seed: int) -> Outcome:
    """One scenario: what is true, what was said, and how the two agree."""
    return judge(scenario, seed, truth_of(scenario, seed), analyse(scenario, seed))


def judge(scenario: Scenario, seed: int, truth: Truth, result: RunResult) -> Outcome:
    """Hold the findings against the truth."""
    findings = result.findings
    worth, risks = truth.worth_finding(), truth.risks()
    outcomes = [_cause_outcome(cost, truth, findings) for cost in worth]
    dangers = [_cause_outcome(cost, truth, findings) for cost in risks]
    small = [_cause_outcome(cost, truth, findings) for cost in truth.costs if cost not in worth and cost not in risks]
    fine = allowed(scenario.causes) | true_of(scenario.job)
    wrong = [
        (finding.rule, finding.title.en)
        for finding in findings
        if finding.severity in SERIOUS and finding.rule not in fine
    ]
    chain = _below_symptoms(findings)
    largest = [cost.cause for cost in worth if cost.saved_ns >= TIE * worth[0].saved_ns]
    ranked = None if not worth else any(names(finding, cause) for finding in chain[-1:] for cause in largest)
    return Outcome(
        scenario.name,
        seed,
        truth.step_ns,
        (*outcomes, *(replace(outcome, prediction=None, risk=True) for outcome in dangers)),
        tuple(replace(outcome, prediction=None) for outcome in small),
        tuple(wrong),
        chain[-1].rule if chain else None,
        ranked,
    )


def _cause_outcome(cost: CauseCost, truth: Truth, findings: Sequence[Finding]) -> CauseOutcome:
    cause, saved, share = cost.cause, cost.saved_ns, cost.saved_ns / truth.step_ns
    promise = promise_of(findings, cause)
    if promise is None:
        return CauseOutcome(cause.name, saved, share, None, None, None)
    prediction = Prediction(promise.basis, promise.measured_ns, saved, promise.claimed_ns)
    return CauseOutcome(cause.name, saved, share, promise.lead.rule, promise.lead.severity, prediction)


@dataclass(frozen=True)
class Promise:
    """What the findings of one rule say about a cause, ns per step. ``lead``: the first of them; ``claimed_ns``: what
    is left of it beside the other findings."""

    lead: Finding
    measured_ns: float
    claimed_ns: float

    @property
    def basis(self) -> str:
        """How good the number is."""
        return self.lead.impact.basis


def promise_of(findings: Sequence[Finding], cause: Cause) -> Promise | None:
    """What the findings promise for the cure of a cause; ``None`` where none names it."""
    naming = [finding for finding in findings if names(finding, cause)]
    if not naming:
        return None
    lead = naming[0]
    # A rule may have a finding per operator or place; together they are what it says about the cause. The truth is the
    # cure of this cause alone, so it is held against what the rule measured by itself: of time that several causes
    # share (a slow host, and operators that need not be launched) a finding claims what larger ones leave.
    said = [finding for finding in naming if (finding.rule, finding.rank) == (lead.rule, lead.rank)]
    measured = sum(finding.impact.gross_ns_per_step for finding in said)
    return Promise(lead, measured, sum(finding.impact.ns_per_step for finding in said))


def _below_symptoms(findings: Sequence[Finding]) -> list[Finding]:
    """The first finding, the largest cause that the report shows below it, and so on."""
    by_print = {finding.fingerprint: finding for finding in findings}
    chain = list(findings[:1])
    while chain and chain[-1].explained_by and chain[-1] not in chain[:-1]:
        chain.append(by_print[chain[-1].explained_by[0]])
    return chain
