"""Profiles of the Ascend PyTorch Profiler, exported as text, as databases, or as both."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from advisor_core.contracts.missing import Missing
from advisor_core.contracts.profile import InputError, Profile, RankInput
from advisor_core.contracts.tables import (
    AI_CPU_NODES,
    CORE_COUNTERS,
    COUNTERS,
    GRAPH_MEMORY,
    L2_CACHE,
    PORTS,
    SCHEMAS,
    STEP_TRACE,
)
from advisor_core.loaders.ascend_pytorch import settings
from advisor_core.loaders.ascend_pytorch.db import loader as ascend_db
from advisor_core.loaders.ascend_pytorch.db.loader import AscendDatabases
from advisor_core.loaders.ascend_pytorch.device_info import recorded_device
from advisor_core.loaders.ascend_pytorch.files import OUTPUT, TRACE, UNREAD
from advisor_core.loaders.ascend_pytorch.layout import (
    Layout,
    is_file_of_profile,
    is_mindspore,
    is_profile,
    layout,
    owner,
    recorded_at,
)
from advisor_core.loaders.ascend_pytorch.text import provided, read_text
from advisor_core.loaders.ascend_words import VENDOR
from advisor_core.loaders.discover import directories
from advisor_core.loaders.export import Export
from advisor_core.loaders.readers.files import HashedFile
from advisor_core.loaders.readers.problems import Problems
from advisor_core.remote.ahead import copied_ahead
from advisor_core.result.run import Diagnostic
from advisor_core.text.base import Text
from advisor_core.text.messages import message

TEXT: Final = "ascend_pytorch_text"
DB: Final = "ascend_pytorch_db"
_OF_OPTIONS: Final = {table.name for table in (L2_CACHE, CORE_COUNTERS, COUNTERS, PORTS, GRAPH_MEMORY, AI_CPU_NODES)}
"""Tables that only further options of the profiler add: without them an export is whole."""

_MINDSPORE: Final = {TEXT: "ascend_mindspore_text", DB: "ascend_mindspore_db"}


class AscendPytorchLoader:
    """``*_ascend_pt`` directories, whatever they were exported as.

    Where a directory holds both exports, the one that has more of the canonical tables is read (the text at a tie: it
    alone records which part of the cores a kernel occupied), and what it lacks is read from the other.
    """

    name = "ascend_pytorch"

    def discover(self, root: Path) -> Sequence[RankInput]:
        problems: dict[Path, str] = {}
        if not root.is_dir():
            profiles = [owner(root.parent)] if is_file_of_profile(root.name) else []
        else:
            profiles = []
            for directory in directories(root, stop=profiles):
                if directory == root and root.absolute().name == OUTPUT:
                    profiles.append(owner(directory))
                    continue
                try:
                    if is_profile(directory):
                        profiles.append(directory)
                except InputError as problem:
                    problems[directory] = str(problem)
                    profiles.append(directory)
        # what can be used comes first to the numbers that no profile records
        layouts = {directory: layout(root, directory) for directory in sorted(profiles, key=problems.__contains__)}
        ranks = {directory: _recorded_rank(files) for directory, files in layouts.items()}
        free = (number for number in range(len(profiles) + 1) if number not in ranks.values())
        return [
            RankInput(
                root=root,
                directory=directory,
                kind=_kind(directory, TEXT if files.has_text() or not files.has_databases() else DB),
                rank=next(free) if (rank := ranks[directory]) is None else rank,
                loader=self.name,
                bytes=files.bytes(),
                problem=problems.get(directory, ""),
                recorded_at=recorded_at(directory),
                vendor=VENDOR,
                has_sums=STEP_TRACE.name in provided(files.text) or files.has_databases(),
            )
            for directory, files in layouts.items()
        ]

    def traces(self, source: RankInput) -> Sequence[Path]:
        """The timeline of the text export, where it is there."""
        trace = layout(source.root, source.directory).text.get(TRACE.name)
        return [] if trace is None or not trace.is_file() else [trace]

    def load(self, source: RankInput) -> Profile:
        if source.problem:
            raise InputError(source.problem)
        return _Loading(source).profile()


class _Loading:
    """Loading one rank."""

    def __init__(self, source: RankInput) -> None:
        self._source = source
        self._layout = layout(source.root, source.directory)
        self._place = self._layout.place
        self._wanted = {STEP_TRACE.name} if source.coarse else set(SCHEMAS)
        self._both = Export()

    def profile(self) -> Profile:
        both = self._both
        info, info_name = self._object(settings.info_file(self._source.directory))
        metadata, metadata_name = self._object(self._source.directory / settings.METADATA)
        kind = self._read(settings.read_settings(info, metadata).level)
        if not both.tables:
            reasons = "; ".join(sorted({reason.reason.en for reason in both.missing.values()}))
            raise InputError(f"{self._source.directory}: nothing in this profile can be used: {reasons}")
        recorded = self._with_level(settings.read_settings(info, {**both.metadata, **metadata}))
        device = recorded_device(self._source.directory)
        if device is not None:
            both.diagnostics.extend(device.diagnostics)
            both.files.extend([] if device.file is None else [device.file])
        if self._source.coarse:
            unread = Missing(message("loader.sums_only"), message("loader.sums_only.collect", rank=self._source.rank))
            both.missing |= {name: unread for name in SCHEMAS if name not in self._wanted}
        unread_names = self._unread()
        if unread_names and not self._source.coarse:
            unread_files = message("loader.unread_files", files=", ".join(unread_names))
            both.diagnostics.append(Diagnostic(severity="info", source=_display(self._source), message=unread_files))
        mindspore = is_mindspore(self._source.directory)
        if mindspore and not self._source.coarse:
            note = message("loader.mindspore")
            both.diagnostics.append(Diagnostic(severity="info", source=_display(self._source), message=note))
        variables_file = metadata_name if settings.VARIABLES in metadata else both.metadata_file
        return Profile(
            rank=self._source.rank,
            kind=_kind(self._source.directory, kind),
            path=_display(self._source),
            level=recorded.level,
            vendor=VENDOR,
            framework="mindspore" if mindspore else "pytorch",
            versions=recorded.versions,
            profiler=recorded.profiler,
            variables=recorded.variables,
            tables={name: both.tables[name] for name in SCHEMAS if name in both.tables},
            missing={name: both.missing[name] for name in SCHEMAS if name in both.missing},
            files=sorted(both.files, key=lambda file: file.name),
            diagnostics=both.diagnostics,
            chip={} if device is None else device.chip,
            world_size=recorded.world_size,
            parallel=recorded.parallel,
            groups=recorded.groups,
            group_names=recorded.group_names,
            setting_files=({"profiler": info_name} if info else {})
            | ({"variables": variables_file} if recorded.variables else {}),
            coarse=self._source.coarse,
        )

    def _read(self, level: str | None) -> str:
        """Read the export that has more, and from the other what it lacks. Gives the kind of the first."""
        files, place = self._layout, self._place
        if files.others and files.profiler is not None:
            names = ", ".join(path.name for path in files.others)
            warning = message("loader.other_databases", file=files.profiler.name, others=names)
            self._both.diagnostics.append(
                Diagnostic(severity="warning", source=place.shown(files.profiler), message=warning)
            )
        if not files.has_databases():
            self._merge(read_text(place, files.text, self._wanted, level))
            return TEXT
        with ExitStack() as stack:
            stack.enter_context(copied_ahead(path for path in (files.profiler, files.analysis) if path is not None))
            databases = stack.enter_context(AscendDatabases(place, files.profiler, files.analysis))
            if not files.has_text():
                self._merge(databases.read(self._wanted, level))
                return DB
            in_text, in_db = provided(files.text) & self._wanted, databases.provided() & self._wanted
            broken = databases.unusable()
            if len(in_text) >= len(in_db):
                kind, other = TEXT, in_db
                self._merge(read_text(place, files.text, self._wanted, level))
                lacking = set(self._both.missing)
                needed = bool(lacking & other or lacking - _OF_OPTIONS)
                rest = databases.read(lacking & other, level) if needed else Export(diagnostics=_needless(broken))
            else:
                kind, other = DB, in_text
                self._merge(databases.read(self._wanted, level))
                lacking = set(self._both.missing)
                rest = read_text(place, files.text, lacking & other, level) if lacking & other else Export()
            self._merge(rest)
            if in_db and not self._source.coarse:
                self._say_which(kind, sorted(rest.tables))
            return kind

    def _unread(self) -> list[str]:
        """The files that are not read, without those whose numbers the trace has."""
        table = self._both.tables.get(COUNTERS.name)
        parts = set() if table is None else set(table.frame["part"].unique())
        return [name for name in self._layout.unread if UNREAD[name] not in parts]

    def _merge(self, export: Export) -> None:
        both = self._both
        both.tables |= export.tables
        both.missing |= {name: reason for name, reason in export.missing.items() if name not in both.missing}
        for name in export.tables:
            both.missing.pop(name, None)
        both.files += export.files
        both.diagnostics += export.diagnostics
        if export.metadata:
            both.metadata, both.metadata_file = export.metadata, export.metadata_file

    def _say_which(self, kind: str, filled: Sequence[str]) -> None:
        names = {TEXT: "text", DB: "DB"}
        other = names[DB if kind == TEXT else TEXT]
        note = (
            message("loader.both_filled", chosen=names[kind], other=other, tables=", ".join(filled))
            if filled
            else message("loader.both", chosen=names[kind], other=other)
        )
        self._both.diagnostics.append(Diagnostic(severity="info", source=_display(self._source), message=note))

    def _object(self, path: Path | None) -> tuple[Mapping[str, Any], str]:
        if path is None or not os.path.lexists(path):
            return {}, ""
        name = self._place.shown(path)
        problems = Problems(name)
        body: Mapping[str, Any] = {}
        try:
            with HashedFile(path) as file:
                body = settings.read_object(file, problems)
                self._both.files.append(file.finish(self._place.inside(path)))
        except OSError as error:
            problems.say("warning", message("loader.unreadable", file=name, why=error.strerror or str(error)))
        self._both.diagnostics.extend(problems.diagnostics())
        return body, name

    def _with_level(self, recorded: settings.Settings) -> settings.Settings:
        """Level0 records no operator types: their presence tells where profiler_info is missing."""
        if recorded.level is not None or "kernels" not in self._both.tables:
            return recorded
        table = self._both.tables["kernels"]
        typed = bool((table.frame.loc[table.frame["core"] != "COMMUNICATION", "type"] != "").any())
        level = "level1" if typed else "level0"
        note = message("loader.level_inferred", level=level, file=table.source.file)
        self._both.diagnostics.append(Diagnostic(severity="info", source=table.source.file, message=note))
        return replace(recorded, level=level)


def _needless(broken: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The faults of databases beside a text export that has every table: no table is lost by them."""
    notes = []
    for diagnostic in broken:
        texts = {lang: message("loader.needless", why=diagnostic.message.of(lang)).of(lang) for lang in ("en", "zh")}
        notes.append(Diagnostic(severity="info", source=diagnostic.source, message=Text(**texts)))
    return notes


def _kind(directory: Path, kind: str) -> str:
    """MindSpore's profiler writes the exports of PyTorch's."""
    return _MINDSPORE[kind] if is_mindspore(directory) else kind


def _recorded_rank(files: Layout) -> int | None:
    rank = settings.recorded_rank(files.place.directory)
    if rank is None and files.profiler is not None:
        return ascend_db.recorded_rank(files.profiler)
    return rank


def _display(source: RankInput) -> str:
    """The path of a rank in a report: relative to what the user named, without the directories of this machine."""
    if source.directory != source.root and source.directory.is_relative_to(source.root):
        return source.directory.relative_to(source.root).as_posix()
    return source.directory.absolute().name
