"""The text export of the Ascend PyTorch Profiler."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pandas as pd

from advisor_core.facts.spec import Unavailable
from advisor_core.loaders import settings
from advisor_core.loaders.ascend_files import COMMUNICATION, DELIVERABLES, MATRIX, NAMES, OUTPUT, TRACE, Deliverable
from advisor_core.loaders.communication_json import read_communication, read_matrix
from advisor_core.loaders.csv_file import read_csv
from advisor_core.loaders.discover import directories
from advisor_core.loaders.files import HashedFile, regular_size
from advisor_core.loaders.problems import Problems
from advisor_core.loaders.profile import InputError, Profile, RankInput
from advisor_core.loaders.trace_json import TraceSource, read_trace
from advisor_core.locale import message
from advisor_core.models.run import Diagnostic, InputFile
from advisor_core.tables import SCHEMAS, Int64Array, PositionKind, Table

KIND: Final = "ascend_pytorch_text"
_FRAMEWORK: Final = "pytorch"
_SUFFIX: Final = "_ascend_pt"
_MINDSPORE: Final = "_ascend_ms"
_TRACE_COLLECT: Final = {"host_events": "loader.collect.cpu", "flows": "loader.collect.both"}


@dataclass(frozen=True)
class _PlainSource:
    """A file whose source rows are positions already."""

    file: str
    position: PositionKind
    sha256: str | None

    def positions(self, source_rows: Int64Array) -> Int64Array:
        return source_rows


class AscendTextLoader:
    """``*_ascend_pt`` directories with csv and json files."""

    name = "ascend_text"

    def discover(self, root: Path) -> Sequence[RankInput]:
        if not root.is_dir():
            found = [_owner(root.parent)] if root.name in NAMES else []
        else:
            found = []
            for directory in directories(root, stop=found):
                if directory == root and root.absolute().name == OUTPUT:
                    found.append(_owner(directory))
                elif _is_profile(directory):
                    found.append(directory)
        ranks = {directory: settings.recorded_rank(directory) for directory in found}
        free = (number for number in range(len(found) + 1) if number not in ranks.values())
        return [
            RankInput(
                root=root,
                directory=directory,
                kind=KIND,
                rank=next(free) if rank is None else rank,
                loader=self.name,
                bytes=sum(regular_size(path) or 0 for path in _paths(root, directory).values()),
            )
            for directory, rank in ranks.items()
        ]

    def load(self, source: RankInput) -> Profile:
        return _Loading(source).profile()


def _is_profile(directory: Path) -> bool:
    """Whether a directory is a profile of this format. Raises `InputError` for one that is recognised but unusable."""
    if directory.name.endswith(_MINDSPORE):
        raise InputError(f"{directory}: a MindSpore profile, which this version cannot read yet")
    output = directory / OUTPUT
    recognised = output.is_dir() or directory.name.endswith(_SUFFIX)
    names = {entry.name for entry in (output if output.is_dir() else directory).iterdir()}
    if names & NAMES:
        return True
    recorded = settings.info_file(directory) is not None
    if any(name.endswith(".db") and "profiler" in name for name in names) and (recognised or recorded):
        raise InputError(
            f"{directory}: holds a DB export only, which this version cannot read yet; export it as text "
            "(torch_npu.profiler._ExperimentalConfig(export_type=[torch_npu.profiler.ExportType.Text]))"
        )
    if not (recognised or recorded):
        return False
    if not names:
        raise InputError(f"{directory}: the profile is empty")
    raise InputError(
        f"{directory}: none of the expected files is there ({', '.join(sorted(NAMES))}); if the profile was "
        f"collected but not analysed, run torch_npu.profiler.profiler.analyse({str(directory)!r}) first"
    )


def _owner(directory: Path) -> Path:
    """The profile that a directory of deliverables belongs to."""
    directory = directory if directory.name else directory.absolute()
    return directory.parent if directory.name == OUTPUT else directory


def _paths(root: Path, directory: Path) -> dict[str, Path]:
    """The deliverables that may be read, by name; only the given one where the user named a file."""
    if not root.is_dir():
        return {root.name: root}
    output = directory / OUTPUT
    folder = output if output.is_dir() else directory
    return {deliverable.name: folder / deliverable.name for deliverable in DELIVERABLES}


class _Loading:
    """Loading one rank."""

    def __init__(self, source: RankInput) -> None:
        self._source = source
        self._tables: dict[str, Table] = {}
        self._missing: dict[str, Unavailable] = {}
        self._files: list[InputFile] = []
        self._diagnostics: list[Diagnostic] = []

    def profile(self) -> Profile:
        recorded, setting_files = self._settings()
        paths = _paths(self._source.root, self._source.directory)
        # the trace is most of the work and holds the interpreter lock; Arrow reads the others without it
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="loader") as pool:
            others = [
                pool.submit(_read, deliverable, paths.get(deliverable.name), self._name(paths.get(deliverable.name)))
                for deliverable in DELIVERABLES
                if deliverable is not TRACE
            ]
            trace = _read(TRACE, paths.get(TRACE.name), self._name(paths.get(TRACE.name)))
            outcomes = [*(other.result() for other in others), trace]
        for outcome in outcomes:
            self._take(outcome, recorded.level)
        if not self._tables:
            reasons = "; ".join(sorted({reason.reason.en for reason in self._missing.values()}))
            raise InputError(f"{self._source.directory}: nothing in this profile can be used: {reasons}")
        recorded = self._with_level(recorded)
        return Profile(
            rank=self._source.rank,
            kind=KIND,
            path=_display(self._source),
            level=recorded.level,
            framework=_FRAMEWORK,
            versions=recorded.versions,
            profiler=recorded.profiler,
            variables=recorded.variables,
            tables={name: self._tables[name] for name in SCHEMAS if name in self._tables},
            missing={name: self._missing[name] for name in SCHEMAS if name in self._missing},
            files=sorted(self._files, key=lambda file: file.name),
            diagnostics=self._diagnostics,
            world_size=recorded.world_size,
            parallel=recorded.parallel,
            groups=recorded.groups,
            setting_files=setting_files,
        )

    def _settings(self) -> tuple[settings.Settings, dict[str, str]]:
        directory = self._source.directory
        info_path = settings.info_file(directory)
        info, info_name = self._object(info_path)
        metadata, metadata_name = self._object(directory / settings.METADATA)
        files = {"profiler": info_name} if info else {}
        if "ENV_VARIABLES" in metadata:
            files["variables"] = metadata_name
        return settings.read_settings(info, metadata), files

    def _object(self, path: Path | None) -> tuple[Mapping[str, Any], str]:
        name = self._name(path)
        if path is None or not os.path.lexists(path):
            return {}, name
        problems = Problems(name)
        body: Mapping[str, Any] = {}
        try:
            with HashedFile(path) as file:
                body = settings.read_object(file, problems)
                self._files.append(self._input_file(file, path))
        except OSError as error:
            problems.say("warning", message("loader.unreadable", file=name, why=error.strerror or str(error)))
        self._diagnostics.extend(problems.diagnostics())
        return body, name

    def _take(self, outcome: _Outcome, level: str | None) -> None:
        deliverable = outcome.deliverable
        self._diagnostics.extend(outcome.diagnostics)
        if outcome.file is not None and outcome.path is not None:
            self._files.append(outcome.file.model_copy(update={"name": self._relative(outcome.path)}))
        for name in deliverable.tables:
            if name in outcome.frames and outcome.source is not None:
                source = replace(outcome.source, sha256=outcome.file.sha256 if outcome.file else None)
                self._tables[name] = Table(SCHEMAS[name], outcome.frames[name], source)
            elif outcome.absent:
                self._missing[name] = self._absence(deliverable, name, level)
            else:
                reason = outcome.missing.get(name) or outcome.failure
                assert reason is not None
                self._missing[name] = Unavailable(reason.reason, reason.collect or _collect(deliverable, name))

    def _absence(self, deliverable: Deliverable, table: str, level: str | None) -> Unavailable:
        if not self._source.root.is_dir():
            reason = message("loader.only_file", file=self._source.root.name, absent=deliverable.name)
            return Unavailable(reason, message("loader.collect.directory"))
        if deliverable.from_level1 and level in ("level_none", "level0"):
            reason = message("loader.absent_at_level", file=deliverable.name, level=level)
            return Unavailable(reason, _collect(deliverable, table))
        return Unavailable(message("loader.absent", file=deliverable.name), _collect(deliverable, table))

    def _with_level(self, recorded: settings.Settings) -> settings.Settings:
        """Level0 records no operator types: their presence tells where profiler_info is missing."""
        if recorded.level is not None or "kernels" not in self._tables:
            return recorded
        table = self._tables["kernels"]
        typed = bool((table.frame["type"] != "").any())
        level = "level1" if typed else "level0"
        said = message("loader.level_inferred", level=level, file=table.source.file)
        self._diagnostics.append(Diagnostic(severity="info", source=table.source.file, message=said))
        return replace(recorded, level=level)

    def _name(self, path: Path | None) -> str:
        """Of a file, relative to what the user named."""
        if path is None:
            return ""
        root = self._source.root
        return Path(os.path.relpath(path, root if root.is_dir() else root.parent)).as_posix()

    def _relative(self, path: Path) -> str:
        return Path(os.path.relpath(path, self._source.directory)).as_posix()

    def _input_file(self, file: HashedFile, path: Path) -> InputFile:
        return file.finish(self._relative(path))


@dataclass(frozen=True)
class _Outcome:
    """What reading one file gave."""

    deliverable: Deliverable
    path: Path | None
    absent: bool = False
    file: InputFile | None = None
    source: _PlainSource | TraceSource | None = None
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    missing: Mapping[str, Unavailable] = field(default_factory=dict)
    failure: Unavailable | None = None
    diagnostics: Sequence[Diagnostic] = ()


def _read(deliverable: Deliverable, path: Path | None, name: str) -> _Outcome:
    """One file into its tables. Damage is an outcome, not an exception."""
    if path is None or not os.path.lexists(path):
        return _Outcome(deliverable, path, absent=True)
    problems = Problems(name)
    read: InputFile | None = None
    try:
        with HashedFile(path) as file:
            try:
                outcome = _frames(deliverable, path, name, file, problems)
                failure = None
            except Unavailable as reason:
                failure = reason
            read = file.finish(name)
    except OSError as error:
        failure = Unavailable(message("loader.unreadable", file=name, why=error.strerror or str(error)))
    if failure is not None:
        problems.say("error", failure.reason)
        return _Outcome(deliverable, path, file=read, failure=failure, diagnostics=problems.diagnostics())
    return replace(outcome, file=read, diagnostics=problems.diagnostics())


def _frames(deliverable: Deliverable, path: Path, name: str, file: HashedFile, problems: Problems) -> _Outcome:
    if deliverable is TRACE:
        trace = read_trace(file, problems)
        source = TraceSource(name, path, None, trace.index)
        return _Outcome(deliverable, path, source=source, frames=trace.frames, missing=trace.missing)
    if deliverable.csv is not None:
        frame = read_csv(file, deliverable.csv, problems)
        return _Outcome(
            deliverable, path, source=_PlainSource(name, "line", None), frames={deliverable.tables[0]: frame}
        )
    read = {COMMUNICATION.name: read_communication, MATRIX.name: read_matrix}[deliverable.name]
    return _Outcome(deliverable, path, source=_PlainSource(name, "offset", None), frames=read(file, problems))


def _collect(deliverable: Deliverable, table: str) -> Any:
    return message(_TRACE_COLLECT.get(table, deliverable.collect))


def _display(source: RankInput) -> str:
    """The path of a rank in a report: relative to what the user named, without the directories of this machine."""
    if source.directory != source.root and source.directory.is_relative_to(source.root):
        return source.directory.relative_to(source.root).as_posix()
    return source.directory.absolute().name
