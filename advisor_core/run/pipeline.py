"""The order of a run: find the ranks, run each, run the job, settle who claims what, and write it down."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from advisor_core.contracts.plain_text import plain_text
from advisor_core.contracts.profile import InputError, RankInput, StepError
from advisor_core.facts.communication.cross_rank_waits import no_waits
from advisor_core.job.job_replay import JobReplay
from advisor_core.job.leave_out import kept, left_out
from advisor_core.job.settle import settle
from advisor_core.job.shown import by_interest
from advisor_core.loaders.readers.files import listen_to_reads
from advisor_core.loaders.roles import role_of
from advisor_core.plugins.guarded_loaders import loaders, problems_of
from advisor_core.plugins.host import Host
from advisor_core.remote.copies import listen_to_copies
from advisor_core.result.run import RunResult
from advisor_core.rules.book import RuleBook
from advisor_core.run.combine import combine
from advisor_core.run.compatible_advice import combinable
from advisor_core.run.compose import compose
from advisor_core.run.compose_headings import compose_headings
from advisor_core.run.compose_timeline import wanted
from advisor_core.run.deep_ranks import BY_SIZE, DeepRanks, in_depth
from advisor_core.run.diagnostics import Failure, unreadable
from advisor_core.run.memory import available_bytes, most_processes
from advisor_core.run.merge_roles import guessed_roles, joined, of_role
from advisor_core.run.prepared import RunOptions, prepared
from advisor_core.run.rank import Compared, Recorded, alone, derive, judge, release
from advisor_core.run.rank_outcome import RankOutcome
from advisor_core.run.request import Request
from advisor_core.run.sources import sources
from advisor_core.run.work import Work
from advisor_core.run.workers import Pool, Workers, can_fork, usable_processors
from advisor_core.vocabulary.phases import phase_of

PARALLEL_BYTES = 64 << 20
"""Below this much input a second process costs more (about half a second of imports) than it saves, unless it is a copy
of the first."""

Progress = Callable[[str], None]
T = TypeVar("T")


class Elsewhere(Protocol):
    """Other machines, which read the ranks of a run."""

    def pool(self, sources: Sequence[RankInput], options: RunOptions) -> Pool: ...


def run(
    paths: Sequence[Path],
    options: RunOptions,
    *,
    rank: int | None = None,
    roles: Sequence[str] = (),
    deep: DeepRanks = BY_SIZE,
    jobs: int | None = None,
    elsewhere: Elsewhere | None = None,
    progress: Progress = lambda line: None,
    work: Work | None = None,
) -> RunResult:
    """As `analysed`, of a `Request` of these parts, without the replay."""
    request = Request(tuple(paths), options, rank, tuple(roles), deep)
    return analysed(request, jobs=jobs, elsewhere=elsewhere, progress=progress, work=work)[0]


@plain_text()
def analysed(
    request: Request,
    *,
    jobs: int | None = None,
    elsewhere: Elsewhere | None = None,
    progress: Progress = lambda line: None,
    work: Work | None = None,
) -> tuple[RunResult, JobReplay | None]:
    """Analyse the profiles that are asked for as one job; with the replay of the job, ``None`` where nothing can be
    replayed, or where there are several roles. ``jobs``: processes, by default as many as pay. ``elsewhere``: the
    machines that read the ranks in place of this one; the result has the same bytes. ``work``: takes how far the run
    is.

    Raises `InputError` (nothing to read), `StepError` (a rank or step that is not there), `RoleError` (a role that is
    not there) and `RuleFileError`.
    """
    began = time.perf_counter()
    work = work or Work()
    options = request.options
    host, book = prepared(options)
    prepare = time.perf_counter() - began
    guarded = loaders(host)
    found = sources(host, request.paths, rank=request.rank, roles=request.roles, guarded=guarded)
    chosen, notes = in_depth({loader.name: loader for loader in guarded}, found, request.deep)
    pool = _processes(chosen, jobs) if elsewhere is None else elsewhere.pool(chosen, options)
    outcomes, failures = _judged(chosen, options, pool, progress, work)
    if not outcomes:
        raise failures[0][1]
    _require_step(outcomes, options)
    joining = time.perf_counter()
    work.stage = "job"
    role = role_of(chosen[0]) if len(request.roles) == 1 else None
    result, replayed = _of_roles(host, book, outcomes, failures, role)
    actions = result.plan.actions if result.plan is not None else []
    alternatives = {name for action in actions for name in action.excludes}
    result = compose(result.model_copy(update={"findings": combinable(result.findings, alternatives)}))
    result = result.model_copy(update={"labels": compose_headings(host, result)})
    ended = time.perf_counter()
    phases = {"prepare_s": prepare, **result.timings, "job_s": ended - joining, "total_s": ended - began}
    timings = {name: round(s, 3) for name, s in phases.items() if options.timings or name.endswith("_s")}
    diagnostics = [*problems_of(guarded), *notes, *result.diagnostics]
    return result.model_copy(update={"timings": timings, "diagnostics": diagnostics}), replayed


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
    marks = host.phase_marks.third_parties_first()
    known = any(phase_of(role, marks) for role in roles)
    return joined(parts, unheard if known else [guessed_roles(sorted(roles)), *unheard], known), None


def _judged(
    sources: Sequence[RankInput], options: RunOptions, pool: Pool, progress: Progress, work: Work
) -> tuple[list[RankOutcome], list[Failure]]:
    """Ranks that could be read, in order, and those that could not. The ranks of a role are compared with one another
    before any of them is judged."""
    ranks_of = Counter(source.role for source in sources)
    number = {source: n for n, source in enumerate(sources)}
    with pool as workers:
        work.begin_ranks(sources, workers.read_bytes, workers.copied_bytes)
        listen_to_reads(work.add)
        listen_to_copies(work.copy)
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
    """The answers of comparing the ranks of its role, for each rank; one that is alone in its role is `alone`."""
    told: dict[RankInput, Compared] = dict.fromkeys(sources, alone())
    for role in {source.role for source in recorded}:
        ranks = {source.rank: source for source in recorded if source.role == role}
        world = max((recorded[source].world_size or 0 for source in ranks.values()), default=0)
        calls = {rank: found for rank, source in ranks.items() if (found := recorded[source].calls) is not None}
        first = {rank: one for rank, source in ranks.items() if (one := recorded[source].first) is not None}
        waits, without, staying = settle(calls, world), left_out(first, world), kept(first, world)
        walls = {
            rank: {step: ns for step, ns in recorded[source].walls.items() if step != without.get(rank)}
            for rank, source in ranks.items()
        }
        longest = next(iter(by_interest(walls)), None)
        for rank, source in ranks.items():
            step = without.get(rank)
            warming = tuple(sorted(other for other, one in first.items() if one.warms_up and one.step == step))
            told[source] = Compared(
                waits.get(rank, no_waits()), len(ranks), step, warming, rank in staying, shown_step=longest
            )
    return wanted(told, recorded) if options.timeline else told


def _processes(sources: Sequence[RankInput], jobs: int | None) -> Workers:
    return Workers(min(len(sources), jobs or _default_jobs(sources)))


def _default_jobs(sources: Sequence[RankInput]) -> int:
    if not can_fork() and sum(source.bytes for source in sources) < PARALLEL_BYTES:
        return 1
    processors = usable_processors()
    return min(processors, most_processes(sources, available_bytes()) or processors)


def _require_step(outcomes: Sequence[RankOutcome], options: RunOptions) -> None:
    if options.step is not None and not any(outcome.steps for outcome in outcomes):
        reasons = [d.message.en for outcome in outcomes for d in outcome.diagnostics if d.severity == "error"]
        raise StepError(reasons[0] if reasons else f"step {options.step} is not in the profile")
