"""Roles of a job of reinforcement learning, and recordings that were taken again.

verl's discrete mode profiles each role by itself, in a directory of its name: ``save_path/actor_update/*_ascend_pt``,
``save_path/rollout_generate/*_ascend_pt``, below a directory for each profiled iteration where there are several
(``save_path/2/actor_update``). A rank then has a profile in each of them: they are roles of an iteration, not ranks of
a job. Its end-to-end mode writes all roles into one profile (``save_path/e2e/*_ascend_pt``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from advisor_core.contracts.profile import RankInput, RoleError
from advisor_core.vocabulary.phases import PhaseMark, phase_of

Find = Callable[[Path], list[RankInput]]
"""The profiles at or below a path."""


def role_of(source: RankInput) -> str:
    """The directory between the path that the user gave and the profile: ``actor_update``, or ``2/e2e`` where steps
    have directories of their own; '' for a profile that is the path or lies directly in it."""
    if source.directory == source.root or not source.directory.is_relative_to(source.root):
        return ""
    above = source.directory.relative_to(source.root).parent
    return "" if above == Path() else above.as_posix()


def of_roles(find: Find, found: Sequence[RankInput], roles: Sequence[str]) -> list[RankInput]:
    """The profiles in the directories of the chosen roles, by whatever path. Raises `RoleError` for a role that is not
    there."""
    chosen: list[RankInput] = []
    for role in dict.fromkeys(Path(role).as_posix() for role in roles):  # a shell completes a name with a slash
        if not any(role_of(source) == role for source in found):
            there = sorted({role_of(source) for source in found} - {""})
            raise RoleError(
                f"there is no role {role!r}; the profiles are those of {', '.join(there)}"
                if there
                else f"there is no role {role!r}: no profile lies in a directory below the path"
            )
        chosen += _within(find, found, role)
    return chosen


def with_roles(find: Find, found: Sequence[RankInput], marks: Sequence[PhaseMark]) -> list[RankInput]:
    """The profiles, each with its ``role`` where they are those of several roles: where a rank has a profile in
    directories of several names, or where all their names are known to be those of roles, by ``marks``."""
    names = {role: _role_name(role, marks) for role in {role_of(source) for source in found}}
    roles = {name for name in names.values() if name}
    several = len(roles) > 1 and all(phase_of(name, marks) for name in roles)
    if not several and not _repeated(found, names):
        return list(found)
    return [
        replace(source, role=names[role] or source.root.absolute().name)
        for role in sorted(names)
        for source in _within(find, found, role)
    ]


def newest(sources: Sequence[RankInput]) -> list[RankInput]:
    """The profiles, of several recordings of one rank and role below one path the newest one, which names the
    ``older``; those whose names do not say when they were taken are all left."""
    groups: dict[tuple[Path, str, int], list[RankInput]] = {}
    for source in sources:
        if not source.problem:
            groups.setdefault((source.root, source.role, source.rank), []).append(source)
    kept, dropped = {}, set()
    for group in groups.values():
        times = [_taken(source) for source in group]
        if len(group) < 2 or not all(times) or len(set(times)) < len(times) or len(set(map(len, times))) > 1:
            continue
        *older, last = (source for _, source in sorted(zip(times, group, strict=True), key=lambda pair: pair[0]))
        kept[last.directory] = tuple(source.directory for source in reversed(older))
        dropped |= {source.directory for source in older}
    return [
        replace(source, older=kept.get(source.directory, ()))
        for source in sources
        if source.directory not in dropped or source.problem
    ]


def _within(find: Find, found: Sequence[RankInput], role: str) -> list[RankInput]:
    """The profiles of one role. Found again from its directory, so that ranks which no profile records are counted
    within the role; their files are still named from the path that the user gave."""
    roots = dict.fromkeys(source.root for source in found if role_of(source) == role)
    again = [replace(source, root=root) for root in roots for source in find(root / role)]
    return [source for source in again if role_of(source) == role]


def _repeated(found: Iterable[RankInput], names: dict[str, str]) -> bool:
    """Whether a rank has a profile in directories of several names below one path."""
    first: dict[tuple[Path, int], str] = {}
    for source in found:
        name = names[role_of(source)]
        if name and first.setdefault((source.root, source.rank), name) != name:
            return True
    return False


def _role_name(role: str, marks: Sequence[PhaseMark]) -> str:
    """The part of a role's directory that names its role: the known one, else all but the numbers of iterations."""
    parts = [part for part in Path(role).parts if not part.isdigit()]
    known = [part for part in parts if phase_of(part, marks)]
    return known[-1] if known else "/".join(parts)


def _taken(source: RankInput) -> tuple[int, ...]:
    """The time at which a profile was taken, as far as its path tells: the time in its name, the numbers of iterations
    above it."""
    iterations = [int(part) for part in Path(role_of(source)).parts if part.isdigit()]
    return (*([int(source.recorded_at.ljust(20, "0"))] if source.recorded_at else []), *iterations)
