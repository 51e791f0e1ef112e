"""The plan: the cures of the findings in the order that wins most, and what each of them wins."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

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
    ordered, covered = _in_order(replayed, alone, WORTH * step)
    afters = replayed.steps_ns([ordered[: number + 1] for number in range(len(ordered))])
    without = replayed.steps_ns([set(ordered) - {name} for name in ordered])
    actions, before = [], step
    for number, (name, after) in enumerate(zip(ordered, afters, strict=True)):
        actions.append(
            Action(
                finding=name,
                alone_ns=alone[name],
                range_ns=replayed.saving_range_ns([name]),
                last_ns=without[number] - afters[-1],
                gain_ns=before - after,
                step_after_ns=after,
                needs=_needs(replayed, name, ordered[:number], alone[name], before - after),
                covers=sorted(other for other, by in covered.items() if by == name),
            )
        )
        before = after
    return Plan(
        step_ns=step,
        after_ns=before,
        after_range_ns=replayed.after_range_ns(ordered),
        absent=replayed.absent,
        actions=actions,
        parts_before=replayed.parts(),
        parts_after=replayed.parts(ordered),
        limit=replayed.limit(),
        next_limit=replayed.limit(ordered),
    )


def _in_order(replayed: JobReplay, alone: dict[str, int], worth: float) -> tuple[list[str], dict[str, str]]:
    """The change that wins most on top of those before it, again and again, up to the last that is worth it; and the
    others that are worth it by themselves, with the change of the plan that wins their time.

    A change that says how a rank becomes quicker comes before one that only says that it does.
    """
    ordered: list[str] = []
    covered: dict[str, str] = {}
    vague = {name for name in alone if any(isinstance(cure, AsPeers) for cure in replayed.cures[name].of_job)}
    for group in (set(alone) - vague, vague):
        gains = _gains(replayed, group, ordered)
        if group is vague:  # mostly won by what says how
            gains = {name: gain for name, gain in gains.items() if 2 * gain >= alone[name]}
            covered |= {name: ordered[0] for name in vague - gains.keys() if ordered and alone[name] >= worth}
        while gains and len(ordered) < MOST:
            best: str | None = min(gains, key=lambda name: (-gains[name], name))
            if best is None or gains[best] < worth:
                best = _together(replayed, ordered, gains, worth)
            if best is None:
                break
            del gains[best]
            ordered.append(best)
            won = _gains(replayed, gains, ordered)
            covered |= {name: best for name in gains if gains[name] >= worth > won[name]}
            gains = won
        for name in gains:
            if alone[name] >= worth > gains[name] and name not in covered and ordered:
                covered[name] = ordered[0]
    return ordered, {name: by for name, by in covered.items() if name not in ordered}


def _together(replayed: JobReplay, ordered: Sequence[str], gains: Collection[str], worth: float) -> str | None:
    """Of changes that win nothing alone: the one that the others lose most without, where all of them are worth it;
    ``None`` where they are not."""
    rest = sorted(gains)
    whole = replayed.step_ns([*ordered, *rest])
    if replayed.step_ns(ordered) - whole < worth:
        return None
    without = replayed.steps_ns([[*ordered, *(other for other in rest if other != name)] for name in rest])
    lost = {name: after - whole for name, after in zip(rest, without, strict=True)}
    best = max(rest, key=lambda name: lost[name])
    return best if lost[best] >= worth else None


def _needs(replayed: JobReplay, name: str, earlier: Sequence[str], alone: int, gain: int) -> list[str]:
    """Those before it without which a change wins less than half of what it wins with them."""
    if 2 * alone >= gain:
        return []
    without = [[one for one in earlier if one != other] for other in earlier]
    before, after = replayed.steps_ns(without), replayed.steps_ns([[*others, name] for others in without])
    return [other for other, was, is_now in zip(earlier, before, after, strict=True) if 2 * (was - is_now) < gain]


def _gains(replayed: JobReplay, names: Iterable[str], others: Sequence[str]) -> dict[str, int]:
    """What each of these changes wins on top of the others, by name in order."""
    ordered = sorted(names)
    before, *after = replayed.steps_ns([others, *([*others, name] for name in ordered)])
    return {name: before - step for name, step in zip(ordered, after, strict=True)}
