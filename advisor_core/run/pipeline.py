"""The order of a run: find the ranks, run each, run the job, settle who claims what, and write it down."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from advisor_core.contracts.advisor import Scope
from advisor_core.contracts.plain_text import plain_text
from advisor_core.contracts.profile import InputError, Loader, RankInput
from advisor_core.facts.communication.cross_rank_waits import NO_WAITS
from advisor_core.facts.job_store import JobStore
from advisor_core.facts.steps.phases import phases
from advisor_core.facts.steps.steps import steps
from advisor_core.job.job_replay import JobReplay
from advisor_core.job.leave_out import left_out
from advisor_core.job.plan import plan
from advisor_core.job.settle import settle
from advisor_core.job.slack import JobSlack
from advisor_core.loaders.discover import discover
from advisor_core.loaders.readers.files import listen_to_reads
from advisor_core.loaders.roles import role_of
from advisor_core.plugins.guarded_loaders import loaders, problems_of
from advisor_core.plugins.host import Host
from advisor_core.result.finding import SEVERITIES, Finding
from advisor_core.result.layout import Layout
from advisor_core.result.run import (
    Environment,
    LedgerWindow,
    Profile,
    ReplayModel,
    RunResult,
    Tool,
)
from advisor_core.result.view import View
from advisor_core.rules.book import RuleBook
from advisor_core.run.balance import balance
from advisor_core.run.claims import claim_all, link, rank_findings
from advisor_core.run.compatible_advice import combinable
from advisor_core.run.compose import compose
from advisor_core.run.compose_headings import compose_headings
from advisor_core.run.compose_timeline import timeline, wanted
from advisor_core.run.deep_ranks import BY_SIZE, DeepRanks, in_depth
from advisor_core.run.diagnostics import Failure, diagnostics_of, unreadable
from advisor_core.run.job_context import job_of
from advisor_core.run.measurements import Measurements
from advisor_core.run.merge_roles import joined, of_role, summed
from advisor_core.run.modelled import job_replay
from advisor_core.run.rank import ALONE, Compared, Recorded, RunOptions, derive, judge, prepared, release
from advisor_core.run.rank_outcome import RankOutcome
from advisor_core.run.rule_outcomes import rule_outcomes
from advisor_core.run.run_rules import Draft, run_rules
from advisor_core.run.step_views import phase_strip
from advisor_core.run.work import Work
from advisor_core.run.work_times import summed_work
from advisor_core.run.workers import Workers, usable_processors
from advisor_core.text.base import Scalar

PARALLEL_BYTES = 64 << 20
"""Below this much input a second process costs more (about half a second of imports) than it saves."""

Progress = Callable[[str], None]
T = TypeVar("T")


class StepError(Exception):
    """``--step`` or ``--rank`` names something that the profile does not have. Exit code 2."""


def run(
    paths: Sequence[Path],
    options: RunOptions,
    *,
    rank: int | None = None,
    roles: Sequence[str] = (),
    deep: DeepRanks = BY_SIZE,
    jobs: int | None = None,
    progress: Progress = lambda line: None,
    work: Work | None = None,
) -> RunResult:
    """Analyse the profiles at ``paths`` as one job. ``roles``: only those in directories of these names, of a job that
    profiles each role by itself; all of its roles are the roles of one result. ``deep``: the ranks of which more than
    the sums of their steps is read. ``jobs``: processes, by default as many as pay. ``work``: what is told
    how far the run is.

    Raises `InputError` (nothing to read), `StepError` (a rank or step that is not there), `RoleError` (a role that is
    not there) and `RuleFileError`.
    """
    return analysed(paths, options, rank=rank, roles=roles, deep=deep, jobs=jobs, progress=progress, work=work)[0]


@plain_text()
def analysed(
    paths: Sequence[Path],
    options: RunOptions,
    *,
    rank: int | None = None,
    roles: Sequence[str] = (),
    deep: DeepRanks = BY_SIZE,
    jobs: int | None = None,
    progress: Progress = lambda line: None,
    work: Work | None = None,
) -> tuple[RunResult, JobReplay | None]:
    """As `run`, with the replay of the job: ``None`` where nothing can be replayed, or where there are several
    roles."""
    began = time.perf_counter()
    work = work or Work()
    host, book = prepared(options)
    prepare = time.perf_counter() - began
    guarded = loaders(host)
    found = _sources(host, guarded, paths, rank, roles)
    sources, notes = in_depth({loader.name: loader for loader in guarded}, found, deep)
    outcomes, failures = _judged(sources, options, jobs, progress, work)
    if not outcomes:
        raise failures[0][1]
    _require_step(outcomes, options)
    joining = time.perf_counter()
    work.stage = "job"
    role = role_of(sources[0]) if len(roles) == 1 else None
    result, replayed = _of_roles(host, book, outcomes, failures, role)
    result = compose(result.model_copy(update={"findings": combinable(result.findings)}))
    result = result.model_copy(update={"labels": compose_headings(host, result)})
    ended = time.perf_counter()
    phases = {"prepare_s": prepare, **result.timings, "job_s": ended - joining, "total_s": ended - began}
    timings = {name: round(s, 3) for name, s in phases.items() if options.timings or name.endswith("_s")}
    diagnostics = [*problems_of(guarded), *notes, *result.diagnostics]
    return result.model_copy(update={"timings": timings, "diagnostics": diagnostics}), replayed


def sources(
    host: Host, paths: Sequence[Path], *, rank: int | None = None, roles: Sequence[str] = ()
) -> list[RankInput]:
    """The profiles that `run` reads, by role and rank. Raises as it does."""
    return _sources(host, loaders(host), paths, rank, roles)


def _sources(
    host: Host, guarded: Sequence[Loader], paths: Sequence[Path], rank: int | None, roles: Sequence[str]
) -> list[RankInput]:
    marks = host.phase_marks.third_parties_first()
    try:
        found = discover(guarded, *paths, roles=roles, marks=marks)
    except InputError as error:
        raise InputError("; ".join([str(error), *(problem.message.en for problem in problems_of(guarded))])) from None
    ranks = {source.rank for source in found}
    if rank is not None and rank not in ranks:
        raise StepError(f"rank {rank} is not in the profile; it has {', '.join(map(str, sorted(ranks)))}")
    return [source for source in found if rank in (None, source.rank)]


def _of_roles(
    host: Host,
    book: RuleBook,
    outcomes: Sequence[RankOutcome],
    failures: Sequence[Failure],
    role: str | None,
) -> tuple[RunResult, JobReplay | None]:
    """One result; the ranks of a role are compared with one another, and with those of no other role."""
    roles = {outcome.role for outcome in outcomes} | {source.role for source, _ in failures}
    if len(roles) == 1:
        return combine(host, book, outcomes, failures, role)
    parts = []
    for role in sorted(roles):
        own = [outcome for outcome in outcomes if outcome.role == role]
        failed = [failure for failure in failures if failure[0].role == role]
        if own:
            parts.append((role, of_role(combine(host, book, own, failed)[0], role)))
    unread = [failure for failure in failures if failure[0].role not in dict(parts)]
    unheard = [unreadable(failure).model_copy(update={"role": failure[0].role}) for failure in unread]
    return joined(parts, unheard), None


def _judged(
    sources: Sequence[RankInput], options: RunOptions, jobs: int | None, progress: Progress, work: Work
) -> tuple[list[RankOutcome], list[Failure]]:
    """Ranks that could be read, in order, and those that could not. The ranks of a role are compared with one another
    before any of them is judged."""
    ranks_of = Counter(source.role for source in sources)
    number = {source: n for n, source in enumerate(sources)}
    with Workers(min(len(sources), jobs or _default_jobs(sources))) as workers:
        work.begin_ranks(sources, workers.read_bytes)
        listen_to_reads(work.add)
        try:
            deriving = {
                source: workers.start(number[source], derive, source, options)
                for source in sources
                if ranks_of[source.role] > 1
            }
            recorded, failures = _collect(deriving, progress)
            usable = [source for source in sources if source in recorded or source not in deriving]
            compared = _compared(recorded, sources, options)
            judging = {
                source: workers.start(number[source], judge, source, options, compared[source]) for source in usable
            }
            outcomes, unjudged = _collect(judging, progress, announced=recorded, done_one=work.judge_one)
        finally:
            release()
    return list(outcomes.values()), [*failures, *unjudged]


def _collect(
    calls: Mapping[RankInput, Callable[[], T]],
    progress: Progress,
    announced: Container[RankInput] = (),
    done_one: Callable[[], None] = lambda: None,
) -> tuple[dict[RankInput, T], list[Failure]]:
    """The results of the calls by source, in order, and the sources that cannot be used."""
    done: dict[RankInput, T] = {}
    failures: list[Failure] = []
    for source, call in calls.items():
        if source not in announced:
            role = f"{source.role}, " if source.role else ""
            progress(f"{role}rank {source.rank}: {source.directory}")
        try:
            done[source] = call()
        except InputError as error:
            failures.append((source, error))
        done_one()
    return done, failures


def _compared(
    recorded: Mapping[RankInput, Recorded], sources: Sequence[RankInput], options: RunOptions
) -> dict[RankInput, Compared]:
    """What the comparison of the ranks of its role told each rank; one that is alone in its role is `ALONE`."""
    told: dict[RankInput, Compared] = dict.fromkeys(sources, ALONE)
    for role in {source.role for source in recorded}:
        ranks = {source.rank: source for source in recorded if source.role == role}
        world = max((recorded[source].world_size or 0 for source in ranks.values()), default=0)
        calls = {rank: found for rank, source in ranks.items() if (found := recorded[source].calls) is not None}
        first = {rank: one for rank, source in ranks.items() if (one := recorded[source].first) is not None}
        waits, without = settle(calls, world), left_out(first)
        for rank, source in ranks.items():
            step = without.get(rank)
            warming = tuple(sorted(other for other, one in first.items() if one.warms_up and one.step == step))
            told[source] = Compared(waits.get(rank, NO_WAITS), len(ranks), step, warming)
    return wanted(told, recorded) if options.timeline else told


def _default_jobs(sources: Sequence[RankInput]) -> int:
    total = sum(source.bytes for source in sources)
    return 1 if total < PARALLEL_BYTES else usable_processors()


def _require_step(outcomes: Sequence[RankOutcome], options: RunOptions) -> None:
    if options.step is not None and not any(outcome.steps for outcome in outcomes):
        reasons = [d.message.en for outcome in outcomes for d in outcome.diagnostics if d.severity == "error"]
        raise StepError(reasons[0] if reasons else f"step {options.step} is not in the profile")


def combine(
    host: Host,
    book: RuleBook,
    outcomes: Sequence[RankOutcome],
    failures: Sequence[Failure] = (),
    role: str | None = None,
) -> tuple[RunResult, JobReplay | None]:
    """One result from the outcomes of all ranks, and the replay that its plan is of. A pure function: the same outcomes
    give the same bytes."""
    known_first = sorted(outcomes, key=lambda outcome: outcome.source.coarse)
    context = _job_context(known_first)
    env = _common_variables(outcomes)
    first = known_first[0]
    known = job_of(context, first.source.versions, env)
    vendors = {outcome.vendor for outcome in outcomes}
    shared = _shared(outcomes)
    measurements = Measurements(host, lambda: (shared, {}), watch=shared.watch)
    job = run_rules(host, book, Scope.JOB, measurements, None, context, known, vendors)
    ledger = [step for outcome in outcomes for step in outcome.ledger]
    by_rank = {outcome.rank: outcome.rules for outcome in outcomes}
    in_depth_ranks = [outcome.rank for outcome in outcomes if not outcome.source.coarse]
    runs = [*by_rank.values(), job]
    drafts = _merge([draft for run in runs for draft in run.drafts], in_depth_ranks)
    explains = {rule.id: rule.explains for rule in book}
    claimed = claim_all([draft.finding for draft in drafts], [draft.wants for draft in drafts], explains, ledger)
    findings = link(rank_findings(_with_caveats(claimed, drafts, book)), explains)
    apart = _apart(findings, book)
    replayed = None if apart else job_replay(outcomes, job)
    slack = None if replayed is None else JobSlack(replayed)
    world_size = max((o.world_size for o in outcomes if o.world_size), default=None)
    parallel = next((dict(outcome.parallel) for outcome in known_first if outcome.parallel), {})
    result = RunResult(
        tool=_tool(host),
        inputs=[outcome.source for outcome in outcomes],
        environment=Environment(
            chip=_beside([outcome.chip for outcome in outcomes]) if apart else first.chip,
            variables=env,
            profiler=dict(first.profiler),
        ),
        profile=Profile(
            kind=str(context.get("phase") or "unknown"),
            window=_window(outcomes),
            ranks=[outcome.rank for outcome in outcomes],
            apart=apart,
            world_size=None if apart else world_size,
            steps=[step for outcome in outcomes for step in outcome.steps],
            parallel=parallel,
            role=role,
        ),
        ledger=ledger,
        findings=findings,
        rules=rule_outcomes(host, book, vendors, by_rank, in_depth_ranks, job, findings, context),
        views=[*_phase_views(outcomes), *(view for outcome in outcomes for view in outcome.views)],
        diagnostics=diagnostics_of(host, book, outcomes, failures),
        timings=summed([*(outcome.timings for outcome in outcomes), shared.watch.seconds()]),
        model=_model(outcomes, replayed),
        plan=None if replayed is None else plan(replayed),
        critical_path=[] if replayed is None else replayed.critical_path(),
        slack=[] if slack is None else slack.of_work(),
        balance=None if apart else balance(ledger, slack, Layout(parallel, world_size)),
        phases=[time for outcome in outcomes for time in outcome.phases],
        work=[] if apart else summed_work([outcome.work for outcome in outcomes if outcome.work is not None]),
        memory=[outcome.memory for outcome in outcomes if outcome.memory is not None],
        timeline=timeline([outcome.timeline for outcome in outcomes], len(outcomes)),
    )
    return result, replayed


def _apart(findings: Sequence[Finding], book: RuleBook) -> list[str]:
    """The findings that say that the ranks are not of one run."""
    rules = {rule.id: rule.rule for rule in book}
    return [finding.fingerprint for finding in findings if rules[finding.rule].separates in finding.signs]


def _beside(recorded: Sequence[Mapping[str, Scalar]]) -> dict[str, Scalar]:
    """What the ranks say of their devices; all of it where they differ."""
    values = {name: [each[name] for each in recorded if name in each] for each in recorded for name in each}
    return {
        name: found[0] if len(set(found)) == 1 else ", ".join(dict.fromkeys(map(str, found)))
        for name, found in values.items()
    }


def _window(outcomes: Sequence[RankOutcome]) -> LedgerWindow:
    """What the ledgers of all ranks are of; steps where the ranks differ."""
    windows = {outcome.window for outcome in outcomes if outcome.ledger}
    return windows.pop() if len(windows) == 1 else "step"


def _job_context(outcomes: Sequence[RankOutcome]) -> dict[str, Scalar]:
    known = [outcome.context for outcome in outcomes if outcome.context]
    context: dict[str, Scalar] = dict(known[0]) if known else {}
    sizes = [outcome.world_size for outcome in outcomes if outcome.world_size]
    context["world_size"] = max(sizes) if sizes else None
    context["ranks"] = len(outcomes)
    return context


def _common_variables(outcomes: Sequence[RankOutcome]) -> dict[str, str]:
    """Variables that all ranks record alike; where they differ the first rank's value stands, as in a launch script
    that exports one value."""
    variables: dict[str, str] = {}
    for outcome in reversed(outcomes):
        variables.update(outcome.variables)
    return dict(sorted(variables.items()))


def _merge(drafts: Sequence[Draft], in_depth_ranks: Container[int]) -> list[Draft]:
    """The same finding on several ranks becomes one, shown for the rank where it costs most; for one of those that were
    read in depth, where it is known of any."""

    def shown(draft: Draft) -> tuple[bool, int, int]:
        rank = draft.finding.rank or 0
        return rank in in_depth_ranks, draft.finding.impact.gross_ns_per_step, -rank

    groups: dict[str, list[Draft]] = {}
    for draft in drafts:
        groups.setdefault(draft.finding.fingerprint, []).append(draft)
    merged = []
    for group in groups.values():
        leader = max(group, key=shown)
        ranks = sorted({rank for draft in group for rank in draft.finding.ranks})
        severity = min((draft.finding.severity for draft in group), key=SEVERITIES.index)
        finding = leader.finding.model_copy(update={"ranks": ranks, "severity": severity})
        wants = {rank: want for draft in group for rank, want in draft.wants.items()}
        merged.append(replace(leader, finding=finding, wants=wants))
    return merged


def _with_caveats(findings: Sequence[Finding], drafts: Sequence[Draft], book: RuleBook) -> list[Finding]:
    """Put the caveat of each capture-quality finding on the findings of the advisors that it casts doubt on."""
    rules = {rule.id: rule.rule for rule in book}
    doubts = [
        (draft.caveat, tuple(rules[draft.finding.rule].caveats), set(draft.finding.ranks))
        for draft in drafts
        if draft.caveat is not None
    ]
    result = []
    for finding in findings:
        caveats = [
            text
            for text, prefixes, ranks in doubts
            if rules[finding.rule].advisor.startswith(prefixes) and ranks & set(finding.ranks)
        ]
        result.append(finding.model_copy(update={"caveats": [*finding.caveats, *caveats]}) if caveats else finding)
    return result


def _shared(outcomes: Sequence[RankOutcome]) -> JobStore:
    return JobStore({outcome.rank: outcome.shared for outcome in outcomes})


def _phase_views(outcomes: Sequence[RankOutcome]) -> list[View]:
    facts = _shared(outcomes).view((), (phases, steps))
    drawn = phase_strip(facts.ranks(phases), facts.ranks(steps))
    return [] if drawn is None else [drawn]


def _model(outcomes: Sequence[RankOutcome], replayed: JobReplay | None) -> ReplayModel | None:
    """How well the replay explains the ranks that have launches."""
    explained = {outcome.rank: outcome.explained for outcome in outcomes if outcome.explained is not None}
    if not explained:
        return None
    return ReplayModel(
        nodes=sum(rank.nodes for rank in explained.values()),
        edges=sum(rank.edges for rank in explained.values()),
        inferred_edges=sum(rank.inferred_edges for rank in explained.values()),
        violated_edges=sum(rank.violated_edges for rank in explained.values()),
        error_share_by_rank={number: round(rank.error_share, 6) for number, rank in explained.items()},
        joined_calls=0 if replayed is None else int(replayed.job.calls["call"].nunique()),
    )


def _tool(host: Host) -> Tool:
    plugins = {plugin.name: plugin.version for plugin in host.plugins if plugin.distribution != "npu-advisor"}
    return Tool(name="npu-advisor", version=metadata.version("npu-advisor"), plugins=plugins)
