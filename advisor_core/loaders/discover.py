"""Find the profiles below a path, of all formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from advisor_core.contracts.profile import InputError, Loader, RankInput
from advisor_core.loaders.roles import newest, of_roles, with_roles
from advisor_core.vocabulary.phases import PhaseMark

DEEPEST: Final = 6
"""Levels of directories below the given one that are searched."""

_MOST_DIRECTORIES: Final = 20_000


def discover(
    loaders: Iterable[Loader], *paths: Path, roles: Sequence[str] = (), marks: Sequence[PhaseMark] = ()
) -> list[RankInput]:
    """The profiles at or below the paths, by role and rank; with ``roles`` only those in directories of these names.
    ``marks`` tell which names are those of roles.
    Those that cannot be used are among them, with their problem, as long as one can. Raises `InputError` where none
    can, and where two claim the same rank of a role; `RoleError` for a role that is not there."""
    loaders = list(loaders)

    def find(path: Path) -> list[RankInput]:
        return _found(loaders, path)

    found = [source for path in paths for source in find(path)]
    if roles:
        found = of_roles(find, found, roles)
    if not any(not source.problem for source in found):
        raise InputError(found[0].problem)
    found = _in_depth_first(newest(with_roles(find, found, marks)))
    usable = [source for source in found if not source.problem]
    reject_duplicates(usable)
    taken = {(source.role, source.rank) for source in usable}
    for source in found:
        if source.problem:  # its rank may be recorded; if it is another profile's, any free number will do
            numbers = (source.rank, *range(len(found) + 1))
            free = next(number for number in numbers if (source.role, number) not in taken)
            taken.add((source.role, free))
            usable.append(replace(source, rank=free))
    return sorted(usable, key=lambda source: (source.role, source.rank))


def _in_depth_first(found: Sequence[RankInput]) -> list[RankInput]:
    """The profiles without the coarse ones of ranks that are profiled in depth as well."""
    in_depth = {(source.role, source.rank) for source in found if not source.coarse and not source.problem}
    return [source for source in found if not source.coarse or (source.role, source.rank) not in in_depth]


def _found(loaders: Iterable[Loader], path: Path) -> list[RankInput]:
    try:
        path.stat()
        is_directory = path.is_dir()
        is_empty = is_directory and next(path.iterdir(), None) is None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file or directory") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({_why(error)})") from None
    try:
        found = [source for loader in loaders for source in loader.discover(path)]
    except OSError as error:
        raise InputError(f"{error.filename or path}: cannot be read ({_why(error)})") from None
    if not found and is_empty:
        raise InputError(f"{path}: the directory is empty")
    if not found:
        what = "no profile in it or below it" if is_directory else "not a file of a known kind"
        raise InputError(
            f"{path}: {what}; expected a *_ascend_pt directory, its ASCEND_PROFILER_OUTPUT, a PROF_* directory of "
            "msprof, a directory above several of them, or a file such as trace_view.json, kernel_details.csv, "
            "op_summary_20240101000000.csv or ascend_pytorch_profiler_0.db; or a trace of the PyTorch profiler "
            "(*.pt.trace.json, *.pt.trace.json.gz)"
        )
    return _of_one_vendor(found)


def _of_one_vendor(found: list[RankInput]) -> list[RankInput]:
    """A job runs on the devices of one vendor: where recordings of several lie below one path, those of the vendor with
    most bytes are the job, and the others cannot be used in it."""
    sizes: dict[str, int] = {}
    for source in found:
        if source.vendor and not source.problem:
            sizes[source.vendor] = sizes.get(source.vendor, 0) + source.bytes
    if len(sizes) < 2:
        return found
    main = max(sorted(sizes), key=sizes.__getitem__)
    return [
        source
        if source.problem or source.vendor in ("", main)
        else replace(
            source,
            problem=f"{source.directory}: a recording of another kind of device ({source.vendor}) among those of "
            f"this job ({main}); to analyse it, give its path",
        )
        for source in found
    ]


def reject_duplicates(sources: Iterable[RankInput]) -> None:
    """Raises `InputError` where two directories claim the same rank of a role."""
    seen: dict[tuple[str, int], RankInput] = {}
    for source in sources:
        first = seen.setdefault((source.role, source.rank), source)
        if first is not source:
            raise InputError(
                f"rank {source.rank} is claimed by two profiles: {first.directory} and {source.directory}; "
                "name one of them, or directories of one job only"
            )


def directories(root: Path, stop: Iterable[Path] = ()) -> Iterator[Path]:
    """``root`` and the directories below it, in the order of their names, each once however it is linked. Not below
    those that the caller has added to ``stop`` meanwhile. Raises OSError for one that cannot be listed."""
    visited: set[tuple[int, int]] = set()
    waiting = [(root, 0)]
    while waiting:
        directory, depth = waiting.pop()
        status = directory.stat()
        if (status.st_dev, status.st_ino) in visited:
            continue
        visited.add((status.st_dev, status.st_ino))
        if len(visited) > _MOST_DIRECTORIES:
            raise InputError(f"{root}: more than {_MOST_DIRECTORIES} directories below it; name the profile itself")
        yield directory
        if depth < DEEPEST and directory not in stop:
            below = sorted((entry for entry in directory.iterdir() if entry.is_dir()), reverse=True)
            waiting.extend((entry, depth + 1) for entry in below)


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
