"""Open input files: only regular ones, read-only, hashed while they are read."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from advisor_core.remote.copies import here
from advisor_core.result.run import InputFile

_WORTH_A_THREAD = 1 << 20

_listeners: list[Callable[[int], None]] = []


def listen_to_reads(listener: Callable[[int], None]) -> None:
    """Have this process tell how many bytes of input files it reads, from several threads."""
    _listeners[:] = [listener]


def tell_read(size: int) -> None:
    """Tell of bytes that are read, or need not be."""
    for listener in _listeners:
        listener(size)


class NotAFileError(OSError):
    """A directory, device, pipe or socket where a file should be."""


def regular_size(path: Path) -> int | None:
    """Size of a regular file, links followed; None where there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


class HashedFile:
    """Reads a file forward and keeps the hash of all of it.

    Large blocks are hashed on a second thread (hashing releases the interpreter lock), so that the hash costs no time
    beside decoding. Raises OSError when it cannot be opened; a pipe or device is refused and never waited for.
    """

    def __init__(self, path: Path) -> None:
        descriptor = os.open(here(path), os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotAFileError(f"not a regular file: {path}")
        self.path = path
        self._file = os.fdopen(descriptor, "rb", buffering=0)
        self._sha = hashlib.sha256()
        self._size = 0
        self._thread: ThreadPoolExecutor | None = None
        self._pending: Future[None] | None = None

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer only at the end of the file."""
        parts = []
        while size > 0 and (part := self._file.read(size)):
            parts.append(part)
            size -= len(part)
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._size += len(data)
        tell_read(len(data))
        self._hash(data)
        return data

    def finish(self, name: str) -> InputFile:
        """Size and hash of the whole file; what was not read yet is read for the hash only."""
        while self.read(_WORTH_A_THREAD):
            pass
        self._settle()
        return InputFile(name=name, bytes=self._size, sha256=self._sha.hexdigest())

    def _hash(self, data: bytes) -> None:
        self._settle()
        if len(data) < _WORTH_A_THREAD:
            self._sha.update(data)
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="sha256")
        self._pending = self._thread.submit(self._sha.update, data)

    def _settle(self) -> None:
        if self._pending is not None:
            self._pending.result()
            self._pending = None

    def __enter__(self) -> HashedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._settle()
        if self._thread is not None:
            self._thread.shutdown()
        self._file.close()
