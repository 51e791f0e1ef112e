"""The model of a run: the graph of all its ranks, and what the findings would change of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from advisor_core.facts.replay.changes import Change
from advisor_core.job.job_graph import JobGraph, job_graph
from advisor_core.job.job_replay import Cures, JobReplay
from advisor_core.job.own_time import JobCure
from advisor_core.result.finding import Finding
from advisor_core.run.compatible_advice import exclusive
from advisor_core.run.rank_outcome import RankOutcome
from advisor_core.run.rank_timeline import FOR_RANK
from advisor_core.run.run_rules import RuleRun


def joined(outcomes: Sequence[RankOutcome], replayed: JobReplay | None) -> Callable[[Sequence[int]], JobGraph | None]:
    """Gives the graph that joins some ranks: that of the replay or, where not all of them are replayed, as ranks were
    recorded for other steps or are of several runs, one of these ranks."""
    models = {outcome.rank: outcome.model for outcome in outcomes if outcome.model is not None}
    in_replay = set() if replayed is None else {model.rank for model in replayed.job.models}

    def of(ranks: Sequence[int]) -> JobGraph | None:
        known = [model for rank in ranks if (model := models.get(rank)) is not None]
        if len(known) < len(ranks):
            return None
        return replayed.job if replayed is not None and in_replay >= set(ranks) else job_graph(known, _world(outcomes))

    return of


def of_the_same_steps(outcomes: Sequence[RankOutcome]) -> list[RankOutcome]:
    """The ranks that are replayed together: of those that have a graph the ones with the steps that most of them were
    recorded for."""
    groups: dict[tuple[int, tuple[int | None, ...]], list[RankOutcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.model is not None:
            steps = tuple(step.step for step in outcome.ledger)
            groups[outcome.model.replay.steps, steps].append(outcome)
    return max(groups.values(), key=lambda group: (len(group), len(group[0].ledger)), default=[])


def _world(outcomes: Sequence[RankOutcome]) -> int:
    return max((outcome.world_size for outcome in outcomes if outcome.world_size), default=0)


AWAITED = 0.05
"""Share of the step from which waiting for a rank that was not recorded decides what a change wins: as much as the
error above which a promise is doubtful (docs/sources.md#replay-and-its-error)."""


def job_replay(outcomes: Sequence[RankOutcome], job: RuleRun, findings: Sequence[Finding] = ()) -> JobReplay | None:
    """The job with the cures of its findings, by their fingerprints; ``None`` where no rank has a graph. Ranks that
    were recorded for other steps than most have no part in it. ``findings``: of the job, with what explains what."""
    together = of_the_same_steps(outcomes)
    models = {outcome.rank: outcome.model for outcome in together if outcome.model is not None}
    if not models:
        return None
    of_ranks: dict[str, dict[int, Change]] = defaultdict(dict)
    for outcome in together:
        for draft in outcome.rules.drafts:
            if isinstance(draft.cure, Change):
                of_ranks[draft.finding.fingerprint][outcome.rank] = draft.cure
    cures = {fingerprint: Cures(changes) for fingerprint, changes in of_ranks.items()}
    for draft in job.drafts:
        if isinstance(draft.cure, JobCure):
            cures[draft.finding.fingerprint] = Cures(of_job=(draft.cure,))
    cures = _related(cures, findings)
    errors = [outcome.explained.error_share for outcome in together if outcome.explained is not None]
    error = max((error for error in errors if error == error), default=0.0)
    graph = job_graph(list(models.values()), _world(outcomes))
    return JobReplay(graph, cures, error, absent_ranks(outcomes, models.keys()))


def _related(cures: Mapping[str, Cures], findings: Sequence[Finding]) -> dict[str, Cures]:
    """The cures with what their findings say of one another."""
    own = [finding for finding in findings if finding.fingerprint in cures]
    excludes, explains = defaultdict(set), defaultdict(set)
    for finding in own:
        explains[finding.fingerprint].update(cures.keys() & set(finding.explains))
    for one, other in combinations(own, 2):
        if one.fingerprint != other.fingerprint and exclusive(one, other):
            excludes[one.fingerprint].add(other.fingerprint)
            excludes[other.fingerprint].add(one.fingerprint)
    return {
        name: replace(cure, excludes=frozenset(excludes[name]), explains=frozenset(explains[name]))
        for name, cure in cures.items()
    }


def absent_ranks(outcomes: Sequence[RankOutcome], replayed: Collection[int]) -> dict[int, int]:
    """The ranks that are not replayed and that the others wait for: ns of a step, on average over the others, where it
    is at least `AWAITED` of it."""
    steps = [step for outcome in outcomes if outcome.rank in replayed for step in outcome.ledger]
    waits: dict[int, int] = defaultdict(int)
    for entry in (entry for step in steps for entry in step.entries):
        if (named := re.fullmatch(FOR_RANK, entry.path)) and int(named[1]) not in replayed:
            waits[int(named[1])] += entry.ns
    wall = sum(step.wall_ns for step in steps)
    return {rank: ns // len(steps) for rank, ns in sorted(waits.items()) if ns >= AWAITED * wall}
