"""Folders that are there for one run.

Each has a lock, which the system takes back however the process ends. So a later run tells a folder that a killed
process left behind from one that is in use, and deletes it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

try:
    import fcntl
except ModuleNotFoundError:  # Windows: what a killed process left is for its user to delete
    fcntl = None  # type: ignore[assignment]

_PREFIX: Final = "npu-advisor-"
_LOCK: Final = ".in-use"

_temporary: set[Path] = set()


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder that is there meanwhile."""
    delete_left_behind()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    _temporary.add(folder)
    lock = _lock(folder)
    try:
        yield folder
    finally:
        _temporary.discard(folder)
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def delete_all() -> None:
    """Delete the folders of this process."""
    for folder in _temporary:
        shutil.rmtree(folder, ignore_errors=True)


def delete_left_behind() -> None:
    """Delete the folders of processes that have ended."""
    if fcntl is None:
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # of somebody else, in use, or gone
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _lock(folder: Path) -> int | None:
    """The lock of a folder, held until it is closed. It has its name only once it is held: nobody meets it free."""
    if fcntl is None:
        return None
    unnamed = folder / f"{_LOCK}.new"
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unnamed.rename(folder / _LOCK)
    return lock
