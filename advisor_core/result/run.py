"""RunResult: the one result of a run, and contract 2 (``report.json``)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from advisor_core.result.balance import Balance
from advisor_core.result.finding import Finding, Severity
from advisor_core.result.iteration import Iteration
from advisor_core.result.links import LinkMatrix
from advisor_core.result.plan import Owner, Plan
from advisor_core.result.problem import Coverage, Problem, Unexplained
from advisor_core.result.side_by_side import PipelinePasses, SideBySide
from advisor_core.result.slack import Slack
from advisor_core.result.spread import RankTime, Spread
from advisor_core.result.timeline import Timeline
from advisor_core.result.view import View
from advisor_core.result.work import MemoryPeak, Work
from advisor_core.text.base import Model, Scalar, Text

SCHEMA_VERSION = "2.1"

LedgerWindow = Literal["step", "call", "stretch", "recording"]
"""The stretch of time that a ledger divides. ``call``: one of the launches of a benchmark of an operator; ``stretch``:
rows between two holes of a recording that is not whole; ``recording``: all of it, as no steps are marked."""

State = Literal["fail", "pass", "not_applicable", "cannot_answer", "error", "left_out"]


UNANSWERED: tuple[State, ...] = ("cannot_answer", "error", "left_out")
"""States in which a rule says nothing of the profile."""


class Tool(Model):
    name: str
    version: str
    plugins: dict[str, str] = Field(default_factory=dict, description="plugin name to version")


class InputFile(Model):
    name: str
    bytes: int
    sha256: str


class Input(Model):
    """One rank's profile. ``vendor``: whose devices were recorded, '' unknown. ``sha256`` covers names and contents of
    the files that were read. ``coarse``: only the sums of its steps are recorded, or were read."""

    path: str
    kind: str
    vendor: str = ""
    rank: int
    level: str | None
    framework: str | None
    versions: dict[str, str] = Field(default_factory=dict)
    sha256: str
    files: list[InputFile] = Field(default_factory=list)
    role: str | None = None
    coarse: bool = False


class Environment(Model):
    """The settings of the job, as far as the profile records them. A variable that is not listed here is unknown, not
    unset."""

    chip: dict[str, Scalar] = Field(default_factory=dict)
    variables: dict[str, str] = Field(default_factory=dict, description="'' means recorded as unset")
    profiler: dict[str, Scalar] = Field(default_factory=dict)


class StepInfo(Model):
    """A recorded step. Its start and end are ``None`` where only the exporter's summary of it is known. Of a step that
    was recorded alone: how long its mark on the host lasts, and how much of that lies before its start and behind its
    end, in no figure. Of a recording without step marks: how much of it lies before its first kernel and behind the end
    of its last one, in no figure either, and for how long the device copied in that time (``None``: not recorded)."""

    rank: int
    step: int | None
    start_ns: int | None
    end_ns: int | None
    role: str | None = None
    mark_ns: int | None = None
    mark_before_ns: int | None = None
    mark_after_ns: int | None = None
    recorded_before_ns: int | None = None
    recorded_after_ns: int | None = None
    copied_beside_ns: int | None = None


class Profile(Model):
    """``kind``: ``training``, ``inference`` or ``unknown``; ``rl`` for several roles. ``parallel``: sizes by dimension
    (tp, pp, dp, ...). ``role``: the one that was chosen of a job that profiles each of its roles by itself. ``roles``:
    where several of them are in the report, each with its own kind, in order of time; what belongs to one then carries
    its name as ``role``."""

    kind: str
    window: LedgerWindow = Field("step", description="what the report calls a step, and its ledger is of")
    ranks: list[int]
    apart: list[str] = Field(
        default_factory=list,
        description="fingerprints of the findings by which the ranks are not of one run; no number is then a mean over "
        "them, and `mean_steps` has each rank alone",
    )
    world_size: int | None = None
    software: list[str] = Field(
        default_factory=list,
        description="engines and libraries whose code the recording shows, as the registry of names has them",
    )
    steps: list[StepInfo]
    parallel: dict[str, int] = Field(default_factory=dict)
    role: str | None = None
    roles: dict[str, str] = Field(default_factory=dict)


COVERED = "overlapped_communication_ns"
"""Detail of an entry of the ledger: ns of communication that ran under its computing."""


class LedgerEntry(Model):
    """A leaf: ``ns`` of the step booked under ``path`` (``idle/host/framework``). ``pieces``: the largest stretches of
    it, with what they point at in the files; told for the slowest step of a rank. ``reason`` and ``collect``: why an
    entry ``.../unknown`` has no cause, and what would tell it."""

    path: str
    ns: int
    reason: Text | None = None
    collect: Text | None = None
    detail: dict[str, Scalar] = Field(default_factory=dict)
    pieces: list[dict[str, Scalar]] = Field(default_factory=list)


class LedgerStep(Model):
    """One step of one rank. The entries sum to ``wall_ns`` exactly."""

    rank: int
    step: int | None
    wall_ns: int
    entries: list[LedgerEntry]
    role: str | None = None


class MeanStep(Model):
    """The mean over the steps of a rank. The entries (ledger path to ns) sum to ``wall_ns`` exactly. ``rank`` ``None``:
    the mean of all ranks; of several roles, with a ``role`` the mean of its ranks, without one the iteration that the
    roles make up one after the other. ``steps``: how many were recorded."""

    role: str | None
    rank: int | None
    steps: int
    wall_ns: int
    entries: dict[str, int]


class PhaseTime(Model):
    """One phase of an iteration of reinforcement learning, or one part of another recording of several (prefill and
    decode), in one step of one rank.

    ``phase``: the role that was profiled by itself, what marks in the trace name, or the part; ``''`` is the time
    outside all marks, so that the phases of a step add up to it. ``kind``: what the name stands for (``rollout``,
    ``update_actor`` ...), '' unknown. ``entries``: ledger path to ns; they sum to ``wall_ns``. ``spans``: stretches of
    time that the phase consists of.
    """

    rank: int
    step: int | None
    phase: str
    kind: str
    wall_ns: int
    spans: int
    entries: dict[str, int]


class PhaseSummary(Model):
    """One phase over all steps and ranks. ``ns``: per step, mean over its ranks, and ``share`` of all phases together;
    ``entries``: ledger path to ns of that mean. ``parts``: trunk of the ledger and ``communication/wait``, as shares of
    the phase. ``longest``, ``shortest``: the ranks with most and least time apart from waiting for others, ``None``
    where one rank only was profiled; ``spread``: how much less the median of that is than the longest, of the
    longest."""

    phase: str
    kind: str
    ranks: int
    ns: int
    share: float
    parts: dict[str, float]
    entries: dict[str, int]
    longest: RankTime | None
    shortest: RankTime | None
    spread: float


class RuleOutcome(Model):
    """The state of one rule; the absence of a finding never reads as health. ``title`` says the matter as it is when in
    order. Where the ranks differ ``state`` is the first of fail, error, pass, cannot_answer and not_applicable that
    holds for one of them; ``collect`` and ``options`` are those of the ranks that cannot answer."""

    rule: str
    name: str
    ruleset: str = Field("", description="the set that it belongs to")
    only_for: Text | None = Field(
        None, description="the devices that it is for, where it was not judged because none of them was recorded"
    )
    title: Text
    state: State
    ranks: dict[State, list[int]] = Field(
        default_factory=dict, description="for which ranks each state holds; empty for a rule that judges the whole job"
    )
    reason: Text | None = None
    collect: Text | None = None
    options: list[str] = Field(
        default_factory=list, description="what a new profile has to record for an answer: ids for `advisor collect`"
    )
    severity: Severity | None = None
    findings: int = 0
    condition: str = ""
    params: dict[str, Scalar] = Field(default_factory=dict, description="thresholds in base units (ns, B, ratio)")
    set_by: dict[str, str] = Field(default_factory=dict, description="who changed a threshold: --set, or file and line")
    role: str | None = None


class Diagnostic(Model):
    """Something about the input or the tool that the reader must know. ``about``: whether it is the input that is
    wrong, or a rule or plugin, which then said nothing of the profile."""

    severity: Literal["error", "warning", "info"]
    source: str
    message: Text
    about: Literal["input", "tool"] = "input"
    role: str | None = None


class Contradiction(Model):
    """Dependencies that the recorded times contradict: those of one kind between tasks of the same names on a rank.
    ``kind``: ``handed`` and ``launched`` (a task waits for its launch), ``done`` (a call of the host waits for a task),
    ``ready``, ``held`` and ``awaited`` (a task waits for one of another stream), ``follows`` (a task without a recorded
    launch waits for that of the one before), ``room_made`` (a launch waits for room in a queue). ``source``: the task
    that, or whose launch, was to be waited for, '' where it is a call of the host; ``target``: likewise, what was to
    wait. ``most_ns``: by how much a source ended after its target began, at most."""

    rank: int
    kind: Literal["handed", "launched", "done", "ready", "held", "awaited", "follows", "room_made"]
    source: str
    target: str
    count: int
    most_ns: int


class ReplayModel(Model):
    """The dependency graph that is replayed, over all ranks that have one. ``edges``: what waited for what;
    ``inferred_edges``: those of them that no file records; ``violated_edges``: how many more there would be that the
    recorded times contradict; ``contradictions``: the largest of those of each rank. ``error_share_by_rank``: of the
    steps of each rank, the part that the replay misses when every unexplained delay is the median of its kind.
    ``joined_calls``: collectives, and pairs of sends and receives, that were found to be the same on several ranks."""

    nodes: int
    edges: int
    inferred_edges: int
    violated_edges: int
    error_share_by_rank: dict[int, float]
    joined_calls: int = 0
    contradictions: list[Contradiction] = Field(default_factory=list)


class RunResult(Model):
    """``phases``: the time of each phase, where the profile tells phases. ``role_environments``: by role, where
    several were profiled by themselves; ``environment`` then shows them side by side. ``labels``: the
    headings of the columns that are shown (``heading.COLUMN``) and what plugins call parts of the ledger
    (``path.PATH``)."""

    schema_version: str = SCHEMA_VERSION
    tool: Tool
    inputs: list[Input]
    environment: Environment
    profile: Profile
    ledger: list[LedgerStep]
    mean_steps: list[MeanStep] = Field(default_factory=list, description="of the whole first, then of its parts")
    problems: list[Problem] = Field(default_factory=list, description="the findings as reports number and order them")
    unexplained: list[Unexplained] = Field(default_factory=list, description="largest first")
    coverage: Coverage = Field(default_factory=Coverage)
    findings: list[Finding]
    rules: list[RuleOutcome]
    views: list[View]
    diagnostics: list[Diagnostic]
    timings: dict[str, float] = Field(
        default_factory=dict,
        description="seconds per phase, with `--timings` also per fact and advisor; may be left out",
    )
    model: ReplayModel | None = Field(
        None, description="how well the replay explains the recording; not told where no rank has launches, or of roles"
    )
    plan: Plan | None = Field(
        None, description="what to do first and what it wins; not told where no rank has launches, or of roles"
    )
    critical_path: list[Owner] = Field(
        default_factory=list, description="what the end of a step waits for, largest first; adds up to plan.step_ns"
    )
    slack: list[Slack] = Field(
        default_factory=list,
        description="operator types and collectives, the longest first; not told where the plan is not",
    )
    balance: Balance | None = Field(
        None, description="the ranks side by side, and what their differences cost; not told of one rank, or of roles"
    )
    side_by_side: list[SideBySide] = Field(
        default_factory=list, description="ranks over one step, by role; none of one rank, or of ranks of several runs"
    )
    pipelines: list[PipelinePasses] = Field(
        default_factory=list,
        description="passes over the stages of one pipeline, by role; none where the sizes of the layout, or which "
        "kernels are of backward passes, are not recorded",
    )
    spread: list[Spread] = Field(
        default_factory=list,
        description="how much the ranks of a role differ: parts, operators, collectives, then phases; none of one "
        "rank, or where the ranks are not of one run",
    )
    links: list[LinkMatrix] = Field(
        default_factory=list, description="what data moved between ranks, by role; none where it is not recorded"
    )
    work: list[Work] = Field(
        default_factory=list, description="operators and collectives of the steps, by role; none where none are known"
    )
    memory: list[MemoryPeak] = Field(default_factory=list, description="by rank; none where it is not recorded")
    phases: list[PhaseTime] = Field(default_factory=list)
    phase_summaries: list[PhaseSummary] = Field(default_factory=list)
    iteration: Iteration | None = Field(None, description="roles that were recorded one by one, on one axis of time")
    role_environments: dict[str, Environment] = Field(default_factory=dict)
    labels: dict[str, Text] = Field(default_factory=dict)
    timeline: SkipJsonSchema[Timeline | None] = Field(None, exclude=True)
    """The intervals of each lane, where a format that is written asks for them; no part of report.json, which is the
    same whatever else is written."""

    @property
    def numbers(self) -> dict[str, str]:
        """The number of the problem that each finding is, by its fingerprint."""
        return {problem.findings[0]: problem.number for problem in self.problems}
