"""The steps of a rank beside each other: how far they lie apart, and which one is unlike the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from advisor_core.api.renderers import LedgerStep, RunResult

DEVIATIONS = 3.0
"""A step is unlike the others that lies further from their mean than three of their standard deviations: an article on
`torch_npu.profiler` (CANN training camp 2025) leaves such steps out."""

LEAST_APART = 0.05
"""It has to be so much longer or shorter as well: where the others are nearly equal, three deviations are nothing. Our
choice."""

OTHERS = 4
"""So many others tell what is usual, at least; the deviation of fewer says little. Our choice."""

NAMED = 3
"""So many entries of the ledger are named of a step that is unlike the others."""

OF_DIFFERENCE = 0.1
"""An entry is named that makes up such a part of the difference."""


@dataclass(frozen=True)
class StepBeside:
    """A step beside the others. ``apart``: how much longer it is than their mean, as a share of that. ``unlike``: it is
    an outlier; ``None`` where there are too few others. ``differs``: ledger paths that make most of the difference,
    with how much more (ns) it has of each."""

    step: int | None
    wall_ns: int
    apart: float
    unlike: bool | None
    differs: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Steps:
    """The steps of a rank, in order, and what they come to. ``deviation_ns``: of the sample."""

    steps: tuple[StepBeside, ...]
    mean_ns: float
    deviation_ns: float
    shortest: StepBeside
    longest: StepBeside

    @property
    def unlike(self) -> tuple[StepBeside, ...]:
        """The outliers."""
        return tuple(step for step in self.steps if step.unlike)


def steps_of(result: RunResult, role: str | None, rank: int | None) -> Steps | None:
    """The steps of a rank; ``None`` where fewer than two were recorded."""
    own = [step for step in result.ledger if step.rank == rank and step.role == role]
    if len(own) < 2:
        return None
    walls = [step.wall_ns for step in own]
    beside = tuple(_beside(own, place) for place in range(len(own)))
    by_length = sorted(beside, key=lambda step: step.wall_ns)
    return Steps(beside, fmean(walls), stdev(walls), by_length[0], by_length[-1])


def _beside(steps: Sequence[LedgerStep], place: int) -> StepBeside:
    own, others = steps[place], [*steps[:place], *steps[place + 1 :]]
    walls = [step.wall_ns for step in others]
    usual = fmean(walls)
    difference = own.wall_ns - usual
    apart = difference / usual if usual else 0.0
    unlike = None
    if len(others) >= OTHERS:
        unlike = abs(difference) > DEVIATIONS * stdev(walls) and abs(apart) > LEAST_APART
    return StepBeside(own.step, own.wall_ns, apart, unlike, _differs(own, others, difference) if unlike else ())


def _differs(own: LedgerStep, others: Sequence[LedgerStep], difference: float) -> tuple[tuple[str, int], ...]:
    more: dict[str, float] = defaultdict(float)
    for path, ns in _entries(own).items():
        more[path] += ns
    for step in others:
        for path, ns in _entries(step).items():
            more[path] -= ns / len(others)
    same_way = {path: round(ns) for path, ns in more.items() if ns * difference > 0}
    named = [path for path, ns in same_way.items() if abs(ns) >= OF_DIFFERENCE * abs(difference)]
    return tuple((path, same_way[path]) for path in sorted(named, key=lambda path: -abs(same_way[path]))[:NAMED])


def _entries(step: LedgerStep) -> Mapping[str, int]:
    entries: dict[str, int] = defaultdict(int)
    for entry in step.entries:
        entries[entry.path] += entry.ns
    return entries
