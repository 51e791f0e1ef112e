"""Read the content of a gzip file forward, in bounded memory, and come back to a place in it later.

Inflating starts at the beginning or at a state kept while the file was read (`SeekPoints`), so that a piece of evidence
in a large trace does not cost inflating all that precedes it.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from advisor_core.loaders.readers.files import HashedFile
from advisor_core.remote.copies import here
from advisor_core.result.run import InputFile

MAGIC: Final = b"\x1f\x8b"
_RAW_BYTES: Final = 256 << 10
_SMALL: Final = 16
_APART: Final = 32 << 20
"""Inflated bytes between two states that are kept; a state takes about 40 KiB."""

Damage = Literal["", "cut_off", "damaged"]


def _inflater() -> Any:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def is_gzip(path: Path) -> bool:
    """Whether a file begins as gzip files do, whatever its name. Raises OSError where it cannot be read."""
    with HashedFile(path) as file:
        return file.read(len(MAGIC)) == MAGIC


@dataclass(frozen=True, eq=False)
class SeekPoints:
    """Places where inflating can start: offset in the content, offset in the file, and the state there. A state cannot
    be pickled: what comes back from that has none, and finds them anew on its way."""

    points: list[tuple[int, int, Any]] = field(default_factory=list)

    def __reduce__(self) -> tuple[type[SeekPoints], tuple[()]]:
        return SeekPoints, ()

    def passed(self, offset: int, raw: int, state: Any) -> None:
        """Keep a place, where it is far enough behind the last one."""
        if offset - (self.points[-1][0] if self.points else 0) >= _APART:
            self.points.append((offset, raw, state.copy()))

    def read_at(self, path: Path, offset: int, size: int) -> bytes:
        """``size`` bytes of the content from ``offset`` on, fewer at the end or where the file is damaged. Raises
        OSError."""
        start, raw, state = max((p for p in self.points if p[0] <= offset), key=lambda p: p[0], default=(0, 0, None))
        with here(path).open("rb") as file:
            file.seek(raw)
            content = _Content(file.read, _inflater() if state is None else state.copy())
            while start < offset:
                skipped = len(content.read(min(_APART, offset - start)))
                if not skipped:
                    return b""
                start += skipped
                if not content.at_end:
                    self.passed(start, raw + content.position, content.state)
            return content.read(size)


class _Content:
    """Inflates what ``raw`` gives. ``damage``: why the content ended, '' for its proper end."""

    def __init__(self, raw: Any, state: Any) -> None:
        self._raw = raw
        self._state = state
        self._pending = b""
        self._began = False
        self.taken = 0
        self.damage: Damage = ""
        self.at_end = False

    @property
    def position(self) -> int:
        """Bytes of the file that went into what was read, counted from where reading began."""
        return self.taken - len(self._pending)

    @property
    def state(self) -> Any:
        return self._state

    def read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0 and not self.at_end:
            if not self._pending:
                self._pending = self._raw(_RAW_BYTES)
                self.taken += len(self._pending)
            part = self._inflate(size)
            parts.append(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _inflate(self, size: int) -> bytes:
        if not self._pending:  # the file ended: within a member, unless the last one was whole
            self.at_end = True
            self.damage = "cut_off" if self._began or not self.taken else ""
            return b""
        before = self._state.copy()
        try:
            part: bytes = self._state.decompress(self._pending, size)
        except zlib.error:
            self.at_end, self.damage = True, "damaged"
            return _up_to_damage(before, self._pending, size)
        self._began = True
        self._pending = self._state.unconsumed_tail
        if self._state.eof:  # a gzip file may be several of them, one after the other, and padded with zeros
            self._pending = self._state.unused_data.lstrip(b"\0")
            self._state, self._began = _inflater(), False
        return part


def _up_to_damage(state: Any, data: bytes, size: int) -> bytes:
    """The content that can be inflated, up to the first bytes that cannot."""
    parts: list[bytes] = []
    for start in range(0, len(data), _SMALL):
        try:
            parts.append(state.decompress(data[start : start + _SMALL]))
        except zlib.error:
            break
    return b"".join(parts)[:size]


class GzipFile:
    """As `HashedFile`, of the content of a gzip file; size and hash are those of the file itself."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = HashedFile(path)
        self._content = _Content(self._file.read, _inflater())
        self._offset = 0
        self.points = SeekPoints()

    @property
    def damage(self) -> Damage:
        """The reason why the content ended before its end, '' where it did not."""
        return self._content.damage

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes of the content, fewer only at its end."""
        data = self._content.read(size)
        self._offset += len(data)
        if not self._content.at_end:
            self.points.passed(self._offset, self._content.position, self._content.state)
        return data

    def finish(self, name: str) -> InputFile:
        return self._file.finish(name)

    def __enter__(self) -> GzipFile:
        return self

    def __exit__(self, *error: Any) -> None:
        self._file.__exit__(*error)
