"""One rank from disk to findings: everything that needs the rank's tables, so that it can run in a process of its own.

It has two phases. `derive` loads the rank and gives what the comparison of ranks needs; `judge` takes what the
comparison told and gives the findings. What leaves is small: `Recorded` the collectives, `RankOutcome` findings with
their evidence resolved, rule states, the ledger, views and the shared facts that job advisors need.
"""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from advisor_core.cache.derived import Derived
from advisor_core.cache.fingerprint import Files
from advisor_core.contracts.advisor import Scope
from advisor_core.contracts.isolation import quiet
from advisor_core.contracts.plain_text import plain_text
from advisor_core.contracts.profile import Profile, RankInput
from advisor_core.contracts.stopwatch import Stopwatch
from advisor_core.contracts.tables import HOST_EVENTS, Table
from advisor_core.facts.communication.calls import recorded_calls
from advisor_core.facts.communication.cross_rank_waits import no_waits
from advisor_core.facts.doubt.cross_check import cross_checked
from advisor_core.facts.steps.rank_summary import rank_summary
from advisor_core.facts.steps.recorded_steps import recorded_steps
from advisor_core.facts.steps.warm_up import warm_up
from advisor_core.facts.store import FactStore
from advisor_core.job.calls import COMPARED
from advisor_core.job.leave_out import FirstStep
from advisor_core.loaders.readers.files import tell_read
from advisor_core.plugins.host import Host
from advisor_core.result.run import Diagnostic
from advisor_core.rules.book import RuleBook
from advisor_core.run.job_context import job_of
from advisor_core.run.kept_ranks import asked_by, kept_of, printed, read_rank
from advisor_core.run.measurements import Measurements, Told
from advisor_core.run.prepared import RunOptions, installed_host, prepared
from advisor_core.run.rank_outcome import RankOutcome, context_of, outcome_of
from advisor_core.run.rank_timeline import Wanted, step_walls
from advisor_core.run.run_rules import RuleRun, run_rules
from advisor_core.text.base import Scalar
from advisor_core.text.messages import message


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
    """The answers of comparing the ``ranks`` in the input to one of them. ``waits``: the fact ``cross_rank_waits``.
    ``left_out``: the first step that it leaves out because it warms up on the ranks ``warming``. ``keeps_first``: it
    keeps the first step, as no rank warms up, though it waited for one in it. ``wanted``: what a
    timeline wants of the rank, ``None`` for nothing. ``shown_step``: the step in which the ranks are shown side by
    side, ``None`` of one alone."""

    waits: pd.DataFrame = field(default_factory=no_waits)
    ranks: int = 1
    left_out: int | None = None
    warming: tuple[int, ...] = ()
    keeps_first: bool = False
    wanted: Wanted | None = field(default_factory=Wanted)
    shown_step: int | None = None


@functools.cache
def alone() -> Compared:
    """The answers about a rank that nothing was compared with."""
    return Compared()


@dataclass(frozen=True)
class _Loaded:
    """A rank in memory. ``files``: as of `advisor_core.cache.ranks.Loaded`."""

    profile: Profile
    store: FactStore
    files: Files | None = None

    def answers(self) -> tuple[FactStore, Mapping[str, Table]]:
        """The facts that are measured, and the tables that evidence points at."""
        return self.store, self.profile.tables


LOAD, ANALYSE = "load_s", "analyse_s"
"""Phases of a rank: reading it and comparing what its files say, and everything from the comparison of ranks on."""

HELD_BYTES = 2 << 30
"""A process keeps the tables of its ranks from `derive` to `judge` while their files have at most this many bytes
together (in memory they take about as much); further ranks are read a second time."""

Held = dict[tuple[RankInput, RunOptions], _Loaded]
"""Ranks in memory, as they were asked for."""

_held: Held = {}


def release() -> Held:
    """Forget the ranks that `derive` keeps, also those that are not judged any more; gives what was kept."""
    held = dict(_held)
    _held.clear()
    return held


def hold(held: Held) -> None:
    """Keep these ranks for `judge`, as if `derive` had just read them."""
    _held.update(held)


def derive(source: RankInput, options: RunOptions) -> Recorded:
    """Load one rank and give what is to be compared with other ranks. Raises `InputError` when nothing of it is
    usable."""
    kept = _kept_of(source, options)
    about = ("recorded", _read_as(options))
    if kept is not None and (found := kept.read(about, Recorded)) is not None:
        tell_read(source.bytes)
        return found
    with quiet(), plain_text():
        loaded = _load(source, options)
        recorded = _recorded(loaded, options)
    if sum(held.bytes for held, _ in _held) + source.bytes <= HELD_BYTES:
        _held[source, options] = loaded
    if kept is not None and not _raised(loaded.store):
        kept.write(loaded.files, about, recorded)
    return recorded


def _recorded(loaded: _Loaded, options: RunOptions) -> Recorded:
    profile, store = loaded.profile, loaded.store
    calls = store.get(recorded_calls)
    first = _first_step(store)
    known = None if calls is None else calls[list(COMPARED)]
    return Recorded(profile.rank, profile.world_size, known, first, step_walls(store))


def _first_step(store: FactStore) -> FirstStep | None:
    if (windows := store.get(recorded_steps)) is not None and len(windows):
        warms = store.get(warm_up)
        waits = warms is not None and warms.waits
        return FirstStep(int(windows["step"].iloc[0]), len(windows), warms is not None, waits, HOST_EVENTS in store)
    if (totals := store.get(rank_summary)) is not None and len(totals):  # only sums are known
        return FirstStep(int(totals["step"].iloc[0]), len(totals), False, calls=False)
    return None


def judge(source: RankInput, options: RunOptions, compared: Compared | None = None) -> RankOutcome:
    """Measure and judge one rank, whose steps and ledger what was ``compared`` closes; ``None``: it is `alone`. Raises
    `InputError` when nothing of it is usable."""
    with quiet(), plain_text():
        return _judge(source, options, compared or alone())


def _judge(source: RankInput, options: RunOptions, compared: Compared) -> RankOutcome:
    host, book = prepared(options)
    kept = _kept_of(source, options)
    about = () if kept is None else ("judged", _read_as(options), asked_by(book, host.advisors), printed(compared))
    if kept is not None and (found := kept.read(about, Kept)) is not None:
        tell_read(source.bytes)
        answers = found.told.answers()
        try:
            outcome = _judged_again(source, options, compared, found, kept.files)
        except _ChangedError:
            kept = None  # for this run
        else:
            if found.told.answers() > answers:
                kept.write(kept.files, about, found)
            return outcome
    ready = _ready(source, options, compared)
    began = time.perf_counter()
    profile, store = ready.profile, ready.store
    context = {**context_of(store), "ranks": compared.ranks}
    measurements = Measurements(host, ready.answers, watch=store.watch)
    rules = _rules(host, book, measurements, profile, context)
    wanted = compared.wanted if options.timeline else None
    outcome = outcome_of(host, store, profile, source, context, wanted, compared.shown_step)
    if kept is not None and not measurements.told.failed() and not _raised(store):
        kept.write(ready.files, about, Kept(outcome, measurements.told))
    timings = {**store.watch.seconds(), ANALYSE: time.perf_counter() - began}
    return dataclasses.replace(outcome, rules=rules, timings=timings)


@dataclass(frozen=True)
class Kept:
    """All that judging a rank again takes: its outcome without rules, and what advisors told of it."""

    outcome: RankOutcome
    told: Told


class _ChangedError(BaseException):
    """The files of a rank are no longer those that it was measured on. No `Exception`, which rules may raise by
    mistake."""


def _judged_again(
    source: RankInput, options: RunOptions, compared: Compared, kept: Kept, files: Files | None
) -> RankOutcome:
    """As `judge`, of what was measured on ``files`` before; the rank is read only where a rule asks for more than that.
    Raises `_ChangedError`."""
    began = time.perf_counter()
    host, book = prepared(options)
    watch = Stopwatch()

    @functools.cache
    def read() -> tuple[FactStore, Mapping[str, Table]]:
        ready = _ready(source, options, compared)
        if ready.files != files:
            raise _ChangedError
        return ready.answers()

    measurements = Measurements(host, read, kept.told, watch)
    rules = _rules(host, book, measurements, kept.outcome, kept.outcome.context)
    timings = {LOAD: 0.0, **watch.seconds(), ANALYSE: time.perf_counter() - began}
    return dataclasses.replace(kept.outcome, rules=rules, timings=timings)


def _rules(
    host: Host,
    book: RuleBook,
    measurements: Measurements,
    of: Profile | RankOutcome,
    context: Mapping[str, Scalar],
) -> RuleRun:
    """``of``: the rank, by its profile or by what was kept of it."""
    phase = host.vocabulary(of.vendor).phase_of(of.role)
    job = job_of(context, of.versions, of.variables, phase)
    return run_rules(host, book, Scope.RANK, measurements, of.rank, context, job, {of.vendor})


def _ready(source: RankInput, options: RunOptions, compared: Compared) -> _Loaded:
    """The rank with what the comparison told it."""
    loaded = _held.pop((source, options), None)
    if loaded is None:
        loaded = _load(source, options)
        _recorded(loaded, options)  # in the order in which it is asked where it was derived here
    profile, store = loaded.profile, loaded.store
    if compared.left_out is not None or compared.keeps_first:  # facts of the rank alone took the first step otherwise
        profile = dataclasses.replace(profile, left_out_step=compared.left_out, keeps_first_step=compared.keeps_first)
        store = FactStore(installed_host().facts, profile.given(), store.watch)
    if compared.left_out is not None:
        others = ", ".join(map(str, compared.warming))
        said = message("warm_up.of_job", step=compared.left_out, others=others)
        store.diagnostics.append(Diagnostic(severity="info", source=f"rank {profile.rank}", message=said))
    store.settle(compared.waits)
    return _Loaded(profile, store, loaded.files)


def _load(source: RankInput, options: RunOptions) -> _Loaded:
    host, _ = prepared(options)
    watch = Stopwatch()
    with watch.of(LOAD):
        read = read_rank(host, source, options.cache_bytes)
        profile = dataclasses.replace(
            read.profile, selected_step=options.step, role=source.role, phase_marks=options.phase_marks
        )
        profile = checked(host, profile)
    return _Loaded(profile, FactStore(host.facts, profile.given(), watch), read.files)


def _kept_of(source: RankInput, options: RunOptions) -> Derived | None:
    """The derivations of a rank in another run; ``None`` where nothing is kept, or what it takes is to be told."""
    return None if options.timings else kept_of(installed_host(), source, options.cache_bytes)


def _raised(store: FactStore) -> bool:
    """Whether a fact raised by mistake: the next run tells that anew, with a traceback where one is asked for."""
    return any(diagnostic.severity == "error" for diagnostic in store.diagnostics)


def _read_as(options: RunOptions) -> tuple[object, ...]:
    """The options that change what is derived from a rank."""
    return options.step, options.phase_marks, options.timeline


def checked(host: Host, profile: Profile) -> Profile:
    """A profile as loaded, with the words of its vendor, and with doubt where its files disagree."""
    return cross_checked(dataclasses.replace(profile, vocabulary=host.vocabulary(profile.vendor)))


def fact_store(host: Host, profile: Profile) -> FactStore:
    """The facts that can be derived from a profile as loaded. Until `FactStore.settle` the facts are those of a rank
    alone."""
    return FactStore(host.facts, checked(host, profile).given())
