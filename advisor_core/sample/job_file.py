"""A job as a YAML file describes it: what runs, on which ranks, hosts, chips and links, and what is wrong with it.

    like: healthy-compact
    training: {steps: 4, model: {layers: 8}}
    layout: {ranks: 8, tp: 2}
    causes:
      - unfused-swiglu
      - slow-data-loader: {loading_ns: 40000000, ranks: [3], dose: 0.5}
    physics: {contention: [0.1, 0.4]}

The catalogue of scenarios (`catalogue.yaml`) is a file of such documents. ``like`` names one of them: what the file
does not say is as there, but for name and description.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, model_validator

from advisor_core.contracts.problems import Problem, RuleFileError, nearest
from advisor_core.rules.files.documents import mistakes
from advisor_core.rules.files.yaml_file import Document, KeyPath, read_yaml
from advisor_core.text.base import Model, Text

from .causes import CAUSES, Cause
from .export.generation import Headers
from .layout import Layout
from .loops.recorded import RecordedServing, RecordedTraining
from .loops.recorded_reinforcement import RecordedReinforcement
from .loops.reinforcement import Reinforcement
from .loops.serving import Serving
from .loops.training import Training
from .loops.vision import VisionTraining
from .machine.allocator import WHOLE_DEVICE, DeviceMemory
from .machine.chip import Chip
from .machine.context import HostCosts
from .machine.links import HCCS, Link
from .machine.physics import IDEAL, Physics
from .models.recorded import record_of
from .scenario import Scenario
from .setup import Dispatch, RankSetup, Setup, Work

WORK = (
    *("training", "serving", "reinforcement", "vision"),
    *("recorded", "recorded_serving", "recorded_reinforcement"),
)
"""The kinds of work, of which a job has one."""
Catalogue = Callable[[str], Mapping[str, Any] | None]
"""Finds the document of a job in the catalogue, by its name."""


class JobFileError(ValueError):
    """A job cannot be simulated as its file describes it; the text has a line per mistake, with its place."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))


class LayoutEntry(Model):
    """Ranks and how they share the work: ``tp``, ``pp`` and ``dp`` are the sizes of tensor, pipeline and data
    parallelism, ``ep`` over how many data-parallel ranks the experts are spread. ``dp`` follows from ``ranks``."""

    ranks: int | None = Field(default=None, ge=1)
    tp: int = Field(default=1, ge=1)
    pp: int = Field(default=1, ge=1)
    dp: int | None = Field(default=None, ge=1)
    ep: int = Field(default=1, ge=1)
    paired: bool = False
    batched: bool = True

    @model_validator(mode="after")
    def _fits(self) -> LayoutEntry:
        ranks, layout = self.ranks, self.layout
        if ranks is not None and layout.ranks != ranks:
            raise ValueError(f"tp x pp x dp is {layout.ranks}, not the {ranks} ranks that are asked for")
        return self

    @property
    def layout(self) -> Layout:
        """The layout. Raises :class:`ValueError` where the sizes do not fit."""
        data = self.dp or max(1, (self.ranks or 1) // (self.tp * self.pp))
        return Layout(data, self.tp, self.pp, self.ep, self.paired, self.batched)


def _like(default: Any, description: str) -> Any:
    """A part of a job that has its settings from ``default`` where the file gives none."""
    return Field(default_factory=lambda: default, description=description)


class JobFile(Model):
    """One document. It has one of `training`, `serving`, `reinforcement`, `vision`, `recorded`, `recorded_serving` and
    `recorded_reinforcement`."""

    name: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9][a-z0-9-]*$",
        description="that of the file without one; durations depend on it",
    )
    description: Text | None = Field(default=None, description="what kind of job it is, and its causes, without one")
    like: str | None = Field(default=None, description="a scenario of the catalogue")
    export: Headers = Field(default="2025", description="generation of the export")
    first_device: int = Field(default=0, description="number of the device of the first rank")
    training: Training | None = None
    serving: Serving | None = None
    reinforcement: Reinforcement | None = None
    vision: VisionTraining | None = None
    recorded: RecordedTraining | None = None
    recorded_serving: RecordedServing | None = None
    recorded_reinforcement: RecordedReinforcement | None = None
    layout: LayoutEntry = _like(LayoutEntry(), "the ranks")
    loading_ns: int = Field(
        default=RankSetup().loading_ns,
        description="what the data loader needs for a batch, or the scheduler of a service for a step",
    )
    host: HostCosts = _like(HostCosts(), "what the host needs for operators and calls")
    dispatch: Dispatch = _like(Dispatch(), "the way from operators to CANN")
    chip: Chip = _like(Chip(), "the devices")
    link: Link = _like(HCCS, "what joins them")
    memory: DeviceMemory = _like(WHOLE_DEVICE, "memory of a device, and how the framework uses it")
    variables: dict[str, str] = Field(default_factory=dict, description="environment variables that are set")
    physics: Physics = _like(IDEAL, "what no model of the job knows; off unless it is given")
    causes: list[str | dict[str, dict[str, Any] | None]] = Field(default_factory=list, description="[causes](#causes)")

    @model_validator(mode="after")
    def _works(self) -> JobFile:
        given = [kind for kind in WORK if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"a job is one of {', '.join(WORK)}; this is {' and '.join(given) or 'none of them'}")
        return self

    @property
    def work(self) -> Work:
        """The work of the job."""
        work: Work = next(found for kind in WORK if (found := getattr(self, kind)) is not None)
        return work

    @property
    def setup(self) -> Setup:
        """The healthy job."""
        layout = self.layout.layout
        ranks = (RankSetup(loading_ns=self.loading_ns, mhz=self.chip.mhz),) * layout.ranks
        return Setup(
            self.work,
            self.host,
            ranks,
            self.dispatch,
            self.link,
            variables=tuple(self.variables.items()),
            # The layout of data parallelism follows from the ranks.
            layout=None if layout == Layout(data=layout.ranks) else layout,
            memory=self.memory,
            chip=self.chip,
            physics=self.physics,
        )


def read_job(path: Path, catalogue: Catalogue) -> Scenario:
    """The job that a file describes; without a name of its own it has that of the file. Raises `JobFileError`."""
    jobs = read_jobs(path, catalogue)
    if len(jobs) != 1:
        raise JobFileError([Problem(str(path), 0, 0, f"has {len(jobs)} documents", "a file is one job")])
    return jobs[0]


def read_jobs(path: Path, catalogue: Catalogue) -> list[Scenario]:
    """The jobs of all documents of a file. Raises `JobFileError`."""
    try:
        documents = read_yaml(path)
    except RuleFileError as error:
        raise JobFileError(error.problems) from None
    return [job_of(document, path.stem, catalogue) for document in documents]


def job_of(document: Document, name: str, catalogue: Catalogue) -> Scenario:
    """The job of one document. Raises `JobFileError`."""
    try:
        # By way of JSON, where pydantic's strict mode accepts a list for a tuple and still nothing else.
        described = JobFile.model_validate_json(json.dumps(_whole(document, catalogue)), strict=True)
    except ValidationError as error:
        raise JobFileError(list(mistakes(document, JobFile, error))) from None
    setup = described.setup
    try:
        _fit(setup)
    except ValueError as error:
        raise JobFileError([document.problem(("layout",), str(error))]) from None
    causes = tuple(_causes(document, described, setup))
    description = described.description or _description(described, causes)
    headers, first = described.export, described.first_device
    return Scenario(described.name or name, description, headers, setup, causes, first)


def _fit(setup: Setup) -> None:
    """Raises :class:`ValueError` where work and layout do not fit."""
    layout, work = setup.arrangement, setup.training
    if isinstance(work, RecordedTraining):
        ranks = record_of(work.program, work.written_out).tensor
        if layout.tensor != ranks:
            raise ValueError(f"{work.program!r} was recorded with a tp of {ranks}, and has no other")
        if layout.expert > 1:
            raise ValueError("recorded programs are spread by tp, pp and dp only")
        if layout.pipeline > 1:
            work.stages(layout.pipeline)
        return
    if not isinstance(work, Training):
        if not layout.only_data:
            raise ValueError("only training is spread by tp, pp or ep")
        if isinstance(work, RecordedReinforcement):
            record_of(work.program, work.written_out)
        if isinstance(work, RecordedServing):
            record_of(work.program, work.written_out)
            if layout.ranks > 1:
                raise ValueError("a recorded program that generates tokens runs on one rank")
        return
    for stage in range(layout.pipeline):
        work.part(stage, layout.pipeline)
    if layout.tensor > 1:
        work.shape.divided(layout.tensor)
    if work.shape.experts and (layout.expert == 1 or layout.tensor > 1):
        raise ValueError("experts need an ep of more than 1 and are not divided any further")


def _whole(document: Document, catalogue: Catalogue) -> dict[str, Any]:
    """The values of the document, with those that it takes over."""
    if not isinstance(document.data, dict):
        raise JobFileError([document.problem((), "a job is a mapping of keys to values")])
    data: dict[str, Any] = document.data
    like = data.get("like")
    while isinstance(like, str):
        other = catalogue(like)
        if other is None:
            problem = document.problem(("like",), f"there is no scenario {like!r}", "see advisor sample --list")
            raise JobFileError([problem])
        data = _merged({key: value for key, value in other.items() if key not in {"name", "description", "like"}}, data)
        like = other.get("like")
    return data


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings are merged key by key, every other value is replaced; so is a layout, which is one thing."""

    def both(key: str, value: Any) -> Any:
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict) and key != "layout":
            return _merged(before, value)
        return value

    return {**old, **{key: both(key, value) for key, value in new.items()}}


def _causes(document: Document, described: JobFile, setup: Setup) -> Iterator[Cause]:
    """The causes, each of them one that the job can have."""
    problems: list[Problem] = []
    for number, entry in enumerate(described.causes):
        place: KeyPath = ("causes", number)
        settings = {entry: None} if isinstance(entry, str) else entry
        if len(settings) != 1:
            problems.append(document.problem(place, "an entry is one cause", "name: {setting: value}"))
            continue
        ((name, given),) = settings.items()
        if isinstance(entry, dict):
            place = (*place, name)
        found = _cause(document, place, name, given or {}, problems)
        if found is None:
            continue
        strange = sorted(set(found.involved) - set(range(len(setup.ranks))))
        if strange:
            problems.append(document.problem(place, f"{name}: the job has no rank {strange[0]}"))
            continue
        try:
            setup = found.afflict(setup)
            _fit(setup)
        except ValueError as error:
            problems.append(document.problem(place, f"{name}: {error}"))
            continue
        yield found
    if problems:
        raise JobFileError(problems)


def _cause(
    document: Document, place: KeyPath, name: str, given: Mapping[str, Any], problems: list[Problem]
) -> Cause | None:
    known = CAUSES.get(name)
    if known is None:
        problems.append(document.problem(place, f"there is no cause {name!r}", nearest(name, CAUSES), key=True))
        return None
    for setting in given:
        if setting not in known.settings:
            hint = nearest(setting, known.settings) or f"it has: {', '.join(known.settings)}"
            problems.append(document.problem((*place, setting), f"{name}: unknown key {setting!r}", hint, key=True))
    if any(setting not in known.settings for setting in given):
        return None
    try:
        return known.make(given)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            where = [str(step) for step in detail["loc"]]
            said = str(detail["msg"]).removeprefix("Value error, ")
            text = f"{name}: {'.'.join([*where, ''])[:-1]}{': ' if where else ''}{said}"
            problems.append(document.problem((*place, *detail["loc"]), text))
        return None


_KINDS = {
    "training": Text(en="Training", zh="训练"),
    "vision": Text(en="Training", zh="训练"),
    "recorded": Text(en="Training of recorded model code", zh="录制的模型代码的训练"),
    "recorded_serving": Text(en="Serving with recorded model code", zh="录制的模型代码的推理"),
    "recorded_reinforcement": Text(en="Reinforcement learning with recorded model code", zh="录制的模型代码的强化学习"),
    "serving": Text(en="Serving", zh="推理"),
    "reinforcement": Text(en="Reinforcement learning", zh="强化学习"),
}


def _description(described: JobFile, causes: tuple[Cause, ...]) -> Text:
    what = next(text for kind, text in _KINDS.items() if getattr(described, kind) is not None)
    titles = [CAUSES[cause.name].title for cause in causes]
    count = described.layout.layout.ranks
    ranks = f"{count} ranks" if count > 1 else "one rank"
    with_ = f" with {' and '.join(title.en for title in titles)}; otherwise tuned." if titles else ", tuned."
    problems = f"{', '.join(title.zh for title in titles)}; 其余均已调优。" if titles else "已调优。"
    return Text(en=f"{what.en} on {ranks}{with_}", zh=f"{count} 个 rank 的{what.zh}, {problems}")
