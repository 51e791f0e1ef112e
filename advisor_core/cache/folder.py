"""The folder of the cache: whole files by name, as many as fit, those that were not used for longest go first.

Nothing here is worth an error: where the folder cannot be used, or a file is damaged, it is as if nothing were kept;
with ``advisor --debug`` that is told on stderr. What is kept has names and paths out of profiles, and is unpickled: so
the folder is for its user alone (mode 0700), and one that others may write to is not used.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from advisor_core.plugins.crash import DEBUG
from advisor_core.text.kept import cache_folder

SUFFIX: Final = ".rank"
_BESIDE: Final = ".writing"
_LEFT_BEHIND_S: Final = 3600
"""A file that is still being written after an hour was left by a process that was ended; our choice, a rank of
gigabytes takes minutes."""

HEAD: Final = hashlib.sha256().digest_size
"""Bytes that stand before what was written: its digest."""


@dataclass(frozen=True)
class Held:
    """Contents of the folder. ``files``: how many; ``bytes``: what they take together."""

    files: int = 0
    bytes: int = 0


class CacheFolder:
    """``most_bytes``: what all files together may take."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path = path
        self.most_bytes = most_bytes

    def holds(self, name: str) -> bool:
        """True where something was written under a name, damaged or not."""
        return (self.path / f"{name}{SUFFIX}").is_file()

    def read(self, name: str) -> memoryview | None:
        """The bytes written under a name, mapped into memory; it stays readable when the file is taken away meanwhile.
        A damaged file is taken away."""
        file = self.path / f"{name}{SUFFIX}"
        try:
            if not self._usable():
                return None
            with file.open("rb") as opened:
                size = os.fstat(opened.fileno()).st_size
                # The view keeps the map, which outlives the file.
                whole = memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) if size else b"")
        except OSError as error:
            if file.is_file():
                _tell(f"{file.name} cannot be read: {error}")
            return None
        if len(whole) <= HEAD or _digest([whole[HEAD:]]) != whole[:HEAD]:
            _tell(f"{file.name} is damaged")
            self.drop(name)
            return None
        try:
            os.utime(file)  # used just now
        except OSError as error:
            _tell(f"{file.name} cannot be marked as used: {error}")
        return whole[HEAD:]

    def write(self, name: str, parts: Iterable[Any]) -> None:
        """Keep the parts, which are bytes or buffers, one after the other; files that were not used for longest go
        until all fit."""
        parts = list(parts)
        size = HEAD + sum(len(memoryview(part)) for part in parts)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if size > self.most_bytes or not self._usable():
                _tell(f"{size} bytes are not kept: {self.path} takes {self.most_bytes}")
                return
            self._shrink(self.most_bytes - size)
            descriptor, beside = tempfile.mkstemp(prefix=".", suffix=_BESIDE, dir=self.path)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(_digest(parts))
                    for part in parts:
                        file.write(part)
                Path(beside).replace(self.path / f"{name}{SUFFIX}")
            finally:
                Path(beside).unlink(missing_ok=True)
        except OSError as error:
            _tell(f"{self.path} keeps nothing: {error}")

    def drop(self, name: str) -> None:
        """Take a file away; on Windows one that is mapped stays."""
        self._remove(self.path / f"{name}{SUFFIX}")

    def held(self) -> Held:
        """Raises OSError where the folder cannot be listed."""
        sizes = [status.st_size for _, status in self._files()]
        return Held(len(sizes), sum(sizes))

    def clear(self) -> Held:
        """Take everything away, and give what could not be. Raises OSError where the folder cannot be listed."""
        for file, _ in self._files():
            self._remove(file)
        self._forget_unfinished(0)
        return self.held()

    def _shrink(self, most_bytes: int) -> None:
        self._forget_unfinished(_LEFT_BEHIND_S)
        files = sorted(self._files(), key=lambda found: found[1].st_mtime_ns)
        total = sum(status.st_size for _, status in files)
        for file, status in files:
            if total <= most_bytes:
                return
            self._remove(file)
            total -= status.st_size

    def _forget_unfinished(self, older_than_s: float) -> None:
        for file, status in self._files(_BESIDE):
            if time.time() - status.st_mtime >= older_than_s:
                self._remove(file)

    def _files(self, suffix: str = SUFFIX) -> list[tuple[Path, os.stat_result]]:
        found = []
        try:
            with os.scandir(self.path) as entries:
                names = [entry.name for entry in entries if entry.name.endswith(suffix)]
        except FileNotFoundError:
            return []
        for name in names:
            try:
                found.append((self.path / name, (self.path / name).stat()))
            except OSError:  # another run has taken it away
                continue
        return found

    def _remove(self, file: Path) -> None:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            _tell(f"{file.name} cannot be removed: {error}")

    def _usable(self) -> bool:
        """Whether nobody else can have written what lies there. Raises OSError."""
        if not hasattr(os, "getuid"):  # Windows: the folder lies in the profile of the user
            return True
        status = self.path.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
            _tell(f"{self.path} is not used: others may write to it")
            return False
        if status.st_mode & 0o077:
            self.path.chmod(0o700)
        return True


def rank_folder(most_bytes: int) -> CacheFolder | None:
    """The folder for ranks in the cache directory of the user; ``None`` where nothing may be kept."""
    above = cache_folder()
    return CacheFolder(above / "ranks", most_bytes) if above is not None and most_bytes > 0 else None


def _digest(parts: Iterable[Any]) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def _tell(what: str) -> None:
    if os.environ.get(DEBUG):
        sys.stderr.write(f"cache: {what}\n")
