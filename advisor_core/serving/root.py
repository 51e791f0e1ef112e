"""The folder that a server may read, and nothing beside it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

Stamp = frozenset[tuple[str, int, int]]
"""Path, bytes and time of change (ns) of each file: the same where nothing has changed."""


class OutsideError(ValueError):
    """A path leads out of the folder; the message names both."""


class Root:
    """Every path is resolved before it is judged, so that neither ``..`` nor links lead out. What changes between that
    and the reading is not noticed."""

    def __init__(self, directory: Path) -> None:
        self.directory = Path(os.path.realpath(directory))

    def path(self, name: str) -> Path:
        """The path that ``name`` stands for, relative to the folder or absolute. Raises `OutsideError`; whether
        anything is there is not asked."""
        path = self.directory / name
        self._require(path, name)
        return path

    def stamp(self, paths: Iterable[Path]) -> Stamp:
        """All files at and below the paths. Raises `OutsideError` where one of them is a link that leads out, and
        OSError for what cannot be listed."""
        return frozenset(file for path in paths for file in self._files(path))

    def _files(self, path: Path) -> Iterator[tuple[str, int, int]]:
        self._require(path, str(path))
        if not path.is_dir():
            if path.exists():
                yield _stamp(str(path), path.stat())
            return
        seen: set[str] = set()
        waiting = [str(path)]
        while waiting:
            real = os.path.realpath(waiting.pop())
            if real in seen:
                continue
            seen.add(real)
            with os.scandir(real) as entries:
                for entry in entries:
                    # A junction of Windows is a directory and no link, but its real path is elsewhere.
                    if entry.is_symlink() or entry.is_dir():
                        self._require(Path(entry.path), entry.path)
                    if entry.is_dir():
                        waiting.append(entry.path)
                    elif entry.is_file():
                        yield _stamp(entry.path, entry.stat())

    def _require(self, path: Path, shown: str) -> None:
        try:
            inside = Path(os.path.realpath(path)).is_relative_to(self.directory)
        except (OSError, ValueError) as error:  # a null byte, a name that is too long
            raise OutsideError(f"{shown!r} is no path: {error}") from None
        if not inside:
            raise OutsideError(f"{shown} is or leads outside of {self.directory}, and only what is below that is read")


def _stamp(path: str, status: os.stat_result) -> tuple[str, int, int]:
    return path, status.st_size, status.st_mtime_ns
