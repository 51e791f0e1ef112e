"""Profiles of msprof without a framework: ``PROF_*`` directories, their exported files, or one of these.

ATB and MindIE runs leave the same files. One directory is one rank; a directory that belongs to the profiler of a
framework is left to its loader. Of the files only op_summary has been seen in a real export (`msprof_files`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from advisor_core.contracts.profile import InputError, Profile, RankInput
from advisor_core.contracts.tables import SCHEMAS
from advisor_core.loaders.ascend_pytorch.db import loader as ascend_db
from advisor_core.loaders.ascend_pytorch.device_info import DeviceInfo, find_device_info
from advisor_core.loaders.ascend_words import VENDOR
from advisor_core.loaders.discover import directories
from advisor_core.loaders.export import Export
from advisor_core.loaders.msprof import layout as msprof_layout
from advisor_core.loaders.msprof.files import DATABASE, KNOWN, TIMELINE, export_name
from advisor_core.loaders.msprof.layout import Layout
from advisor_core.result.run import Diagnostic
from advisor_core.text.messages import message

KIND: Final = "msprof"


class MsprofLoader:
    """Load the files of ``msprof --export``: one device of one process."""

    name = "msprof"

    def discover(self, root: Path) -> Sequence[RankInput]:
        problems: dict[Path, str] = {}
        profiles = _profile_directories(root, problems)
        layouts = {directory: msprof_layout.layout(root, directory) for directory in profiles}
        recorded = {directory: _recorded_rank(files) for directory, files in layouts.items()}
        free = (number for number in range(len(profiles) + 1) if number not in recorded.values())
        return [
            RankInput(
                root=root,
                directory=directory,
                kind=KIND,
                rank=next(free) if (rank := recorded[directory]) is None else rank,
                loader=self.name,
                bytes=layouts[directory].bytes(),
                problem=problems.get(directory, ""),
                vendor=VENDOR,
            )
            for directory in sorted(profiles, key=problems.__contains__)
        ]

    def traces(self, source: RankInput) -> Sequence[Path]:
        """The timeline, in as many files as it was written."""
        return msprof_layout.layout(source.root, source.directory).exports.get(TIMELINE.kind, ())

    def load(self, source: RankInput) -> Profile:
        from advisor_core.loaders.msprof.export import MsprofExport  # most runs read none

        if source.problem:
            raise InputError(source.problem)
        files = msprof_layout.layout(source.root, source.directory)
        name = _display(source)
        read = MsprofExport(files, name)
        export = read.export
        if not export.tables:
            damage = {diagnostic.message.en for diagnostic in export.diagnostics if diagnostic.severity == "error"}
            reasons = damage or {export.missing[table].reason.en for table in ("kernels", "device_tasks")}
            raise InputError(f"{source.directory}: nothing in this profile can be used: {'; '.join(sorted(reasons))}")
        info = _device(files, read.device)
        if info is not None:
            export.diagnostics.extend(info.diagnostics)
            export.files.extend([] if info.file is None else [info.file])
        return Profile(
            rank=source.rank,
            kind=KIND,
            path=name,
            vendor=VENDOR,
            level=_level(export),
            framework=_framework(export),
            versions={},
            profiler={},
            variables={},
            tables={name: export.tables[name] for name in SCHEMAS if name in export.tables},
            missing={name: export.missing[name] for name in SCHEMAS if name in export.missing},
            files=sorted(export.files, key=lambda file: file.name),
            diagnostics=export.diagnostics,
            chip={} if info is None else info.chip,
        )


def _profile_directories(root: Path, problems: dict[Path, str]) -> list[Path]:
    """The directories of profiles at or below ``root``; ``problems``: what is wrong with some of them."""
    if not root.is_dir():
        if DATABASE.fullmatch(root.name):
            return [root.parent]
        named = export_name(root.name)
        deliverable = KNOWN.get(named.kind) if named is not None else None
        return (
            [msprof_layout.owner(root.parent)]
            if deliverable is not None and root.name.endswith(deliverable.suffix)
            else []
        )
    profiles: list[Path] = []
    closed: list[Path] = []
    for directory in directories(root, stop=closed):
        if msprof_layout.of_framework(directory):
            closed.append(directory)
            continue
        try:
            if not msprof_layout.is_profile(directory):
                continue
        except InputError as problem:
            problems[directory] = str(problem)
        closed.append(directory)
        profiles.append(msprof_layout.owner(directory))
    return profiles


def _recorded_rank(files: Layout) -> int | None:
    infos = find_device_info(files.place.directory, files.place.directory)
    rank = next((info.rank for info in infos if info.rank is not None), None)
    return ascend_db.recorded_rank(files.database) if rank is None and files.database is not None else rank


def _device(files: Layout, device: int | None) -> DeviceInfo | None:
    """The records of the device: of the only one, where the tables name none."""
    infos = find_device_info(files.place.directory, files.place.directory)
    if device is None:
        return infos[0] if len(infos) == 1 else None
    return next((info for info in infos if info.device == device), None)


_GRAPH_NAMES: Final = r"(?:Gradients/)?Default/.+-op\d+"
"""The names that operators of a graph of MindSpore have: their scope, and a number (real export)."""

MOSTLY: Final = 0.5
"""Share of the tasks with a scope in their names that have such names where the program is of MindSpore; our choice."""


def _framework(export: Export) -> str | None:
    """Inferred from the names of operators, as msprof does not record it; ``None`` where they do not tell."""
    table = export.tables.get("kernels") or export.tables.get("device_tasks")
    if table is None or not len(table.frame):
        return None
    names = table.frame["name"].astype(str)
    of_graph = names.str.fullmatch(_GRAPH_NAMES)
    scoped = names.str.contains("/", regex=False)
    if not of_graph.any() or of_graph.sum() <= MOSTLY * scoped.sum():
        return None
    note = message("loader.msprof.mindspore", name=names[of_graph].iloc[0])
    export.diagnostics.append(Diagnostic(severity="info", source=table.source.file, message=note))
    return "mindspore"


def _level(export: Export) -> str | None:
    """msprof records its options in the raw data only. As in the exports of a framework, operator types tell level 1
    (``--task-time=l1``, the default) from level 0."""
    table = export.tables.get("kernels")
    if table is None:
        return None
    communication = table.frame["core"] == "COMMUNICATION"
    level = "level1" if (table.frame.loc[~communication, "type"] != "").any() else "level0"
    note = message("loader.msprof.level", level=level, file=table.source.file)
    export.diagnostics.append(Diagnostic(severity="info", source=table.source.file, message=note))
    if level == "level0" and not communication.any():
        hidden = message("loader.msprof.no_collectives", file=table.source.file)
        export.diagnostics.append(Diagnostic(severity="warning", source=table.source.file, message=hidden))
    return level


def _display(source: RankInput) -> str:
    """The path of a rank in a report: relative to what the user named, without the directories of this machine."""
    if source.directory != source.root and source.directory.is_relative_to(source.root):
        return source.directory.relative_to(source.root).as_posix()
    return source.directory.absolute().name
