"""Mean steps: of each rank, of all ranks, of each role, and the iteration that roles make up. Computed here alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from advisor_core.result.run import LedgerStep, MeanStep

Lane = tuple[str | None, int]
"""A rank of a role; the role is ``None`` unless roles were profiled one by one."""


def rank_means(ledger: Iterable[LedgerStep]) -> dict[Lane, MeanStep]:
    """The mean step of each rank, by rank; of several roles, by role in the order of the ledger, and rank."""
    by_lane: dict[Lane, list[LedgerStep]] = {}
    for step in ledger:
        by_lane.setdefault((step.role, step.rank), []).append(step)
    roles = list(dict.fromkeys(role for role, _ in by_lane))
    ordered = sorted(by_lane.items(), key=lambda item: (roles.index(item[0][0]), item[0][1]))
    return {
        (role, rank): _mean(
            role, rank, len(steps), [{entry.path: entry.ns for entry in step.entries} for step in steps]
        )
        for (role, rank), steps in ordered
    }


def all_means(ranks: Mapping[Lane, MeanStep]) -> list[MeanStep]:
    """The mean steps that a result holds: of the whole, of each role where there are several, of each rank."""
    if not ranks:
        return []
    roles = dict.fromkeys(role for role, _ in ranks)
    by_role = [_of_ranks([mean for mean in ranks.values() if mean.role == role], role) for role in roles]
    whole = by_role if list(roles) == [None] else [_one_after_the_other(by_role), *by_role]
    return [*whole, *ranks.values()]


def _of_ranks(means: Sequence[MeanStep], role: str | None) -> MeanStep:
    return _mean(role, None, max(mean.steps for mean in means), [mean.entries for mean in means])


def _one_after_the_other(by_role: Sequence[MeanStep]) -> MeanStep:
    sums = _sums(mean.entries for mean in by_role)
    steps = max(mean.steps for mean in by_role)
    return MeanStep(role=None, rank=None, steps=steps, wall_ns=sum(sums.values()), entries=sums)


def _mean(role: str | None, rank: int | None, steps: int, of: Sequence[Mapping[str, int]]) -> MeanStep:
    """Entries are rounded so that they add up to the step: down, and up again where most was lost by it."""
    sums, count = _sums(of), len(of)
    entries = {path: ns // count for path, ns in sums.items()}
    wall = sum(sums.values()) // count
    most_lost = sorted(sums, key=lambda path: (-(sums[path] % count), path))
    for path in most_lost[: wall - sum(entries.values())]:
        entries[path] += 1
    return MeanStep(role=role, rank=rank, steps=steps, wall_ns=wall, entries=entries)


def _sums(of: Iterable[Mapping[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for entries in of:
        for path, ns in entries.items():
            sums[path] = sums.get(path, 0) + ns
    return sums
