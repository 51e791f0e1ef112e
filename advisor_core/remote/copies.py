"""The content of files at URLs, copied to this machine when a loader opens them.

A copy is known by URL, size and sign of its content, so one of another content is never taken for it. It is written
beside its place and then moved: nobody meets half of one.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Final

from advisor_core.remote.errors import CopyError, DriverError, RemoteError, driver_errors
from advisor_core.remote.file_system import FileSystem, file_system
from advisor_core.remote.signs import is_sign, time_of
from advisor_core.remote.stand_ins import StandIn, Tree, stand_in
from advisor_core.remote.temporary import delete_all
from advisor_core.remote.url import Url

HEAD_BYTES: Final = 1 << 20
"""Of a file of which only the beginning is looked at; our choice: what stands before the events of a trace of a small
job, and a request takes about as long for less."""

_IN_USE_S: Final = 60.0
"""A copy that was opened within this is not deleted: another run may be about to read it. Our choice."""

_LEFT_BEHIND_S: Final = 3600
"""As `advisor_core.cache.folder` has it: what is still being written after an hour was left by a process that ended."""

_HEAD: Final = ".head"
_BESIDE: Final = ".writing"

_listeners: list[Callable[[int], None]] = []
_folders: set[Path] = set()
"""The folders of copies that this process has used."""

_under_way: dict[Path, Future[None]] = {}
"""By its place, each copy that other threads of this process make."""


def listen_to_copies(listener: Callable[[int], None]) -> None:
    """Have this process tell how many bytes it copies from URLs, from several threads."""
    _listeners[:] = [listener]


def here(path: Path) -> Path:
    """The file to open in place of a path: for a stand-in of a file at a URL the copy of it, which is made now unless
    it is there; else the path itself. Raises OSError where nothing is there or it cannot be copied."""
    found = stand_in(path)
    return path if found is None else copied(found)


@dataclass(frozen=True)
class Beginning:
    """A file that begins as another one. ``whole``: it is all of that."""

    path: Path
    whole: bool


def beginning(path: Path) -> Beginning:
    """A file with the first `HEAD_BYTES` of what `here` gives, for those who mostly need no more. Raises as `here`."""
    found = stand_in(path)
    if found is None:
        return Beginning(path, True)
    if found.file.bytes <= HEAD_BYTES or _is_there(found.copy, found.file.bytes):
        return Beginning(copied(found), True)
    place = found.copy.with_suffix(_HEAD)
    if not _is_there(place, HEAD_BYTES):
        _make_room(found.tree, HEAD_BYTES)
        _write(found, place, HEAD_BYTES, _copy_head)
    return Beginning(place, False)


def copied(found: StandIn) -> Path:
    """The copy of a file, made now unless it is there. Raises `CopyError`."""
    place = found.copy
    if (other := _under_way.get(place)) is not None:
        other.result()
    if not _is_there(place, found.file.bytes):
        _make_room(found.tree, found.file.bytes)
        _write(found, place, found.file.bytes, _copy)
    return place


def lacking(files: Iterable[StandIn]) -> list[StandIn]:
    """Those of these files of which there is no copy."""
    return [file for file in files if not _is_there(file.copy, file.file.bytes)]


def copy_all(files: Sequence[StandIn], tree: Tree, system: FileSystem) -> None:
    """Copy those of these files of a tree that are not there, several at the same time. Raises `CopyError`."""
    absent = lacking(files)
    if absent:
        _make_room(tree, sum(file.file.bytes for file in absent))  # once: it looks at all copies
        system.each(lambda file: _write(file, file.copy, file.file.bytes, _copy), absent)


@contextmanager
def copy_under_way(files: Sequence[StandIn], pool: Executor, given_up: Event) -> Iterator[None]:
    """Have ``pool`` copy these files of one tree; meanwhile `copied` waits for the one that it is asked for. Once
    ``given_up`` is set, copies break off."""

    def copy(system: FileSystem, file: StandIn, beside: Path) -> None:
        def told(size: int) -> None:
            if given_up.is_set():
                raise CopyError(f"{file.name} is no longer wanted")
            _tell(size)

        system.copy(file.name, beside, told)

    with contextlib.suppress(CopyError):  # `copied` makes room for each, and tells where it cannot
        _make_room(files[0].tree, sum(file.file.bytes for file in files))
    begun = {file.copy: pool.submit(_write, file, file.copy, file.file.bytes, copy) for file in files}
    _under_way.update(begun)
    try:
        yield
    finally:
        for place in begun:
            _under_way.pop(place, None)


def forget(found: StandIn) -> None:
    """Delete the copies of a file."""
    for place in (found.copy, found.copy.with_suffix(_HEAD)):
        place.unlink(missing_ok=True)


def forget_unfinished(processes: Collection[int]) -> None:
    """Delete what these processes, which have ended, were writing."""
    for folder in _folders:
        for process in processes:
            for file in folder.glob(f".{process}-*"):
                file.unlink(missing_ok=True)


def give_up(processes: Collection[int]) -> None:
    """As `forget_unfinished`, and delete what is only there for this run."""
    forget_unfinished(processes)
    delete_all()


def use_folder(folder: Path) -> None:
    """Have this process know a folder of copies, of which it may have to clear up."""
    _folders.add(folder)


def _is_there(place: Path, size: int) -> bool:
    try:
        if place.stat().st_size != size:
            return False
        os.utime(place)  # used just now
    except OSError:
        return False
    return True


def _write(found: StandIn, place: Path, size: int, copy: Callable[[FileSystem, StandIn, Path], None]) -> None:
    url, folder = found.tree.url, found.tree.files
    shown = f"{str(url).rstrip('/')}/{found.name}".rstrip("/")
    with _copy_errors(url, shown):
        system = file_system(url)
        use_folder(folder)
        descriptor, name = tempfile.mkstemp(prefix=f".{os.getpid()}-", suffix=_BESIDE, dir=folder)
        os.close(descriptor)
        beside = Path(name)
        try:
            copy(system, found, beside)
            if beside.stat().st_size != size or not _is_unchanged(system, found):
                raise CopyError(f"{shown} has changed since it was listed, or while it was copied: try again")
            beside.replace(place)
        finally:
            beside.unlink(missing_ok=True)


@contextmanager
def _copy_errors(url: Url, file: str = "") -> Iterator[None]:
    """As `driver_errors`, raising `CopyError`."""
    try:
        with driver_errors(url, file):
            yield
    except (DriverError, RemoteError) as error:
        raise CopyError(str(error)) from None


def _copy(system: FileSystem, found: StandIn, beside: Path) -> None:
    system.copy(found.name, beside, _tell)


def _copy_head(system: FileSystem, found: StandIn, beside: Path) -> None:
    data = system.beginning(found.name, HEAD_BYTES)
    beside.write_bytes(data)
    _tell(len(data))


def _is_unchanged(system: FileSystem, found: StandIn) -> bool:
    """Whether what is at the URL now is what was listed; of what has no sign only the size tells."""
    file, name = found.file, found.name
    entry = system.entry(name)
    if entry.get("size") not in (None, file.bytes):
        return False
    if not is_sign(file.time_ns) or time_of(entry) == file.time_ns:
        return True
    if not name:
        return False
    # asked for one file, some drivers tell other things of it than where they list its directory
    entries = system.entries(name.rpartition("/")[0])
    return any(system.relative(str(one["name"])) == name and time_of(one) == file.time_ns for one in entries)


def _make_room(tree: Tree, size: int) -> None:
    """Delete copies, those first that were not used for longest, until ``size`` bytes fit; those in use stay. Raises
    `CopyError`."""
    if not tree.most_bytes:
        return
    with _copy_errors(tree.url):
        now, total, copies = time.time(), size, []
        for entry in os.scandir(tree.files):
            try:
                status = entry.stat()
            except OSError:  # another run has taken it away
                continue
            unfinished = entry.name.startswith(".")
            if unfinished and now - status.st_mtime < _LEFT_BEHIND_S:
                continue
            total += status.st_size
            copies.append((0.0 if unfinished else status.st_mtime, status.st_size, entry.path))
        for used_s, bytes_, path in sorted(copies):
            if used_s and (total <= tree.most_bytes or now - used_s < _IN_USE_S):
                return
            Path(path).unlink(missing_ok=True)
            total -= bytes_


def _tell(size: int) -> None:
    for listener in _listeners:
        listener(size)
