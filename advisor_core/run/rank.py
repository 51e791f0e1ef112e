"""One rank from disk to findings: everything that needs the rank's tables, so that it can run in a process of its own.

It has two phases. `derive` loads the rank and gives what the comparison of ranks needs; `judge` takes what the
comparison told and gives the findings. What leaves is small: `Recorded` the collectives, `RankOutcome` findings with
their evidence resolved, rule states, the ledger, views and the shared facts that job advisors need.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from advisor_core.cache.folder import rank_folder
from advisor_core.cache.ranks import kept_rank
from advisor_core.contracts.advisor import Scope
from advisor_core.contracts.doubt import DOUBT
from advisor_core.contracts.isolation import quiet, working
from advisor_core.contracts.keys import Answers
from advisor_core.contracts.missing import Unanswered
from advisor_core.contracts.plain_text import plain_text
from advisor_core.contracts.problems import Problem, RuleFileError
from advisor_core.contracts.profile import Profile, RankInput
from advisor_core.contracts.stopwatch import Stopwatch
from advisor_core.facts.communication.calls import recorded_calls
from advisor_core.facts.communication.cross_rank_waits import NO_WAITS
from advisor_core.facts.context import context
from advisor_core.facts.device.chip import chip
from advisor_core.facts.device.work import work
from advisor_core.facts.doubt.cross_check import cross_checked, doubts
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.memory import memory_curve, memory_peak, memory_steps
from advisor_core.facts.replay.critical_path import critical_path
from advisor_core.facts.replay.explained import Explained, explained
from advisor_core.facts.replay.replay import replay
from advisor_core.facts.steps.rank_summary import rank_summary
from advisor_core.facts.steps.recorded_steps import recorded_steps
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.steps.warm_up import warm_up
from advisor_core.facts.store import FactStore
from advisor_core.job.calls import COMPARED
from advisor_core.job.leave_out import FirstStep
from advisor_core.job.rank_model import RankModel
from advisor_core.loaders.readers.files import tell_read
from advisor_core.plugins.crash import crash
from advisor_core.plugins.guarded_loaders import guarded
from advisor_core.plugins.host import Host, load_host
from advisor_core.result.run import Diagnostic, Input, LedgerStep, LedgerWindow, PhaseTime, StepInfo
from advisor_core.result.view import View
from advisor_core.result.work import MemoryPeak
from advisor_core.rules.book import ON_COMMAND_LINE, RuleBook
from advisor_core.rules.files.ruleset import displayed_files, load_rules, setting_name
from advisor_core.rules.origins import Origins
from advisor_core.run.job_context import job_of
from advisor_core.run.ledger_steps import ledger_steps, window_of
from advisor_core.run.memory_views import memory_curve_view, memory_peak_view
from advisor_core.run.phase_times import phase_times
from advisor_core.run.rank_timeline import RankTimes, Wanted, rank_timeline, step_walls
from advisor_core.run.resolve_evidence import scalar
from advisor_core.run.run_rules import RuleRun, run_rules
from advisor_core.run.step_views import operator_bars, step_strip
from advisor_core.run.unknown_launches import unknown_launches
from advisor_core.run.work_times import RankWork, rank_work
from advisor_core.text.base import Scalar
from advisor_core.text.messages import message


@dataclass(frozen=True)
class RunOptions:
    """The options of a run. Hashable and picklable, so that a process reads the rules once."""

    rulesets: tuple[Path, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    overrides: tuple[tuple[str, Scalar], ...] = ()
    origins: Origins = ON_COMMAND_LINE
    step: int | None = None
    phase_marks: tuple[tuple[str, str], ...] = ()
    timings: bool = False
    """Whether the result tells what each fact and advisor took."""

    timeline: bool = False
    """Whether the result has the lanes of a timeline."""

    cache_bytes: int = 0
    """What the ranks that are kept from one run to the next may take together; 0: none is kept or taken from there."""


@dataclass(frozen=True)
class RankOutcome:
    """The outcome of one rank that the job needs. ``shared``: the facts that advisors of the job need; ``model``: its
    graph, ``None`` where it has none; ``timings``: seconds by phase, and by fact and advisor."""

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
    shared: Answers
    views: list[View]
    role: str
    phases: list[PhaseTime]
    diagnostics: list[Diagnostic]
    vendor: str = ""
    work: RankWork | None = None
    memory: MemoryPeak | None = None
    explained: Explained | None = None
    model: RankModel | None = None
    timeline: RankTimes | None = None
    window: LedgerWindow = "step"
    timings: Mapping[str, float] = field(default_factory=dict)


@functools.cache
def installed_host() -> Host:
    """All installed plugins, loaded once per process."""
    return load_host()


@functools.cache
def prepared(options: RunOptions) -> tuple[Host, RuleBook]:
    """The host and the selected rules, once per process. Raises `RuleFileError`."""
    host = installed_host()
    return host, rule_book(host, options)


def rule_book(host: Host, options: RunOptions) -> RuleBook:
    """The rules of the host's rule sets and the user's, in order of judging. A rule that cannot be used is left out
    and told in the book's ``problems``. Our own sets, which tests check, are taken on trust as long as no other rules
    come with them: those may change ours. Raises `RuleFileError` for options about rules that do not fit."""
    book = load_rules(
        [*host.rulesets.values(), *options.rulesets],
        host.advisors,
        dict(options.overrides),
        origins=options.origins,
        names=host.name_book(),
        paths=host.ledger_paths,
        vendors=host.vocabularies,
        strict=False,
        trusted=not options.rulesets and all(host.rulesets.owner(name).builtin for name in host.rulesets),
    )
    settings = {setting_name(key, options.origins.of_setting(key)) for key, _ in options.overrides}
    if any(problem.file in settings for problem in book.problems):
        raise RuleFileError(book.problems)
    if options.select:
        book = book.select(options.select, options.origins)
    return book.ignore(options.ignore, options.origins) if options.ignore else book


def own_problems(options: RunOptions) -> list[Problem]:
    """The problems of the rule files that the user named, as opposed to those of installed plugins."""
    files = displayed_files(options.rulesets)
    return sorted(problem for problem in prepared(options)[1].problems if problem.file in files)


@dataclass(frozen=True)
class Recorded:
    """The part of a rank that the comparison of ranks needs. ``calls``: its collectives, `COMPARED` of the fact
    ``recorded_calls``; ``None`` where they are not known. ``first``: its first step, ``None`` without one. ``walls``:
    the length in ns of each of its steps, by id."""

    rank: int
    world_size: int | None
    calls: pd.DataFrame | None
    first: FirstStep | None = None
    walls: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Compared:
    """What the comparison of ranks told one of ``ranks`` in the input. ``waits``: the fact ``cross_rank_waits``.
    ``left_out``: the first step that it leaves out because it warms up on the ranks ``warming``. ``wanted``: what a
    timeline wants of the rank, ``None`` for nothing."""

    waits: pd.DataFrame = field(default_factory=lambda: NO_WAITS)
    ranks: int = 1
    left_out: int | None = None
    warming: tuple[int, ...] = ()
    wanted: Wanted | None = field(default_factory=Wanted)


ALONE = Compared()


@dataclass(frozen=True)
class _Loaded:
    """A rank in memory."""

    profile: Profile
    store: FactStore


LOAD, ANALYSE = "load_s", "analyse_s"
"""Phases of a rank: reading it and comparing what its files say, and everything from the comparison of ranks on."""

HELD_BYTES = 2 << 30
"""A process keeps the tables of its ranks from `derive` to `judge` while their files have at most this many bytes
together (in memory they take about as much); further ranks are read a second time."""

_held: dict[tuple[RankInput, RunOptions], _Loaded] = {}


def release() -> None:
    """Forget the ranks that `derive` keeps, also those that are not judged any more."""
    _held.clear()


def derive(source: RankInput, options: RunOptions) -> Recorded:
    """Load one rank and give what is to be compared with other ranks. Raises `InputError` when nothing of it is
    usable."""
    with quiet(), plain_text():
        loaded = _load(source, options)
        calls = loaded.store.get(recorded_calls)
        first = _first_step(loaded.store)
        walls = step_walls(loaded.store) if options.timeline else {}
    if sum(held.bytes for held, _ in _held) + source.bytes <= HELD_BYTES:
        _held[source, options] = loaded
    known = None if calls is None else calls[list(COMPARED)]
    return Recorded(loaded.profile.rank, loaded.profile.world_size, known, first, walls)


def _first_step(store: FactStore) -> FirstStep | None:
    if (windows := store.get(recorded_steps)) is not None and len(windows):
        return FirstStep(int(windows["step"].iloc[0]), len(windows), warm_up in store)
    if (totals := store.get(rank_summary)) is not None and len(totals):  # only sums are known
        return FirstStep(int(totals["step"].iloc[0]), len(totals), False)
    return None


def judge(source: RankInput, options: RunOptions, compared: Compared = ALONE) -> RankOutcome:
    """Measure and judge one rank, whose steps and ledger what was ``compared`` closes. Raises `InputError` when
    nothing of it is usable."""
    with quiet(), plain_text():
        return _judge(source, options, compared)


def _judge(source: RankInput, options: RunOptions, compared: Compared) -> RankOutcome:
    host, book = prepared(options)
    loaded = _held.pop((source, options), None) or _load(source, options)
    began = time.perf_counter()
    profile, store = loaded.profile, loaded.store
    if compared.left_out is not None:  # facts of the rank alone counted this step
        profile = dataclasses.replace(profile, left_out_step=compared.left_out)
        store = FactStore(host.facts, profile.given(), store.watch)
        others = ", ".join(map(str, compared.warming))
        said = message("warm_up.of_job", step=compared.left_out, others=others)
        store.diagnostics.append(Diagnostic(severity="info", source=f"rank {profile.rank}", message=said))
    store.settle(compared.waits)
    words = host.vocabulary(profile.vendor)
    context = {**_context(store), "ranks": compared.ranks}
    job = job_of(context, profile.versions, profile.variables, words.phase_of(profile.role))
    rules = run_rules(host, book, Scope.RANK, store, profile, context, job, {profile.vendor})
    shared = _shared(host, store)
    steps, ledger = ledger_steps(store, profile)
    window = window_of(store, steps)
    views = [*_views(store, profile.rank, window), *_drawn(host, store), *_memory_views(store, profile.rank)]
    wanted = compared.wanted if options.timeline else None
    return RankOutcome(
        rank=profile.rank,
        source=_input(profile),
        chip=_chip(store, profile),
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
        diagnostics=[
            *profile.diagnostics,
            *doubts(profile.doubt),
            *store.diagnostics,
            *unknown_launches(profile, store),
            *_older(source),
        ],
        vendor=profile.vendor,
        work=rank_work(store),
        memory=_memory(store, profile.rank),
        explained=store.get(explained),
        model=_model(store, profile.rank),
        timeline=None if wanted is None else rank_timeline(store, profile.rank, wanted),
        window=window,
        timings={**store.watch.seconds(), ANALYSE: time.perf_counter() - began},
    )


def _load(source: RankInput, options: RunOptions) -> _Loaded:
    host, _ = prepared(options)
    watch = Stopwatch()
    with watch.of(LOAD):
        read = dataclasses.replace(
            _read(host, source, options.cache_bytes),
            selected_step=options.step,
            role=source.role,
            phase_marks=options.phase_marks,
        )
        profile = checked(host, read)
    return _Loaded(profile, FactStore(host.facts, profile.given(), watch))


def _read(host: Host, source: RankInput, cache_bytes: int) -> Profile:
    """The rank as its loader gives it. Of other plugins nothing is kept: what they are made of is not known."""
    load = guarded(host, source.loader).load
    folder = rank_folder(cache_bytes) if host.loaders.owner(source.loader).builtin else None
    if folder is None:
        return load(source)
    loaded = False

    def reading(source: RankInput) -> Profile:
        nonlocal loaded
        loaded = True
        return load(source)

    profile = kept_rank(folder, source, reading)
    if not loaded:
        tell_read(source.bytes)
    return profile


def _model(store: FactStore, rank: int) -> RankModel | None:
    replayed, calls = store.get(replay), store.get(recorded_calls)
    if replayed is None or not replayed.recorded_ns:
        return None
    operators = store[work][["type", "operator_class"]]
    compared = None if calls is None else calls[list(COMPARED)]
    return RankModel(rank, replayed, compared, operators, store.get(host_activity))


def _older(source: RankInput) -> list[Diagnostic]:
    """The diagnostic that names the recordings of the same rank that were not read."""
    if not source.older:
        return []
    names = ", ".join(path.relative_to(source.root).as_posix() for path in source.older)
    newest = source.directory.relative_to(source.root).as_posix()
    said = message("loader.older_recordings", recordings=len(source.older) + 1, newest=newest, older=names)
    return [Diagnostic(severity="warning", source=source.directory.name, message=said)]


def checked(host: Host, profile: Profile) -> Profile:
    """A profile as loaded, with the words of its vendor, and with doubt where its files disagree."""
    return cross_checked(dataclasses.replace(profile, vocabulary=host.vocabulary(profile.vendor)))


def fact_store(host: Host, profile: Profile) -> FactStore:
    """The facts that can be derived from a profile as loaded. Until `FactStore.settle` the facts are those of a rank
    alone."""
    return FactStore(host.facts, checked(host, profile).given())


def _shared(host: Host, store: FactStore) -> Answers:
    """The facts of the rank that advisors of the job ask for."""
    of_job = [advisor for advisor in host.advisors.values() if advisor.scope is Scope.JOB]
    shared = Answers()
    shared.put(DOUBT, store[DOUBT])
    for key in (key for advisor in of_job for key in (*advisor.needs, *advisor.wants)):
        if not shared.answers(key):
            shared.put(key, store.find(key))
    return shared


def _context(store: FactStore) -> dict[str, Scalar]:
    return dict(store.get(context) or {})


def _chip(store: FactStore, profile: Profile) -> dict[str, Scalar]:
    """The chip as derived, else as recorded."""
    found = store.get(chip)
    if found is None:
        return dict(profile.chip)
    return {name: scalar(value) for name, value in dataclasses.asdict(found).items()}


def _views(store: FactStore, rank: int, window: LedgerWindow) -> list[View]:
    """The slowest step as a strip, and the operators, where they were recorded."""
    windows, booked, device = store.get(steps), store.get(bookings), store.get(work)
    if windows is None or booked is None or device is None:
        return []
    slowest = int((windows["end_ns"] - windows["start_ns"]).to_numpy().argmax())
    strip = step_strip(rank, slowest, windows, booked, device, store.get(critical_path), window)
    return [strip, operator_bars(rank, device, windows, window)]


def _drawn(host: Host, store: FactStore) -> list[View]:
    """The drawings of plugins. A drawing that raises is told, and the others are drawn."""
    views: list[View] = []
    for one in host.drawings.values():
        owner = host.drawings.owner(one.name)
        try:
            with working(owner, f"which draws {one.name}"):
                views += one.draw(store.view(one.needs, one.wants))
        except Unanswered:
            continue
        except Exception as error:
            raised = message("engine.plugin_raised", what=one.name, plugin=str(owner), error=crash(error))
            store.diagnostics.append(Diagnostic(severity="error", source=one.name, message=raised))
    return views


def _memory_views(store: FactStore, rank: int) -> list[View]:
    curve = store.get(memory_curve)
    if curve is None:
        return []
    drawn = memory_curve_view(rank, curve, store.get(memory_steps))
    peak = store.get(memory_peak)
    alive = [] if peak is None else [memory_peak_view(rank, peak)]
    return [*([drawn] if drawn is not None else []), *alive]


def _memory(store: FactStore, rank: int) -> MemoryPeak | None:
    curve = store.get(memory_curve)
    if curve is None:
        return None
    allocated, reserved = (int(curve[f"{name}_bytes"].max()) for name in ("allocated", "reserved"))
    return MemoryPeak(rank=rank, allocated_bytes=allocated, reserved_bytes=reserved)


def _input(profile: Profile) -> Input:
    digest = hashlib.sha256()
    for file in sorted(profile.files, key=lambda file: file.name):
        digest.update(f"{file.name}\0{file.sha256}\n".encode())
    return Input(
        path=profile.path,
        kind=profile.kind,
        vendor=profile.vendor,
        rank=profile.rank,
        level=profile.level,
        framework=profile.framework,
        versions=dict(profile.versions),
        sha256=digest.hexdigest(),
        files=sorted(profile.files, key=lambda file: file.name),
        coarse=profile.coarse,
    )
