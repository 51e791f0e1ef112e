"""Slices of the recording beside a report: ``slices/F2a.json`` for problem F2a."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from advisor_core.cli.console import EXIT_USAGE, stop, tell
from advisor_core.text.whole_file import write_whole

if TYPE_CHECKING:
    from advisor_core.result.run import RunResult

FOLDER = "slices"

_OF_PROBLEM = re.compile(r"F\d+[a-z]*\.json")


def write_slices(
    result: RunResult,
    paths: Sequence[Path],
    target: Path,
    lang: str,
    progress: Callable[[str], None],
    *,
    rank: int | None = None,
    roles: Sequence[str] = (),
) -> list[Path]:
    """Write a file for each problem that has a place in the recording; the folder, or nothing where there is none.
    Tells which problems lack one, and which files are of an earlier run."""
    from advisor_core.run.prepared import installed_host
    from advisor_core.run.sources import sources
    from advisor_core.slicing.cut import Unsliced, slices

    host = installed_host()
    folder = target / FOLDER
    written = set()
    for cut in slices(host, sources(host, paths, rank=rank, roles=roles), result, lang, progress):
        if isinstance(cut, Unsliced):
            tell(f"warning: no slice of {', '.join(cut.numbers)}: {cut.why}")
            continue
        name = f"{cut.number}.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, cut.content)
        except OSError as error:
            stop(EXIT_USAGE, f"cannot write {folder / name}: {error.strerror or error}")
        written.add(name)
    there = {file.name for file in folder.iterdir() if _OF_PROBLEM.fullmatch(file.name)} if folder.is_dir() else set()
    if left := sorted(there - written):
        tell(f"warning: {folder} has slices of an earlier run: {', '.join(left)}")
    return [folder] if written else []
