"""What each cause of a scenario really costs: the step with it less the step without it, everything else equal."""

from __future__ import annotations

import gc
from dataclasses import dataclass, replace

from advisor_core.sample.causes import Cause
from advisor_core.sample.job import simulate
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


LONG_NS = 1_000_000_000
"""Steps vary: a run goes on for at least so long, so that two runs of which one is cured can be compared."""


_KNOWN: dict[tuple[str, str, int], float] = {}
"""Steps that this process has simulated, by name and seed, which give the random numbers, and all that the job is."""


def step_ns(scenario: Scenario, seed: int) -> float:
    """Time of a step of a long run: what further steps add, so that start and end do not count. The same job is
    simulated once, also over several runs: without its causes it is the same in every dose of them."""
    key = (scenario.name, repr(scenario.setup), seed)
    if key not in _KNOWN:
        _KNOWN[key] = kept(f"{scenario.name}\n{scenario.setup!r}", seed, lambda: _simulated_ns(scenario, seed))
    return _KNOWN[key]


def _simulated_ns(scenario: Scenario, seed: int) -> float:
    job, steps = scenario.job, scenario.steps
    short = _run_ns(scenario, seed)
    more = steps * -(-LONG_NS // short)
    longer = replace(scenario, job=replace(job, training=replace(job.training, steps=steps + more)))
    return (_run_ns(longer, seed) - short) / more


def _run_ns(scenario: Scenario, seed: int) -> int:
    """From the start of the profile to the moment when every rank has finished."""
    enabled = gc.isenabled()
    gc.disable()  # else all that was recorded is looked through when the simulation has ended, and then thrown away
    try:
        timelines = simulate(scenario, seed)
        return max(timeline.end for timeline in timelines) - min(timeline.start for timeline in timelines)
    finally:
        if enabled:
            gc.enable()


def truth_of(scenario: Scenario, seed: int) -> Truth:
    """The cost of every cause by itself, the others left in place, with the same seed."""
    step = step_ns(scenario, seed)
    costs = [CauseCost(cause, step - step_ns(scenario.cured(cause), seed)) for cause in scenario.causes]
    return Truth(step, tuple(costs))
