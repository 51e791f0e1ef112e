"""What each cause of a scenario really costs: the step with it less the step without it, everything else equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from math import sqrt

import numpy as np
import numpy.typing as npt

from advisor_core.sample.causes import Cause
from advisor_core.sample.job import Times, times
from advisor_core.sample.machine.draws import Draws
from advisor_core.sample.scenarios import Scenario
from tests.diagnosis.kept_truths import kept

WORTH_FINDING = 0.03
"""A cause of this share of the step must be found."""


@dataclass(frozen=True)
class CauseCost:
    """``saved_ns``: by how much a step becomes shorter with the cure."""

    cause: Cause
    saved_ns: float


@dataclass(frozen=True)
class Truth:
    """``step_ns``: time of a step of a long run, of the job as a whole."""

    step_ns: float
    costs: tuple[CauseCost, ...]

    def worth_finding(self) -> list[CauseCost]:
        """The causes that must be found, largest first."""
        found = [cost for cost in self.costs if cost.saved_ns >= WORTH_FINDING * self.step_ns]
        return sorted(found, key=lambda cost: -cost.saved_ns)

    def risks(self) -> list[CauseCost]:
        """The causes that must be found although they cost little or no time yet."""
        return [cost for cost in self.costs if cost.cause.risk and cost.saved_ns < WORTH_FINDING * self.step_ns]


LONG_NS = 250_000_000
LEAST_STEPS = 4
"""A run goes on for at least so long, and so many steps, behind the steps that are recorded."""
PRECISE = 0.005
"""Runs are added until the mean step is known to this share of it with a confidence of 95 %: a tenth of the error that
a prediction may have. Our choice."""
MOST_PAIRS = 10
"""Runs are added up to so many pairs: the page tells how precise truths are."""


@dataclass(frozen=True)
class LongRun:
    """Time of a step of a long run of a job as a whole, and how far it may be off with a confidence of 95 %, ns."""

    step_ns: float
    margin_ns: float

    @classmethod
    def of(cls, steps: npt.NDArray[np.float64]) -> LongRun:
        """By the mean of some steps and Student's distribution."""
        error = float(steps.std(ddof=1)) / sqrt(len(steps))
        return cls(float(steps.mean()), _quantile(len(steps) - 1) * error)

    @property
    def precise(self) -> bool:
        """Whether it needs no further runs."""
        return self.margin_ns <= PRECISE * self.step_ns


def _quantile(freedom: int) -> float:
    """The 97.5 % quantile of Student's distribution, within 1 % from three degrees of freedom on.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    return 1.960 + 2.372 / freedom + 2.823 / freedom**2 + 2.556 / freedom**3


_KNOWN: dict[tuple[str, str, int], LongRun] = {}
"""Long runs that this process has simulated, by name and seed, which give the random numbers, and all that the job is.
"""


def long_run(scenario: Scenario, seed: int) -> LongRun:
    """A step of a long run: what further steps add to those that are recorded, so that start and end do not count. The
    same job is simulated once, also over several runs: without its causes it is the same in every dose of them."""
    key = (scenario.name, repr(scenario.setup), seed)
    if key not in _KNOWN:
        found = kept(f"{scenario.name}\n{scenario.setup!r}", seed, lambda: astuple(_simulated(scenario, seed)))
        _KNOWN[key] = LongRun(*found)
    return _KNOWN[key]


def step_ns(scenario: Scenario, seed: int) -> float:
    """Time of a step of a long run, ns."""
    return long_run(scenario, seed).step_ns


def _simulated(scenario: Scenario, seed: int) -> LongRun:
    """Of pairs of runs on the same machine: in the second of a pair all that was longer than usual is shorter."""
    machine = f"{scenario.name}/{seed}"
    steps = _steps(scenario, max(LEAST_STEPS, -(-LONG_NS // _pilot_ns(scenario, machine))))
    runs = times(steps, (Draws(machine, run, mirrored=m) for run in range(MOST_PAIRS) for m in (False, True)))
    pairs: list[npt.NDArray[np.float64]] = []
    for one, other in zip(runs, runs, strict=True):
        pairs.append((_after(one, scenario.steps) + _after(other, scenario.steps)) / 2)
        alike = _differ(pairs)
        found = LongRun.of(np.mean(pairs, axis=0) if alike else np.concatenate(pairs))
        if found.precise or alike:
            break
    return found


def _after(run: Times, steps: int) -> npt.NDArray[np.float64]:
    """How long each step took behind the first ones."""
    return np.diff(np.asarray(run.steps[steps - 1 :], dtype=np.float64))


def _differ(pairs: Sequence[npt.NDArray[np.float64]]) -> bool:
    """Whether steps differ in each run alike, as by the tokens that go to an expert, far more than from run to run:
    more runs do not help then, and one run tells as much as several."""
    if len(pairs) < 3:
        return False
    of_runs = float(np.var(pairs, axis=0, ddof=1).mean()) / len(pairs)
    return of_runs < 0.1 * float(np.mean(pairs, axis=0).var(ddof=1))


def _steps(scenario: Scenario, more: int) -> Scenario:
    """The job for more steps than are recorded."""
    job = scenario.job
    return replace(scenario, job=replace(job, training=replace(job.training, steps=scenario.steps + more)))


def _pilot_ns(scenario: Scenario, machine: str) -> int:
    """About how long a step is."""
    (run,) = times(scenario, [Draws(machine)])
    return (run.steps[-1] - run.start) // scenario.steps


def truth_of(scenario: Scenario, seed: int) -> Truth:
    """The cost of every cause by itself, the others left in place, with the same seed."""
    step = step_ns(scenario, seed)
    costs = [CauseCost(cause, step - step_ns(scenario.cured(cause), seed)) for cause in scenario.causes]
    return Truth(step, tuple(costs))
