"""Signs that files of a rank are the same as when they were read, and that the code that read them is.

Size and time of change are what the system tells of a file without reading it. Two holes of that are closed. A file
that was changed within the last moments may be changed once more in the same tick of its file system's clock: nothing
is kept of it yet. A file that was replaced by one of the same size, whose time was set back, has another inode or
another time of its entry (``ctime``).
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

SETTLED_NS: Final = 2_000_000_000
"""A file has to be older than this: the coarsest clock of a file system in use, that of FAT, has ticks of 2 s."""

MOST_ENTRIES: Final = 5_000
"""Files below a rank that are looked at; where there are more, nothing is kept. A rank has some dozens, and up to some
hundreds of raw ones; in a home directory in which a trace lies, asking for each would take longer than reading it. Our
choice."""

_DEEPEST: Final = 2
"""Directories below that of a rank whose files loaders read: ``PROF_*/device_*``."""

CODE: Final = ("advisor_core", "advisors", "rulesets", "reports")
"""Our packages."""

LIBRARIES: Final = ("msgspec", "numpy", "pandas", "pyarrow", "pydantic")
"""Those whose objects are kept, or sent to another process."""


@dataclass(frozen=True)
class Files:
    """``digest``: of names, sizes and times of all files that a rank may be read from, and of those that a loader would
    read if they were there. ``newest_ns``: the time of the last change, since the epoch."""

    digest: str
    newest_ns: int

    def settled(self, now_ns: int) -> bool:
        """Whether a change from ``now_ns`` on would show."""
        return self.newest_ns + SETTLED_NS < now_ns


def files_of(place: Path) -> Files | None:
    """The files at or below a path, as far as loaders look; ``None`` where they are too many or cannot be asked for."""
    digest, newest, count = hashlib.sha256(), 0, 0
    try:
        for name, status in _entries(place):
            count += 1
            if count > MOST_ENTRIES:
                return None
            newest = max(newest, status.st_mtime_ns)
            told = (name, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
            digest.update(f"{told}\n".encode("utf-8", "surrogateescape"))
    except OSError:
        return None
    return Files(digest.hexdigest(), newest)


def names_and_sizes(place: Path) -> str | None:
    """A sign of the files of `files_of` that is the same on every machine that sees them; ``None`` where they are too
    many. Raises OSError where they cannot be asked for."""
    digest = hashlib.sha256()
    for count, (name, status) in enumerate(_entries(place)):
        if count == MOST_ENTRIES:
            return None
        digest.update(f"{name} {status.st_size}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _entries(place: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Name and state of each file, links followed; of a link that leads nowhere that of the link."""
    status = place.stat()
    if not stat.S_ISDIR(status.st_mode):
        yield place.name, status
        return
    waiting = [(place, "", 0)]
    while waiting:
        directory, above, depth = waiting.pop()
        with os.scandir(directory) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            name = f"{above}{entry.name}"
            try:
                status = entry.stat()
            except OSError:
                status = entry.stat(follow_symlinks=False)
            if not stat.S_ISDIR(status.st_mode):
                yield name, status
            elif depth < _DEEPEST:
                waiting.append((Path(entry.path), f"{name}/", depth + 1))


@cache
def code_digest() -> str:
    """Of our code, its data and the libraries whose objects are kept: another version of any of them reads anew.
    By names, sizes and times, as Python does to tell whether byte code is that of a source. Raises OSError where the
    code is no files."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256(f"{root}\n{sys.version}\n{sys.byteorder}\n".encode())
    for name in LIBRARIES:
        digest.update(f"{name} {metadata.version(name)}\n".encode())
    for package in CODE:
        for line in _sources(root / package, ""):
            digest.update(line)
    return digest.hexdigest()


def _sources(directory: Path, above: str) -> Sequence[bytes]:
    lines: list[bytes] = []
    for name, entry in source_files(directory, above):
        status = entry.stat()
        lines.append(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode("utf-8", "surrogateescape"))
    return lines


def source_files(directory: Path, above: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The files of a package, in order, without what Python keeps beside them; their names begin with ``above``."""
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if not entry.is_dir():
            yield f"{above}{entry.name}", entry
        elif entry.name != "__pycache__":
            yield from source_files(Path(entry.path), f"{above}{entry.name}/")
