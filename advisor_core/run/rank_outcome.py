"""The outcome of a rank, which leaves its process, put together from its facts."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from advisor_core.contracts.advisor import Scope
from advisor_core.contracts.doubt import DOUBT
from advisor_core.contracts.isolation import working
from advisor_core.contracts.keys import Answers
from advisor_core.contracts.missing import Unanswered
from advisor_core.contracts.profile import Profile, RankInput
from advisor_core.facts.communication.calls import recorded_calls
from advisor_core.facts.context import context
from advisor_core.facts.device.chip import chip
from advisor_core.facts.device.peaks import peaks
from advisor_core.facts.device.work import operator_types, work
from advisor_core.facts.doubt.cross_check import doubts
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.memory import memory_curve, memory_peak, memory_steps
from advisor_core.facts.replay.contention import contention
from advisor_core.facts.replay.critical_path import critical_path
from advisor_core.facts.replay.explained import Explained, explained
from advisor_core.facts.replay.replay import replay
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from advisor_core.job.calls import COMPARED
from advisor_core.job.rank_model import RankModel
from advisor_core.plugins.crash import crash
from advisor_core.plugins.host import Host
from advisor_core.result.run import Diagnostic, Input, LedgerStep, LedgerWindow, PhaseTime, StepInfo
from advisor_core.result.view import View
from advisor_core.result.work import MemoryPeak
from advisor_core.run.computed_times import rank_computed
from advisor_core.run.ledger_steps import ledger_steps, window_of
from advisor_core.run.link_matrix import rank_links
from advisor_core.run.memory_views import memory_curve_view, memory_peak_view
from advisor_core.run.phase_times import phase_times
from advisor_core.run.rank_lane import StepLane, step_lane
from advisor_core.run.rank_timeline import RankTimes, Wanted, rank_timeline
from advisor_core.run.resolve_evidence import scalar
from advisor_core.run.run_rules import RuleRun
from advisor_core.run.step_views import operator_bars, step_strip
from advisor_core.run.unknown_launches import unknown_launches
from advisor_core.run.work_times import RankWork, rank_work
from advisor_core.text.base import Scalar
from advisor_core.text.messages import message


@dataclass(frozen=True)
class RankOutcome:
    """The outcome of one rank that the job needs. ``shared``: the facts that advisors of the job need; ``model``: its
    graph, ``None`` where it has none; ``links``: as of `rank_links`; ``lane``: the step in which the ranks are shown
    side by side; ``timings``: seconds by phase, and by fact and advisor."""

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
    shared: Answers
    views: list[View]
    role: str
    phases: list[PhaseTime]
    diagnostics: list[Diagnostic]
    vendor: str = ""
    work: RankWork | None = None
    links: pd.DataFrame | None = None
    lane: StepLane | None = None
    memory: MemoryPeak | None = None
    explained: Explained | None = None
    model: RankModel | None = None
    timeline: RankTimes | None = None
    window: LedgerWindow = "step"
    rules: RuleRun = field(default_factory=RuleRun)
    timings: Mapping[str, float] = field(default_factory=dict)

    @property
    def versions(self) -> Mapping[str, str]:
        """Of what the rank ran on."""
        return self.source.versions


def outcome_of(
    host: Host,
    store: FactStore,
    profile: Profile,
    source: RankInput,
    context: Mapping[str, Scalar],
    wanted: Wanted | None,
    shown_step: int | None,
) -> RankOutcome:
    """The outcome of a rank whose rules were judged, without them. ``wanted``: what a timeline wants of it;
    ``shown_step``: the step in which the ranks are shown side by side."""
    shared = _shared(host, store)
    steps, ledger = ledger_steps(store, profile)
    window = window_of(store, steps)
    views = [*_views(store, profile.rank, window), *_drawn(host, store), *_memory_views(store, profile.rank)]
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
        work=rank_work(store, rank_computed(host, store)),
        links=rank_links(store),
        lane=step_lane(store, shown_step),
        memory=_memory(store, profile.rank),
        explained=store.get(explained),
        model=_model(store, profile.rank),
        timeline=None if wanted is None else rank_timeline(store, profile.rank, wanted),
        window=window,
    )


def _model(store: FactStore, rank: int) -> RankModel | None:
    replayed, calls = store.get(replay), store.get(recorded_calls)
    if replayed is None or not replayed.recorded_ns:
        return None
    device = store[work]
    operators = device[["type", "operator_class"]].assign(named=operator_types(device))
    compared = None if calls is None else calls[list(COMPARED)]
    slowed = store.get(contention)
    return RankModel(
        rank,
        replayed,
        compared,
        operators,
        store.get(host_activity),
        None if slowed is None else slowed["slowed"].to_numpy(),
    )


def _older(source: RankInput) -> list[Diagnostic]:
    """The diagnostic that names the recordings of the same rank that were not read."""
    if not source.older:
        return []
    names = ", ".join(path.relative_to(source.root).as_posix() for path in source.older)
    newest = source.directory.relative_to(source.root).as_posix()
    said = message("loader.older_recordings", recordings=len(source.older) + 1, newest=newest, older=names)
    return [Diagnostic(severity="warning", source=source.directory.name, message=said)]


def _shared(host: Host, store: FactStore) -> Answers:
    """The facts of the rank that advisors of the job ask for."""
    of_job = [advisor for advisor in host.advisors.values() if advisor.scope is Scope.JOB]
    shared = Answers()
    shared.put(DOUBT, store[DOUBT])
    for key in (key for advisor in of_job for key in (*advisor.needs, *advisor.wants)):
        if not shared.answers(key):
            shared.put(key, store.find(key))
    return shared


def context_of(store: FactStore) -> dict[str, Scalar]:
    """The constants of the job, for conditions."""
    return dict(store.get(context) or {})


def _chip(store: FactStore, profile: Profile) -> dict[str, Scalar]:
    """The chip as derived, else as recorded; of one without a recorded name ``fitting_models``, those it can be."""
    found = store.get(chip)
    if found is None:
        rates = store.get(peaks)
        fitting = " / ".join(rates.models) if rates is not None and "name" not in profile.chip else ""
        return {**profile.chip, **({"fitting_models": fitting} if fitting else {})}
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
