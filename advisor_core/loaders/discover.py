"""Finding profiles below a path, whatever formats there are, and the roles that they lie in.

A job of reinforcement learning profiles each role by itself (verl's discrete mode), in a directory of its name:
``save_path/actor_update/*_ascend_pt``, ``save_path/rollout_generate/*_ascend_pt``. A rank then has a profile in each of
them; they are stages of a step, not ranks of a job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from advisor_core.loaders.profile import InputError, Loader, RankInput, RoleError

DEEPEST: Final = 6
"""Levels of directories below the given one that are searched."""

_MOST_DIRECTORIES: Final = 20_000


def discover(loaders: Iterable[Loader], *paths: Path, role: str | None = None) -> list[RankInput]:
    """The profiles at or below the paths, by rank; with ``role`` only those in its directory. Those that cannot be used
    are among them, with their problem, as long as one can. Raises `InputError` where none can, and where two claim the
    same rank; `RoleError` where roles repeat a rank and none is chosen, and for one that is not there."""
    loaders = list(loaders)
    found = [source for path in paths for source in _found(loaders, path)]
    if role is not None:
        found = _of_role(loaders, found, role)
    usable = [source for source in found if not source.problem]
    if not usable:
        raise InputError(found[0].problem)
    _reject_roles(found)
    reject_duplicates(usable)
    taken = {source.rank for source in usable}
    for source in found:
        if source.problem:  # its rank may be recorded; if it is another profile's, any free number will do
            free = next(number for number in (source.rank, *range(len(found) + 1)) if number not in taken)
            taken.add(free)
            usable.append(replace(source, rank=free))
    return sorted(usable, key=lambda source: source.rank)


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
            "op_summary_20240101000000.csv or ascend_pytorch_profiler_0.db; traces of GPUs are not read"
        )
    return found


def role_of(source: RankInput) -> str:
    """The directory between the path that the user gave and the profile: ``actor_update``, or ``2/e2e`` where steps
    have directories of their own; '' for a profile that is the path or lies directly in it."""
    if source.directory == source.root or not source.directory.is_relative_to(source.root):
        return ""
    above = source.directory.relative_to(source.root).parent
    return "" if above == Path() else above.as_posix()


def _of_role(loaders: Iterable[Loader], found: Iterable[RankInput], role: str) -> list[RankInput]:
    """The profiles in the directories of a role, by whatever path. Found again from there, so that ranks which no
    profile records are counted within the role; their files are still named from the path that the user gave."""
    found = list(found)
    name = Path(role).as_posix()  # a shell completes the name of a directory with a slash
    roots = list(dict.fromkeys(source.root for source in found if role_of(source) == name))
    if not roots:
        roles = _roles(found)
        raise RoleError(
            f"there is no role {role!r}; the profiles are those of {', '.join(roles)}"
            if roles
            else f"there is no role {role!r}: no profile lies in a directory below the path"
        )
    again = [replace(source, root=root) for root in roots for source in _found(loaders, root / name)]
    return [source for source in again if role_of(source) == name]


def _reject_roles(sources: Iterable[RankInput]) -> None:
    """Raises `RoleError` where a rank has a profile in several directories below one path."""
    seen: dict[tuple[Path, int], str] = {}
    sources = list(sources)
    for source in sources:
        role = role_of(source)
        first = seen.setdefault((source.root, source.rank), role)
        if first != role and first and role:
            roles = _roles(sources)
            raise RoleError(
                f"{source.root}: rank {source.rank} has a profile in each of several directories, as the {len(roles)} "
                f"roles of a job of reinforcement learning have; choose one with --role: {', '.join(roles)}"
            )


def _roles(sources: Iterable[RankInput]) -> list[str]:
    return sorted({role_of(source) for source in sources} - {""})


def reject_duplicates(sources: Iterable[RankInput]) -> None:
    """Raises `InputError` where two directories claim the same rank."""
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
