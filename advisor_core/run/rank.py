"""One rank from disk to findings: everything that needs the rank's tables, so that it can run in a process of its own.

What leaves (`RankOutcome`) is small: findings with their evidence resolved, rule states, the ledger, views and the
shared facts that job advisors need.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from advisor_core.contracts.advisor import Scope
from advisor_core.contracts.facts import Failed, NotApplicable, Unavailable
from advisor_core.contracts.problems import Problem, RuleFileError
from advisor_core.contracts.profile import Profile, RankInput
from advisor_core.facts.store import FactStore
from advisor_core.plugins.guarded_loaders import guarded
from advisor_core.plugins.host import Host, load_host
from advisor_core.result.run import Diagnostic, Input, LedgerEntry, LedgerStep, PhaseTime, StepInfo
from advisor_core.result.view import View
from advisor_core.rules.files.ruleset import SET_OPTION, RuleBook, load_rules
from advisor_core.run.job_context import job_of
from advisor_core.run.ledger_pieces import Derivations
from advisor_core.run.memory_views import memory_curve_view, memory_peak_view
from advisor_core.run.phase_times import phase_times
from advisor_core.run.resolve_evidence import scalar
from advisor_core.run.run_rules import RuleRun, run_rules
from advisor_core.run.step_views import operator_bars, step_strip
from advisor_core.run.why_unknown import why_unknown
from advisor_core.text.base import Scalar
from advisor_core.text.messages import message


@dataclass(frozen=True)
class RunOptions:
    """What the user asked for. Hashable and picklable, so that a process reads the rules once."""

    rulesets: tuple[Path, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    overrides: tuple[tuple[str, Scalar], ...] = ()
    step: int | None = None
    phase_marks: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class RankOutcome:
    """What one rank gives to the job. ``shared``: fact name to its value, or to why it is not there."""

    rank: int
    source: Input
    chip: Mapping[str, Scalar]
    variables: Mapping[str, str]
    profiler: Mapping[str, Scalar]
    context: Mapping[str, Scalar]
    world_size: int | None
    parallel: Mapping[str, int]
    steps: list[StepInfo]
    ledger: list[LedgerStep]
    rules: RuleRun
    shared: Mapping[str, Any]
    views: list[View]
    role: str
    phases: list[PhaseTime]
    diagnostics: list[Diagnostic]
    timings: Mapping[str, float] = field(default_factory=dict)


@functools.cache
def prepared(options: RunOptions) -> tuple[Host, RuleBook]:
    """The host and the selected rules, once per process. Raises `RuleFileError`."""
    host = load_host()
    return host, rule_book(host, options)


def rule_book(host: Host, options: RunOptions) -> RuleBook:
    """The rules of the host's rule sets and the user's, in order of judging. A rule that cannot be used is left out
    and told in the book's ``problems``. Raises `RuleFileError` for options about rules that do not fit."""
    sources = [ruleset.root for ruleset in host.rulesets.values()] + list(options.rulesets)
    book = load_rules(
        sources,
        host.advisors,
        dict(options.overrides),
        names=host.name_book(),
        installed=len(host.rulesets),
        strict=False,
    )
    if any(problem.file.startswith(SET_OPTION) for problem in book.problems):
        raise RuleFileError(book.problems)
    if options.select:
        book = book.select(options.select)
    return book.ignore(options.ignore) if options.ignore else book


def own_problems(options: RunOptions) -> list[Problem]:
    """What is wrong with the rule files that the user named, as opposed to those of installed plugins."""
    host, book = prepared(options)
    if not book.problems or not options.rulesets:
        return []
    roots = [ruleset.root for ruleset in host.rulesets.values()]
    installed = load_rules(roots, host.advisors, installed=len(roots), strict=False)
    return sorted(set(book.problems) - set(installed.problems))


def run_rank(source: RankInput, options: RunOptions) -> RankOutcome:
    """Load, derive, measure and judge one rank. Raises `InputError` when nothing of it is usable."""
    host, book = prepared(options)
    began = time.perf_counter()
    profile = dataclasses.replace(
        guarded(host, source.loader).load(source),
        selected_step=options.step,
        role=source.role,
        phase_marks=options.phase_marks,
    )
    loaded = time.perf_counter()
    store = fact_store(host, profile)
    context = _context(store)
    job = job_of(context, profile.versions, profile.variables, profile.role)
    rules = run_rules(host, book, Scope.RANK, store, profile, context, job)
    shared = {name: _shared(store, name) for name in _shared_names(host)}
    steps, ledger = _ledger(store, profile)
    views = _views(store, profile.rank)
    judged = time.perf_counter()
    return RankOutcome(
        rank=profile.rank,
        source=_input(profile),
        chip=_chip(store),
        variables=dict(profile.variables),
        profiler=dict(profile.profiler),
        context=context,
        world_size=profile.world_size,
        parallel=dict(profile.parallel),
        steps=steps,
        ledger=ledger,
        rules=rules,
        shared=shared,
        views=views,
        role=profile.role,
        phases=phase_times(store, profile),
        diagnostics=[*profile.diagnostics, *store.diagnostics, *_older(source)],
        timings={"load_s": round(loaded - began, 3), "analyse_s": round(judged - loaded, 3)},
    )


def _older(source: RankInput) -> list[Diagnostic]:
    """Says which recordings of the same rank were not read."""
    if not source.older:
        return []
    names = ", ".join(path.relative_to(source.root).as_posix() for path in source.older)
    newest = source.directory.relative_to(source.root).as_posix()
    said = message("loader.older_recordings", recordings=len(source.older) + 1, newest=newest, older=names)
    return [Diagnostic(severity="warning", source=source.directory.name, message=said)]


def fact_store(host: Host, profile: Profile) -> FactStore:
    """The facts of a profile: its tables by name, ``profile`` itself, and what can be derived from them."""
    base: dict[str, Any] = {name: table.frame for name, table in profile.tables.items()}
    return FactStore(host.facts, base | {"profile": profile}, profile.missing)


def _shared_names(host: Host) -> list[str]:
    needed = {name for advisor in host.advisors.values() if advisor.scope is Scope.JOB for name in advisor.needs}
    needed |= {name for advisor in host.advisors.values() if advisor.scope is Scope.JOB for name in advisor.wants}
    return sorted(name for name in needed if name in host.facts and host.facts[name].shared)


def _shared(store: FactStore, name: str) -> Any:
    try:
        return store.get(name)
    except (Unavailable, NotApplicable) as reason:
        return reason


def _context(store: FactStore) -> dict[str, Scalar]:
    found = _shared(store, "context")
    return {} if isinstance(found, Unavailable | NotApplicable) else dict(found)


def _chip(store: FactStore) -> dict[str, Scalar]:
    found = _shared(store, "chip")
    if isinstance(found, Unavailable | NotApplicable):
        return {}
    return {name: scalar(value) for name, value in dataclasses.asdict(found).items()}


def _ledger(store: FactStore, profile: Profile) -> tuple[list[StepInfo], list[LedgerStep]]:
    rank = profile.rank
    ledger, steps = _shared(store, "ledger"), _shared(store, "steps")
    for found in (steps, ledger):
        if isinstance(found, Unavailable | NotApplicable):
            if not isinstance(found, Failed):  # which has been said
                source = f"rank {rank}"
                store.diagnostics.append(Diagnostic(severity="error", source=source, message=found.reason))
            return [], []
    walls = (steps["end_ns"] - steps["start_ns"]).to_numpy()
    slowest = int(walls.argmax())
    told = _derivations(store, profile).of_step(slowest, int(walls[slowest]))
    why = {path: why_unknown(path, store) for path in ledger["path"].unique().tolist()}
    infos, booked = [], []
    leaves = [*ledger.itertuples()]
    edges = np.searchsorted(ledger["step"].to_numpy(), np.arange(len(steps) + 1))  # its rows are in order of steps
    for number, window in enumerate(steps.itertuples()):
        step = int(window.step) if window.step >= 0 else None
        entries = [
            LedgerEntry(
                path=row.path,
                ns=int(row.ns),
                reason=why[row.path][0],
                collect=why[row.path][1],
                detail={"overlapped_communication_ns": int(row.overlapped_ns)} if row.overlapped_ns else {},
                pieces=told.get(row.path, []) if number == slowest else [],
            )
            for row in leaves[edges[number] : edges[number + 1]]
        ]
        infos.append(StepInfo(rank=rank, step=step, start_ns=int(window.start_ns), end_ns=int(window.end_ns)))
        wall = int(window.end_ns - window.start_ns)
        booked.append(LedgerStep(rank=rank, step=step, wall_ns=wall, entries=entries))
    return infos, booked


def _derivations(store: FactStore, profile: Profile) -> Derivations:
    launched, host = _shared(store, "launches"), _shared(store, "host_activity")
    return Derivations(
        store.get("bookings"),
        store.get("work"),
        profile.tables,
        None if isinstance(launched, Unavailable | NotApplicable) else launched,
        None if isinstance(host, Unavailable | NotApplicable) else host,
    )


def _views(store: FactStore, rank: int) -> list[View]:
    """The slowest step as a strip, the operators, and memory: of these what was recorded."""
    memory = _memory_views(store, rank)
    steps, booked, device = (_shared(store, name) for name in ("steps", "bookings", "work"))
    if any(isinstance(found, Unavailable | NotApplicable) for found in (steps, booked, device)):
        return memory
    slowest = int((steps["end_ns"] - steps["start_ns"]).to_numpy().argmax())
    return [step_strip(rank, slowest, steps, booked, device), operator_bars(rank, device, steps), *memory]


def _memory_views(store: FactStore, rank: int) -> list[View]:
    curve, steps, peak = (_shared(store, name) for name in ("memory_curve", "memory_steps", "memory_peak"))
    if isinstance(curve, Unavailable | NotApplicable):
        return []
    drawn = memory_curve_view(rank, curve, None if isinstance(steps, Unavailable | NotApplicable) else steps)
    alive = [] if isinstance(peak, Unavailable | NotApplicable) else [memory_peak_view(rank, peak)]
    return [*([drawn] if drawn is not None else []), *alive]


def _input(profile: Profile) -> Input:
    digest = hashlib.sha256()
    for file in sorted(profile.files, key=lambda file: file.name):
        digest.update(f"{file.name}\0{file.sha256}\n".encode())
    return Input(
        path=profile.path,
        kind=profile.kind,
        rank=profile.rank,
        level=profile.level,
        framework=profile.framework,
        versions=dict(profile.versions),
        sha256=digest.hexdigest(),
        files=sorted(profile.files, key=lambda file: file.name),
    )
