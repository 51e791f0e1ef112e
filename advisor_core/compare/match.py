"""Pairs the ranks and the steps of two runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from advisor_core.result.comparison import RankDifference, StepDifference
from advisor_core.result.layout import coordinates
from advisor_core.result.run import LedgerStep, MeanStep, Profile, RunResult
from advisor_core.run.compose_mean_steps import Lane, all_means, rank_means


@dataclass(frozen=True)
class Side:
    """A result, and the ranks of it that are compared. ``series``: the steps, in ns, of a baseline, which knows no
    single ranks."""

    result: RunResult
    lanes: Sequence[Lane]
    series: Sequence[int] | None = None

    @cached_property
    def ledger(self) -> list[LedgerStep]:
        """The steps of these ranks."""
        wanted = set(self.lanes)
        return [step for step in self.result.ledger if (step.role, step.rank) in wanted]

    @cached_property
    def means(self) -> dict[Lane, MeanStep]:
        """The mean step of each of these ranks."""
        return rank_means(self.ledger)

    @cached_property
    def mean(self) -> MeanStep:
        """Their mean step together; of several roles the iteration that they make up. Where no ranks are compared, the
        mean step of the result."""
        return all_means(self.means)[0] if self.lanes else self.result.mean_steps[0]

    @cached_property
    def steps(self) -> list[tuple[int | None, float]]:
        """Id and ns of each step that all of these ranks have: the mean over the ranks, and of several roles the sum
        of the steps in the same place. Empty where the roles have different numbers of steps."""
        if self.series is not None:
            return [(None, float(ns)) for ns in self.series]
        roles = dict.fromkeys(role for role, _ in self.lanes)
        series = [self._of_role(role) for role in roles]
        if len({len(steps) for steps in series}) > 1:
            return []
        return [(of_roles[0][0], sum(ns for _, ns in of_roles)) for of_roles in zip(*series, strict=True)]

    def _of_role(self, role: str | None) -> list[tuple[int | None, float]]:
        ranks = [dict(_keyed(self.ledger, lane)) for lane in self.lanes if lane[0] == role]
        shared = [key for key in ranks[0] if all(key in steps for steps in ranks)]
        return [(key[0], sum(steps[key] for steps in ranks) / len(ranks)) for key in shared]

    @property
    def durations(self) -> npt.NDArray[np.float64]:
        """ns of each of the steps."""
        return np.array([ns for _, ns in self.steps], dtype=np.float64)


def _keyed(ledger: Sequence[LedgerStep], lane: Lane) -> Iterator[tuple[tuple[int | None, int], int]]:
    """The steps of a rank by their id, and by how often it has come before: a step without an id by its place."""
    count: dict[int | None, int] = {}
    for step in ledger:
        if (step.role, step.rank) == lane:
            seen = count.get(step.step, 0)
            count[step.step] = seen + 1
            yield (step.step, seen), step.wall_ns


@dataclass(frozen=True)
class Match:
    """Two results side by side. ``pairs``: ranks that are in the same place."""

    before: Side
    after: Side
    pairs: Sequence[tuple[Lane, Lane]]

    @property
    def of_baseline(self) -> bool:
        """Whether the earlier side is a baseline."""
        return self.before.series is not None

    @property
    def vendors(self) -> tuple[str, str]:
        """The vendors of the devices of both sides; '' unknown."""
        before, after = (
            ", ".join(sorted({source.vendor for source in side.result.inputs if source.vendor}))
            for side in (self.before, self.after)
        )
        return before, after

    @property
    def across_vendors(self) -> bool:
        """Whether the devices are known to be of different vendors."""
        return across_vendors(self.before.result, self.after.result)

    @property
    def unmatched(self) -> tuple[list[Lane], list[Lane]]:
        """Recorded ranks of each side that have no partner on the other."""
        sides = (self.before, self.after)
        return _rest(sides[0]), _rest(sides[1])

    def ranks(self) -> list[RankDifference]:
        """The mean steps of the ranks side by side."""
        return [
            RankDifference(
                role=own[0],
                rank=own[1],
                rank_after=other[1],
                before_ns=(before := self.before.means[own].wall_ns),
                after_ns=(after := self.after.means[other].wall_ns),
                difference_ns=after - before,
            )
            for own, other in self.pairs
        ]

    def steps(self) -> list[StepDifference]:
        """The steps side by side: by id where both sides have the same ids, else in order."""
        before, after = self.before.steps, self.after.steps
        by_id = dict(after)
        if None not in by_id and len(by_id) == len(after) and {step for step, _ in before} == set(by_id):
            after = [(step, by_id[step]) for step, _ in before]
        return [
            StepDifference(step=step, step_after=other, before_ns=round(ns), after_ns=round(other_ns))
            for (step, ns), (other, other_ns) in zip(before, after, strict=False)
        ]


def whole(result: RunResult) -> Side:
    """A result with all of its ranks."""
    return Side(result, _lanes(result))


def _rest(side: Side) -> list[Lane]:
    return [lane for lane in _lanes(side.result) if lane not in side.lanes]


def across_vendors(before: RunResult, after: RunResult) -> bool:
    """Whether the devices of two results are known to be of different vendors."""
    one, other = ({source.vendor for source in result.inputs if source.vendor} for result in (before, after))
    return bool(one and other) and one != other


def matched(before: RunResult, after: RunResult) -> Match:
    """The ranks of both results that have a ledger, those in the same place of the layout side by side. Across vendors
    the mean of all ranks is compared: their numbers say nothing of one another."""
    pairs = [pair for role in _roles(before) for pair in _pairs(role, before, after)]
    if across_vendors(before, after):
        return Match(whole(before), whole(after), pairs)
    return Match(Side(before, [own for own, _ in pairs]), Side(after, [other for _, other in pairs]), pairs)


def _roles(result: RunResult) -> list[str | None]:
    return list(dict.fromkeys(role for role, _ in _lanes(result)))


def _lanes(result: RunResult) -> list[Lane]:
    return list(dict.fromkeys((step.role, step.rank) for step in result.ledger))


def _pairs(role: str | None, before: RunResult, after: RunResult) -> list[tuple[Lane, Lane]]:
    own, other = ([lane for lane in _lanes(result) if lane[0] == role] for result in (before, after))
    places = {_place(rank, after.profile, before.profile): (role, rank) for _, rank in other}
    pairs = [
        (lane, places[place]) for lane in own if (place := _place(lane[1], before.profile, after.profile)) in places
    ]
    if not pairs and len(own) == len(other) == 1:  # one rank for all on both sides, whichever it is
        return [(own[0], other[0])]
    return pairs


def _place(rank: int, profile: Profile, other: Profile) -> tuple[int, ...]:
    """The coordinates of a rank in the layout, where both layouts are known and differ; else its number."""
    if not profile.parallel or not other.parallel or profile.parallel == other.parallel:
        return (rank,)
    return coordinates(rank, profile.parallel)
