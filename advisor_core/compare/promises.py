"""Promise against outcome: what the earlier report said that a change would win, and what came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from advisor_core.result.comparison import FindingDifference, Promise, Promises, Verdict
from advisor_core.result.finding import Finding
from advisor_core.result.plan import Plan
from advisor_core.result.run import RunResult

_STAYS = 0.9
"""Our choice: with so much of its work left, a finding was not acted on. Work that stays differs by a few percent."""

_Basis = Literal["alone", "together", "in_turn", "claims", "none"]


def promises(
    before: RunResult, after: RunResult, findings: Sequence[FindingDifference], verdict: Verdict
) -> Promises | None:
    """The promises of the findings whose change was made; ``None`` where none was. A change was made where the finding
    is gone, or better and not only by idle time, or where the later run has a setting that its advice names and the
    earlier run had not. A finding of which nothing was promised, as a symptom, is none of these unless such a setting
    was made."""
    old, new = ({finding.fingerprint: finding for finding in side.findings} for side in (before, after))
    promised = _promised(before)
    items: list[Promise] = []
    made: list[str] = []
    for place, row in enumerate(findings):
        finding = old.get(row.fingerprint)
        if finding is None:
            continue
        settings = _settings(finding, before, after)
        is_less = row.state == "gone" or (row.state == "better" and not _waits_less(finding, new[row.fingerprint]))
        is_made = is_less and row.fingerprint in promised
        if not settings and not is_made:
            continue
        alone, ends = promised.get(row.fingerprint, (None, None))
        items.append(Promise(finding=place, settings=settings, promised_ns=alone, range_ns=ends, own_ns=_own(row)))
        made += [row.fingerprint] if alone is not None else []
    if not items:
        return None
    together, basis = _together(made, before.plan, sum(promised[name][0] for name in made))
    noise = None if verdict.interval is None else [round(-ratio * verdict.before_ns) for ratio in verdict.interval]
    return Promises(
        items=items,
        together_ns=together,
        basis=basis,
        came_ns=-verdict.difference_ns,
        came_range_ns=None if noise is None else (noise[1], noise[0]),
        came_in_plan_ns=before.plan.step_ns - after.plan.step_ns if before.plan and after.plan else None,
    )


def _promised(before: RunResult) -> dict[str, tuple[int, tuple[int, int] | None]]:
    """The promised gain of each change: by replay where there is a plan, else the claim of the finding."""
    if before.plan is not None:
        return {action.finding: (action.alone_ns, action.range_ns) for action in before.plan.actions}
    symptoms = {problem.findings[0] for problem in before.problems if problem.causes}
    return {
        finding.fingerprint: (finding.impact.ns_per_step, None)
        for finding in before.findings
        if finding.impact.ns_per_step and finding.fingerprint not in symptoms
    }


def _waits_less(finding: Finding, later: Finding) -> bool:
    """Whether the kernels and collectives of a finding are all still there, and it only has less idle time: any other
    change on the host shortens that too."""
    work, left = (
        sum(claim.ns for claim in one.impact.claims if not claim.path.startswith("idle")) for one in (finding, later)
    )
    return work > 0 and left >= _STAYS * work


def _own(row: FindingDifference) -> int | None:
    if row.before_ns is None or row.state not in ("gone", "better", "worse", "same"):
        return None
    return row.before_ns - (row.after_ns or 0)


def _settings(finding: Finding, before: RunResult, after: RunResult) -> list[str]:
    """Settings of the advice that hold after and did not before."""
    old, new = before.environment.variables, after.environment.variables
    return [
        f"{name}={value}"
        for advice in finding.advice
        for name, value in advice.set.items()
        if new.get(name) == value != old.get(name)
    ]


def _together(made: Sequence[str], plan: Plan | None, summed: int) -> tuple[int | None, _Basis]:
    """The gain of the changes together, as far as the report tells it; ``summed``: the sum of what each wins alone."""
    if not made:
        return None, "none"
    if plan is None:
        return summed, "claims"
    if len(made) == 1:
        return summed, "alone"
    wanted, count = set(made), len(set(made))
    if wanted == {action.finding for action in plan.actions[:count]}:
        return plan.step_ns - plan.actions[count - 1].step_after_ns, "together"
    return sum(action.gain_ns for action in plan.actions if action.finding in wanted), "in_turn"
