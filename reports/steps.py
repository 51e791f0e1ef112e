"""The steps of a rank beside each other: how far they lie apart, and which one is unlike the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
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
    whole = _Whole.of(own)
    beside = tuple(_beside(step, whole) for step in own)
    by_length = sorted(beside, key=lambda step: step.wall_ns)
    return Steps(beside, fmean(walls), stdev(walls), by_length[0], by_length[-1])


@dataclass(frozen=True)
class _Whole:
    """Sums over all steps, so that those over all but one cost no look at each: the time of the steps and its square,
    and the time of each ledger path."""

    count: int
    wall_ns: int
    squared: int
    paths: Mapping[str, int]

    @classmethod
    def of(cls, steps: Sequence[LedgerStep]) -> _Whole:
        paths: dict[str, int] = defaultdict(int)
        for step in steps:
            for entry in step.entries:
                paths[entry.path] += entry.ns
        walls = [step.wall_ns for step in steps]
        return cls(len(steps), sum(walls), sum(wall * wall for wall in walls), paths)


def _beside(own: LedgerStep, whole: _Whole) -> StepBeside:
    others, wall_ns = whole.count - 1, whole.wall_ns - own.wall_ns
    usual = wall_ns / others
    difference = own.wall_ns - usual
    apart = difference / usual if usual else 0.0
    unlike = None
    if others >= OTHERS:
        squares = others * (whole.squared - own.wall_ns**2) - wall_ns**2  # whole numbers: nothing is lost in them
        deviation = sqrt(squares / (others * (others - 1)))
        unlike = abs(difference) > DEVIATIONS * deviation and abs(apart) > LEAST_APART
    return StepBeside(own.step, own.wall_ns, apart, unlike, _differs(own, whole, difference) if unlike else ())


def _differs(own: LedgerStep, whole: _Whole, difference: float) -> tuple[tuple[str, int], ...]:
    entries = _entries(own)
    more = {
        path: entries.get(path, 0) - (whole.paths[path] - entries.get(path, 0)) / (whole.count - 1)
        for path in dict.fromkeys((*entries, *whole.paths))
    }
    same_way = {path: round(ns) for path, ns in more.items() if ns * difference > 0}
    named = [path for path, ns in same_way.items() if abs(ns) >= OF_DIFFERENCE * abs(difference)]
    return tuple((path, same_way[path]) for path in sorted(named, key=lambda path: -abs(same_way[path]))[:NAMED])


def _entries(step: LedgerStep) -> Mapping[str, int]:
    entries: dict[str, int] = defaultdict(int)
    for entry in step.entries:
        entries[entry.path] += entry.ns
    return entries
