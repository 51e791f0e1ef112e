"""Directory layout of Ascend PyTorch profiles: the directory of a rank, and its files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from advisor_core.contracts.profile import InputError
from advisor_core.loaders.ascend_pytorch.db.loader import ANALYSIS, PROFILER
from advisor_core.loaders.ascend_pytorch.files import DELIVERABLES, NAMES, OUTPUT, UNREAD
from advisor_core.loaders.ascend_pytorch.settings import info_file
from advisor_core.loaders.export import Place
from advisor_core.loaders.msprof.files import ANALYSIS as MSPROF_ANALYSIS
from advisor_core.loaders.msprof.files import PROF
from advisor_core.loaders.readers.files import regular_size

_SUFFIX: Final = "_ascend_pt"
_MINDSPORE: Final = "_ascend_ms"
"""The profiler of MindSpore writes the same text files and databases, these under other names, by its source and its
documentation; no real profile of it has been seen."""
_RECORDED: Final = re.compile(rf"_(\d{{8,}})(?:{_SUFFIX}|{_MINDSPORE})$")


@dataclass(frozen=True)
class Layout:
    """The files of a rank. ``text``: every file that the text export may have, by name, there or not; empty where the
    user named a database. ``profiler``, ``analysis``: the databases that are there. ``others``: profiler's databases
    beside the one that is read, of which one directory should not have any. ``unread``: names of files that the
    exporter writes and that are not read."""

    place: Place
    text: Mapping[str, Path] = field(default_factory=dict)
    profiler: Path | None = None
    analysis: Path | None = None
    others: tuple[Path, ...] = ()
    unread: tuple[str, ...] = ()

    def has_text(self) -> bool:
        return any(path.exists() for path in self.text.values())

    def has_databases(self) -> bool:
        return self.profiler is not None or self.analysis is not None

    def bytes(self) -> int:
        """Size of all files together."""
        paths = [*self.text.values(), *(path for path in (self.profiler, self.analysis) if path is not None)]
        return sum(regular_size(path) or 0 for path in paths)


def layout(root: Path, directory: Path) -> Layout:
    """The files of the rank in ``directory``; only the given one where ``root`` is a file."""
    place = Place(root, directory)
    if not root.is_dir():
        if is_database(root.name):
            named = PROFILER.fullmatch(root.name) is not None
            return Layout(place, {}, root if named else None, None if named else root)
        return Layout(place, {root.name: root})
    output = directory / OUTPUT
    folder = output if output.is_dir() else directory
    names = sorted(entry.name for entry in folder.iterdir())
    profilers = [name for name in names if PROFILER.fullmatch(name)]
    analyses = [name for name in ANALYSIS if name in names]
    return Layout(
        place,
        {deliverable.name: folder / deliverable.name for deliverable in DELIVERABLES},
        folder / profilers[0] if profilers else None,
        folder / analyses[0] if analyses else None,
        tuple(folder / name for name in profilers[1:]),
        tuple(name for name in names if name in UNREAD),
    )


def is_database(name: str) -> bool:
    return name in ANALYSIS or PROFILER.fullmatch(name) is not None


def is_file_of_profile(name: str) -> bool:
    """Whether a file of this name may be given in place of a profile."""
    return name in NAMES or is_database(name)


def recorded_at(directory: Path) -> str:
    """The time at which a profile was recorded: the profiler ends the name of the directory with it; '' for another
    name."""
    found = _RECORDED.search(directory.name)
    return found[1] if found else ""


def owner(directory: Path) -> Path:
    """The profile that a directory of deliverables belongs to."""
    directory = directory if directory.name else directory.absolute()
    return directory.parent if directory.name == OUTPUT else directory


def is_mindspore(directory: Path) -> bool:
    """Whether a profile is one of MindSpore, by its name."""
    return directory.absolute().name.endswith(_MINDSPORE)


def is_profile(directory: Path) -> bool:
    """Whether a directory is a profile. Raises `InputError` for one that is recognised but cannot be used."""
    if directory.name == MSPROF_ANALYSIS and PROF.fullmatch(directory.absolute().parent.name):
        return False  # communication.json of an msprof profile
    output = directory / OUTPUT
    recognised = output.is_dir() or directory.name.endswith((_SUFFIX, _MINDSPORE))
    names = {entry.name for entry in (output if output.is_dir() else directory).iterdir()}
    # of the databases, analysis.db alone is too common a name to make any directory a profile
    if (
        names & NAMES
        or any(PROFILER.fullmatch(name) for name in names)
        or (recognised and not names.isdisjoint(ANALYSIS))
    ):
        return True
    if not (recognised or info_file(directory) is not None):
        return False
    if is_mindspore(directory):
        raise InputError(
            f"{directory}: a MindSpore profile without any of the expected files ({', '.join(sorted(NAMES))}, "
            "ascend_mindspore_profiler_*.db); if it was collected but not analysed, run "
            f"mindspore.profiler.profiler.analyse({str(directory)!r}) first"
        )
    if not names:
        raise InputError(f"{directory}: the profile is empty")
    raise InputError(
        f"{directory}: none of the expected files is there ({', '.join(sorted(NAMES))}, ascend_pytorch_profiler_*.db); "
        f"if the profile was collected but not analysed, run torch_npu.profiler.profiler.analyse({str(directory)!r}) "
        "first"
    )
