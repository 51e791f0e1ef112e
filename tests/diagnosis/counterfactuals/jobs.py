"""The jobs that are judged: those of `jobs.yaml`, those held out, in doses, and with physics that no model shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Final

from advisor_core.sample.causes import Cause
from advisor_core.sample.machine.physics import Physics
from advisor_core.sample.scenarios import Scenario, jobs_from
from advisor_core.sample.setup import Recorded

PARTS: Final = {"seen": "jobs.yaml", "held out": "held_out.yaml"}
DOSES: Final = (0.25, 0.5, 0.75)
CLOCKS_APART_NS: Final = 1_700_000


@dataclass(frozen=True)
class Case:
    """A job as it is recorded. ``part``: seen or held out; ``dose``: of all its causes that have one."""

    scenario: Scenario
    part: str
    dose: float = 1.0
    unshared: bool = False

    @property
    def cures(self) -> list[tuple[Cause, ...]]:
        """The sets of causes that are taken away: each, any two, and all. In doses each that has one, and all."""
        causes = self.scenario.causes
        if self.dose < 1:
            return [*((cause,) for cause in causes if cause.divisible), causes]
        sets = [part for count in (1, 2) for part in combinations(causes, count)]
        return sets if len(causes) <= 2 else [*sets, causes]


def physics_of(ranks: int) -> Physics:
    """What the unshared physics is here: the ranks are on two hosts whose clocks differ."""
    return Physics(
        contention=(0.1, 0.4),
        wake_up_ns=50_000,
        kernel_jitter=0.03,
        host_jitter=0.3,
        clock_offsets_ns=(0, CLOCKS_APART_NS),
        ranks_per_host=max(1, ranks // 2),
    )


def cases(only: Sequence[str] = ()) -> list[Case]:
    """All cases, or those of some jobs. Raises :class:`ValueError` for a job that there is not."""
    jobs = [(part, job) for part, name in PARTS.items() for job in jobs_from(Path(__file__).with_name(name))]
    if strange := set(only) - {job.name for _, job in jobs}:
        raise ValueError(f"no job {', '.join(sorted(strange))}; there are: {', '.join(job.name for _, job in jobs)}")
    found = []
    for part, job in jobs:
        if only and job.name not in only:
            continue
        other = replace(job, job=replace(job.job, physics=physics_of(job.ranks)))
        found += [Case(job, part), Case(other, part, unshared=True)]
        if not isinstance(job.job.training, Recorded):  # there each cause is there or not
            found += [Case(_dosed(job, dose), part, dose) for dose in DOSES if any(c.divisible for c in job.causes)]
    return found


def _dosed(job: Scenario, dose: float) -> Scenario:
    return replace(job, causes=tuple(replace(c, dose=dose) if c.divisible else c for c in job.causes))
