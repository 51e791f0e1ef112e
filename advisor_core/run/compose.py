"""Compose: all that a report says of the findings and the ledger of a result as a whole, computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor_core.result.plan import Plan
from advisor_core.result.problem import Coverage, Problem, Unexplained
from advisor_core.result.run import MeanStep, RunResult
from advisor_core.result.view import View
from advisor_core.run.compose_iteration import compose_iteration
from advisor_core.run.compose_mean_steps import Lane, all_means, rank_means
from advisor_core.run.compose_phases import compose_phases, phase_work
from advisor_core.run.compose_problems import compose_problems
from advisor_core.run.compose_views import with_problems
from advisor_core.run.spread import phase_spreads

UNEXPLAINED_FROM = 0.02
"""Share of the step above which time that no finding claims is listed. A convention: what is smaller is too much to
read, and together it shows in the claimed share."""

VIEWED_RANKS = 4
"""A result holds the views of at most so many ranks of a role, to stay small; its ledger has all ranks."""


def compose(result: RunResult) -> RunResult:
    """The result with its mean steps, problems, unexplained time and phases, and with the views of few ranks."""
    ranks = rank_means(result.ledger)
    means = list(ranks.values()) if result.profile.apart else all_means(ranks)
    left = _left(ranks, result)
    phases = [] if result.profile.apart else compose_phases(result)
    work = phase_work(result) if phases else {}
    problems = compose_problems(result.findings, {lane: mean.wall_ns for lane, mean in ranks.items()})
    return result.model_copy(
        update={
            "mean_steps": means,
            "problems": problems,
            "plan": _numbered(result.plan, problems),
            "unexplained": _unexplained(ranks, left),
            "coverage": _coverage(None if result.profile.apart or not means else means[0], ranks, left),
            "phase_summaries": phases,
            "spread": [
                *(spread for spread in result.spread if spread.kind != "phase"),
                *phase_spreads(work, sum(phase.ns for phase in phases)),
            ],
            "iteration": compose_iteration(result),
            "views": [with_problems(view, problems, result.findings) for view in _few_ranks(result)],
        }
    )


def _numbered(plan: Plan | None, problems: Sequence[Problem]) -> Plan | None:
    """The plan with the numbers of the problems."""
    if plan is None:
        return None
    numbers = {problem.findings[0]: problem.number for problem in problems}
    actions = [action.model_copy(update={"problem": numbers[action.finding]}) for action in plan.actions]
    return plan.model_copy(update={"actions": actions})


def _left(ranks: Mapping[Lane, MeanStep], result: RunResult) -> dict[Lane, dict[str, int]]:
    """The remainder of each entry of each rank without the claims of all findings, which are of leaves."""
    left = {lane: dict(mean.entries) for lane, mean in ranks.items()}
    for finding in result.findings:
        for claim in finding.impact.claims:
            left[finding.role, claim.rank][claim.path] -= claim.ns
    return left


def _unexplained(ranks: Mapping[Lane, MeanStep], left: Mapping[Lane, Mapping[str, int]]) -> list[Unexplained]:
    """Entries above the limit that no finding claims, largest first: by their share of the step, of roles, whose steps
    differ, by their time."""
    entries = [
        Unexplained(rank=rank, role=role, path=path, ns=ns, share_of_step=round(ns / ranks[role, rank].wall_ns, 6))
        for (role, rank), paths in left.items()
        for path, ns in paths.items()
        if ns > UNEXPLAINED_FROM * ranks[role, rank].wall_ns
    ]
    return sorted(
        entries,
        key=lambda entry: (-(entry.share_of_step if entry.role is None else entry.ns), entry.rank, entry.path),
    )


def _coverage(
    whole: MeanStep | None, ranks: Mapping[Lane, MeanStep], left: Mapping[Lane, Mapping[str, int]]
) -> Coverage:
    wall = sum(mean.wall_ns for mean in ranks.values())
    if not wall or whole is None or not whole.wall_ns:
        return Coverage(unexplained_from=UNEXPLAINED_FROM)
    vague = sum(ns for path, ns in whole.entries.items() if path.rpartition("/")[2] == "unknown")
    open_ns = sum(sum(entries.values()) for entries in left.values())
    return Coverage(
        known_share=round(1 - vague / whole.wall_ns, 6),
        claimed_share=round(1 - open_ns / wall, 6),
        unexplained_from=UNEXPLAINED_FROM,
    )


def _few_ranks(result: RunResult) -> list[View]:
    """The views of all ranks together, and those of the ranks of each role that findings are shown for, in order of
    time at stake, then of the first ones."""
    chosen: set[tuple[str | None, int | None]] = set()
    for role in dict.fromkeys(view.role for view in result.views):
        viewed = dict.fromkeys(view.rank for view in result.views if view.role == role and view.rank is not None)
        wanted = dict.fromkeys(finding.rank for finding in result.findings if finding.role == role)
        ranks = [*(rank for rank in wanted if rank in viewed), *(rank for rank in viewed if rank not in wanted)]
        chosen |= {(role, rank) for rank in ranks[:VIEWED_RANKS]}
    return [view for view in result.views if view.rank is None or (view.role, view.rank) in chosen]
