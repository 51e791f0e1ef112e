"""The plan: the cures of the findings in the order that wins most, and what each of them wins."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from advisor_core.contracts.cure import AsPeers
from advisor_core.job.job_replay import JobReplay
from advisor_core.result.plan import Action, Plan

WORTH = 0.005
"""Share of the step from which a change is worth a place in the plan. A convention: what is less is within the error of
the replay (docs/the-replay.md)."""

MOST = 12
"""A plan has at most so many changes: a reader follows the first few, and each costs replays of the whole job."""


def plan(replayed: JobReplay) -> Plan | None:
    """The plan of a job; ``None`` where it has nothing that could be replayed."""
    step = replayed.step_ns()
    if step <= 0:
        return None
    alone = _gains(replayed, replayed.cures, ())
    ordered, covered, rivals = _in_order(replayed, alone, WORTH * step)
    afters = replayed.steps_ns([ordered[: number + 1] for number in range(len(ordered))])
    without = replayed.steps_ns([set(ordered) - {name} for name in ordered])
    ranges = replayed.saving_ranges_ns([[name] for name in ordered])
    gains = [before - after for before, after in itertools.pairwise([step, *afters])]
    needs = _needs(replayed, ordered, alone, gains)
    actions = [
        Action(
            finding=name,
            alone_ns=alone[name],
            range_ns=ranges[number],
            last_ns=without[number] - afters[-1],
            gain_ns=gains[number],
            step_after_ns=afters[number],
            needs=needs.get(name, []),
            covers=sorted(other for other, by in covered.items() if by == name),
            excludes=sorted(rivals.get(name, ())),
        )
        for number, name in enumerate(ordered)
    ]
    return Plan(
        step_ns=step,
        after_ns=afters[-1] if afters else step,
        after_range_ns=replayed.after_range_ns(ordered),
        steps_wanted=replayed.steps_wanted(ordered),
        varies=replayed.varies(ordered),
        absent=replayed.absent,
        actions=actions,
        parts_before=replayed.parts(),
        parts_after=replayed.parts(ordered),
        limit=replayed.limit(),
        next_limit=replayed.limit(ordered),
    )


def _in_order(
    replayed: JobReplay, alone: dict[str, int], worth: float
) -> tuple[list[str], dict[str, str], dict[str, set[str]]]:
    """The change that wins most on top of those before it, again and again, up to the last that is worth it; the others
    that are worth it by themselves, with the change of the plan that wins their time; and of each change those that are
    worth it and cannot be combined with it.

    A change that says how a rank becomes quicker comes before one that only says that it does, and the change of a
    cause before that of what it explains.
    """
    ordered: list[str] = []
    covered: dict[str, str] = {}
    rivals: dict[str, set[str]] = {}
    vague = {name for name in alone if any(isinstance(cure, AsPeers) for cure in replayed.cures[name].of_job)}
    for group in (set(alone) - vague, vague):
        gains = _gains(replayed, [name for name in group if not _excluded(replayed, name, ordered)], ordered)
        if group is vague:  # mostly won by what says how
            gains = {name: gain for name, gain in gains.items() if 2 * gain >= alone[name]}
            covered |= {name: ordered[0] for name in vague - gains.keys() if ordered and alone[name] >= worth}
        while gains and len(ordered) < MOST:
            first = [name for name in gains if not _explained(replayed, name, gains, worth)]
            best: str | None = min(first or gains, key=lambda name: (-gains[name], name))
            if best is None or gains[best] < worth:
                best = _together(replayed, ordered, gains, worth)
            if best is None:
                break
            best = _better(replayed, ordered, best, gains, worth)
            excluded = replayed.cures[best].excludes & gains.keys()
            rivals[best] = {name for name in excluded if alone[name] >= worth}
            for name in (best, *excluded):
                del gains[name]
            ordered.append(best)
            won = _gains(replayed, gains, ordered)
            covered |= {name: best for name in gains if gains[name] >= worth > won[name]}
            gains = won
        for name in gains:
            if alone[name] >= worth > gains[name] and name not in covered and ordered:
                covered[name] = ordered[0]
    return ordered, {name: by for name, by in covered.items() if name not in ordered}, rivals


def _excluded(replayed: JobReplay, name: str, ordered: Sequence[str]) -> bool:
    """True where a change of the plan rules this one out."""
    return not replayed.cures[name].excludes.isdisjoint(ordered)


def _explained(replayed: JobReplay, name: str, gains: Mapping[str, int], worth: float) -> bool:
    """True where the finding of another change that is worth it explains that of this one."""
    return any(gains[other] >= worth and name in replayed.cures[other].explains for other in gains if other != name)


def _better(replayed: JobReplay, ordered: Sequence[str], best: str, gains: Mapping[str, int], worth: float) -> str:
    """Of this change and those that it excludes the one with which the step is shortest, when all that can be combined
    with it is changed, too."""
    rivals = sorted(name for name in replayed.cures[best].excludes & gains.keys() if gains[name] >= worth)
    if not rivals:
        return best
    choices = [best, *rivals]
    steps = replayed.steps_ns([_combinable(replayed, [*ordered, name], gains) for name in choices])
    return min(zip(steps, choices, strict=True), key=lambda option: option[0])[1]


def _combinable(replayed: JobReplay, chosen: Sequence[str], gains: Mapping[str, int]) -> list[str]:
    """These changes and all others that can be combined with them and with one another, those that win most first."""
    found = list(chosen)
    for name in sorted(gains, key=lambda name: (-gains[name], name)):
        if name not in found and not _excluded(replayed, name, found):
            found.append(name)
    return found


def _together(replayed: JobReplay, ordered: Sequence[str], gains: Mapping[str, int], worth: float) -> str | None:
    """Of changes that win nothing alone: the one that the others lose most without, where all of them are worth it;
    ``None`` where they are not."""
    rest = sorted(set(_combinable(replayed, ordered, gains)) - set(ordered))
    if not rest:
        return None
    whole = replayed.step_ns([*ordered, *rest])
    if replayed.step_ns(ordered) - whole < worth:
        return None
    without = replayed.steps_ns([[*ordered, *(other for other in rest if other != name)] for name in rest])
    lost = {name: after - whole for name, after in zip(rest, without, strict=True)}
    best = max(rest, key=lambda name: lost[name])
    return best if lost[best] >= worth else None


def _needs(
    replayed: JobReplay, ordered: Sequence[str], alone: Mapping[str, int], gains: Sequence[int]
) -> dict[str, list[str]]:
    """By change: those before it without which it wins less than half of what it wins with them. ``gains``: what each
    wins on top of those before it."""
    doubtful = [number for number, name in enumerate(ordered) if 2 * alone[name] < gains[number]]
    asked = [(number, other) for number in doubtful for other in ordered[:number]]
    without = [[one for one in ordered[:number] if one != other] for number, other in asked]
    steps = replayed.steps_ns(
        [*without, *([*rest, ordered[number]] for (number, _), rest in zip(asked, without, strict=True))]
    )
    found: dict[str, list[str]] = defaultdict(list)
    for (number, other), before, after in zip(asked, steps[: len(asked)], steps[len(asked) :], strict=True):
        if 2 * (before - after) < gains[number]:
            found[ordered[number]].append(other)
    return found


def _gains(replayed: JobReplay, names: Iterable[str], others: Sequence[str]) -> dict[str, int]:
    """The time that each of these changes wins on top of the others, ns, by name in order."""
    ordered = sorted(names)
    before, *after = replayed.steps_ns([others, *([*others, name] for name in ordered)])
    return {name: before - step for name, step in zip(ordered, after, strict=True)}
