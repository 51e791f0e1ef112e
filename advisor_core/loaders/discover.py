"""Finding profiles below a path, whatever formats there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from advisor_core.loaders.profile import InputError, Loader, RankInput

DEEPEST: Final = 6
"""Levels of directories below the given one that are searched."""

_MOST_DIRECTORIES: Final = 20_000


def discover(loaders: Iterable[Loader], path: Path) -> list[RankInput]:
    """The profiles at or below ``path``, by rank. Raises `InputError` where there is none that can be used."""
    try:
        path.stat()
        is_directory = path.is_dir()
        is_empty = is_directory and next(path.iterdir(), None) is None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file or directory") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({_why(error)})") from None
    if is_empty:
        raise InputError(f"{path}: the directory is empty")
    try:
        found = [source for loader in loaders for source in loader.discover(path)]
    except OSError as error:
        raise InputError(f"{error.filename or path}: cannot be read ({_why(error)})") from None
    if not found:
        what = "no profile in it or below it" if is_directory else "not a file of a known kind"
        raise InputError(
            f"{path}: {what}; expected a *_ascend_pt directory, its ASCEND_PROFILER_OUTPUT, a directory above several "
            "of them, or a file such as trace_view.json or kernel_details.csv"
        )
    reject_duplicates(found)
    return sorted(found, key=lambda source: source.rank)


def reject_duplicates(sources: Iterable[RankInput]) -> None:
    """Raises `InputError` where two directories claim the same rank; for callers that discover several paths."""
    seen: dict[int, RankInput] = {}
    for source in sources:
        first = seen.setdefault(source.rank, source)
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
