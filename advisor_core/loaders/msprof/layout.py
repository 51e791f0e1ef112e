"""Directory layout of msprof profiles, and the choice among several exports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from advisor_core.contracts.profile import InputError
from advisor_core.loaders.ascend_pytorch import files as ascend_files
from advisor_core.loaders.export import Place
from advisor_core.loaders.msprof.files import (
    ANALYSED,
    ANALYSIS,
    DATABASE,
    DELIVERABLES,
    ITERATIONS,
    OUTPUT,
    PROF,
    Deliverable,
    export_name,
    is_timed,
)
from advisor_core.loaders.readers.files import regular_size

_FRAMEWORKS: Final = ("_ascend_pt", "_ascend_ms")
_OLD_SUMMARY: Final = re.compile(r"device_\d+")


@dataclass(frozen=True)
class Layout:
    """The files of a profile. ``exports``: by kind, the files of the newest export in the order of their slices;
    ``others``: files of older exports, which are not read. ``analysis``: what ``msprof --analyze`` wrote, by name.
    ``database``: the newest DB export. ``timed``: a file of the text export tells when the device ran what."""

    place: Place
    exports: Mapping[str, Sequence[Path]]
    others: Sequence[Path] = ()
    analysis: Mapping[str, Path] = field(default_factory=dict)
    database: Path | None = None
    timed: bool = False

    def bytes(self) -> int:
        """Size of all files together."""
        paths = [*(path for paths in self.exports.values() for path in paths), *self.analysis.values()]
        paths += [] if self.database is None else [self.database]
        return sum(regular_size(path) or 0 for path in paths)


def layout(root: Path, directory: Path) -> Layout:
    """The files of the profile in ``directory``; only the given one where ``root`` is a file."""
    place = Place(root, directory)
    if not root.is_dir():
        if DATABASE.fullmatch(root.name):
            return Layout(place, {}, database=root)
        named = export_name(root.name)
        assert named is not None
        return Layout(place, {named.kind: (root,)}, timed=is_timed(root.name))
    output = directory / OUTPUT
    folder = output if output.is_dir() else directory
    exports: dict[str, Sequence[Path]] = {}
    superseded: list[Path] = []
    for deliverable in (*DELIVERABLES, ITERATIONS):
        chosen, older = _newest(folder, deliverable)
        if chosen:
            exports[deliverable.kind] = chosen
        superseded += older
    analysed = directory / ANALYSIS
    names = (ascend_files.COMMUNICATION.name, ascend_files.MATRIX.name, ANALYSED)
    analysis = {name: analysed / name for name in names if (analysed / name).exists()}
    timed = any(is_timed(path.name) for paths in exports.values() for path in paths)
    databases = _databases(directory)
    return Layout(place, exports, [*superseded, *databases[1:]], analysis, next(iter(databases), None), timed)


def owner(directory: Path) -> Path:
    """The profile that a directory of exported files belongs to."""
    directory = directory if directory.name else directory.absolute()
    return directory.parent if directory.name == OUTPUT else directory


def of_framework(directory: Path) -> bool:
    """Whether a directory belongs to the profiler of a framework, whose export has all that msprof's below it has."""
    name = directory.absolute().name
    if name.endswith(_FRAMEWORKS) or name == ascend_files.OUTPUT or (directory / ascend_files.OUTPUT).is_dir():
        return True
    return any((directory / name).exists() for name in ascend_files.NAMES)


def is_profile(directory: Path) -> bool:
    """Whether a directory is an msprof profile. Raises `InputError` for one that is collected but not exported."""
    names = [entry.name for entry in directory.iterdir()]
    output = directory / OUTPUT
    if any(map(is_timed, [*names, *(entry.name for entry in output.iterdir())] if output.is_dir() else names)):
        return True
    if _databases(directory):
        return True
    raw = PROF.fullmatch(directory.absolute().name) and any(map(_OLD_SUMMARY.fullmatch, names))
    if not raw or any(directory.glob("device_*/summary")):
        return False
    raise InputError(
        f"{directory}: neither op_summary_*.csv nor task_time_*.csv nor msprof_*.json nor msprof_*.db is there; if the "
        f"profile was collected but not exported, run msprof --export=on --output={directory} first"
    )


def _databases(directory: Path) -> list[Path]:
    """DB exports, the newest first. They lie in the profile's directory, beside that of the text export."""
    folders = [folder for folder in (directory, directory / OUTPUT) if folder.is_dir()]
    paths = [path for folder in folders for path in folder.iterdir() if DATABASE.fullmatch(path.name)]
    return sorted(paths, key=lambda path: (int(path.stem.rpartition("_")[2]), path.name), reverse=True)


def missing_slices(paths: Sequence[Path]) -> list[int]:
    """Numbers of slices that are absent between those that are there."""
    numbers = {named.slice for path in paths if (named := export_name(path.name)) is not None}
    return sorted(set(range(min(numbers), max(numbers))) - numbers)


def _newest(folder: Path, deliverable: Deliverable) -> tuple[list[Path], list[Path]]:
    """The files of the newest export of one kind, by slice, and the older ones.

    The slices of one export need not carry the same second: from the newest file back, one of each number is taken,
    until the first slice.
    """
    files = [
        (named.stamp, named.slice, path)
        for path in sorted(folder.iterdir())
        if path.name.endswith(deliverable.suffix)
        and (named := export_name(path.name)) is not None
        and named.kind == deliverable.kind
    ]
    files.sort(key=lambda file: file[:2], reverse=True)
    chosen: dict[int, Path] = {}
    for _, number, path in files:
        if number in chosen or (chosen and (-1 in chosen or number == -1)):
            break
        chosen[number] = path
        if number == 0:
            break
    newest = set(chosen.values())
    return [chosen[number] for number in sorted(chosen)], [path for *_, path in files if path not in newest]
