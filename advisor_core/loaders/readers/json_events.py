"""Read an array of JSON objects in bounded chunks that are cut at the borders of its elements.

The fast way looks for the last ``}, {`` of a chunk and lets the decoder prove the cut right: what precedes it, closed
by ``]``, is valid JSON exactly when the cut lies between two elements of the array. Where the proof fails (objects
inside an element, damage, a file cut off) `borders` finds the elements by brackets and strings, without decoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

import msgspec
import numpy as np

from advisor_core.contracts.tables import Int64Array
from advisor_core.remote.copies import here

CHUNK_BYTES: Final = 4 << 20
LONGEST_ELEMENT: Final = 256 << 20
"""An element that does not end within this many bytes is damage, not data; bounds the memory."""

_BETWEEN = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*(?=\{)")
_FILLER = re.compile(rb"[ \t\r\n,]*")
_SPACE = re.compile(rb"[ \t\r\n]*")
_OPEN = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*([\[{])")
_WRAPPED = re.compile(rb'"traceEvents"[ \t\r\n]*:[ \t\r\n]*\[')
_WINDOW: Final = 64 << 10

T = TypeVar("T")

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


@dataclass(frozen=True)
class Borders:
    """Starts and ends of the whole objects of a piece of an array. ``stop``: the offset of the bracket that ends the
    array, or the first one that does not match; None where the piece ends before."""

    starts: Int64Array
    ends: Int64Array
    stop: int | None


def borders(data: bytes) -> Borders:
    """The objects at the outermost level of ``data``, the inside of an array from the start of an element on."""
    raw = np.frombuffer(data, np.uint8)
    quotes = _quotes(raw)
    steps_of = _steps()
    marks = np.flatnonzero(steps_of[raw])
    marks = marks[(np.searchsorted(quotes, marks) & 1) == 0]
    steps = steps_of[raw[marks]].astype(np.int64)
    depth = np.cumsum(steps)
    below = np.flatnonzero(depth < 0)
    stop = None
    if len(below):
        stop = int(marks[below[0]])
        marks, steps, depth = marks[: below[0]], steps[: below[0]], depth[: below[0]]
    opening = marks[(steps == 1) & (depth == 1)]
    closing = marks[(steps == -1) & (depth == 0)]
    opening = opening[: len(closing)]
    objects = (raw[opening] == ord("{")) & (raw[closing] == ord("}"))
    return Borders(opening[objects], closing[objects] + 1, stop)


@cache
def _steps() -> Any:
    """By how much each byte changes the depth, outside of strings."""
    steps = np.zeros(256, np.int8)
    steps[[ord("["), ord("{")]] = 1
    steps[[ord("]"), ord("}")]] = -1
    return steps


def _quotes(raw: Any) -> Int64Array:
    """Offsets of the quotes that open or close a string: an odd run of backslashes before a quote escapes it."""
    quotes: Int64Array = np.flatnonzero(raw == ord('"'))
    slashes = np.flatnonzero(raw == ord("\\"))
    if len(slashes) == 0 or len(quotes) == 0:
        return quotes
    run_starts = slashes[np.flatnonzero(np.diff(slashes, prepend=-2) != 1)]
    after = (quotes > 0) & (raw[quotes - 1] == ord("\\"))
    run = np.searchsorted(run_starts, quotes[after] - 1, side="right") - 1
    escaped = after.copy()
    escaped[after] = (quotes[after] - run_starts[run]) % 2 == 1
    real: Int64Array = quotes[~escaped]
    return real


@dataclass(frozen=True)
class Batch(Generic[T]):
    """Decoded elements and the place of each in the array, counted from 0."""

    elements: list[T]
    ordinals: Int64Array


class Forward(Protocol):
    """A file that is read from its beginning to its end, such as `HashedFile` and `GzipFile`."""

    def read(self, size: int) -> bytes:
        """The next ``size`` bytes, fewer only at the end."""
        ...


ReadAt = Callable[[Path, int, int], bytes]
"""Reads a number of bytes of a file from an offset on."""


def read_plain(path: Path, offset: int, size: int) -> bytes:
    """`ReadAt` of a file that is not compressed."""
    with here(path).open("rb") as file:
        file.seek(offset)
        return file.read(size)


@lru_cache(maxsize=256)
def _element_starts(path: Path, offset: int, size: int, count: int, read_at: ReadAt) -> Int64Array:
    """Offsets, within a chunk, of its elements; kept, since evidence comes back to the same chunks. The quick search
    is right where it finds as many elements as were decoded."""
    try:
        data = read_at(path, offset, size)
    except OSError:
        return np.empty(0, np.int64)
    quick = [data.find(b"{"), *(match.end() for match in _BETWEEN.finditer(data))]
    return np.array(quick, dtype=np.int64) if len(quick) == count else borders(data).starts


@dataclass(frozen=True)
class ChunkIndex:
    """Start and length of each chunk of a file, and the number of its first element. ``elements``: of all chunks."""

    offsets: Int64Array
    sizes: Int64Array
    firsts: Int64Array
    elements: int

    def positions(self, path: Path, ordinals: Int64Array, read_at: ReadAt = read_plain) -> Int64Array:
        """Byte offsets of the ``{`` of elements, in a compressed file those of its content; only the chunks concerned
        are read again. Where the file is gone or has changed, the start of the chunk."""
        chunks = np.searchsorted(self.firsts, ordinals, side="right") - 1
        counts = np.diff(self.firsts, append=self.elements)
        found = np.empty(len(ordinals), np.int64)
        for chunk in np.unique(chunks).tolist():
            here = chunks == chunk
            offset = int(self.offsets[chunk])
            starts = _element_starts(path, offset, int(self.sizes[chunk]), int(counts[chunk]), read_at)
            places = ordinals[here] - self.firsts[chunk]
            known = places < len(starts)
            found[here] = offset
            found[np.flatnonzero(here)[known]] += starts[places[known]]
        return found


_State = Literal["open", "closed", "broken"]
"""Of the array after a chunk: goes on, ended, or met a bracket that matches none; what follows is unknown."""

Damage = Literal["not_an_array", "cut_off", "too_long", "trailing", "broken", "element"]


class ElementReader(Generic[T]):
    """Iterates over the batches of one file.

    ``decode`` takes the bytes of an array; ``salvage`` the bytes of one element that ``decode`` refused, and gives None
    for one that is beyond use. ``report`` hears of damage: its kind, the byte offset and an excerpt.
    """

    def __init__(
        self,
        file: Forward,
        decode: Callable[[bytes], list[T]],
        salvage: Callable[[bytes], T | None],
        report: Callable[[Damage, int, bytes], None],
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        self._file = file
        self._decode = decode
        self._salvage = salvage
        self._report = report
        self._size = chunk_bytes
        self._data = b""
        self._offset = 0
        self._at_end = False
        self._count = 0
        self._chunks: list[tuple[int, int, int]] = []
        self.head = b""
        """The text before the array in the object that wraps it."""

    def rest(self, most: int) -> bytes:
        """The text behind the array, at most so many bytes; for when all elements are read."""
        self._fill(most)
        return self._data[:most]

    def index(self) -> ChunkIndex:
        table = np.array(self._chunks, np.int64).reshape(-1, 3)
        return ChunkIndex(table[:, 0], table[:, 1], table[:, 2], self._count)

    def __iter__(self) -> Iterator[Batch[T]]:
        wrapped = self._enter()
        if wrapped is None:
            self._report("not_an_array", 0, self._data[:80])
            return
        wanted = self._size
        while True:
            self._fill(wanted)
            self._skip(_FILLER)
            batch, used, state = self._fast() or self._careful()
            if batch is not None:
                yield batch
            self._drop(used)
            if state == "broken":
                self._report("broken", self._offset, self._data[:80])
                return
            if state == "closed":
                if not wrapped:
                    self._check_end()
                return
            if used:
                wanted = self._size
            elif self._at_end or len(self._data) > LONGEST_ELEMENT:
                self._report("cut_off" if self._at_end else "too_long", self._offset, self._data[:80])
                return
            else:
                wanted = max(self._size, 2 * len(self._data))

    def _enter(self) -> bool | None:
        """Go to the first element; whether the array is wrapped in an object; None where there is no array."""
        self._fill(max(self._size, _WINDOW))
        start = _OPEN.match(self._data)
        if start is None:
            return None
        if start[1] == b"[":
            self._drop(start.end())
            return False
        while (array := _WRAPPED.search(self._data)) is None:
            if self._at_end or len(self._data) > LONGEST_ELEMENT:
                return None
            self._fill(2 * len(self._data))
        self.head = self._data[: array.start()]
        self._drop(array.end())
        return True

    def _fast(self) -> tuple[Batch[T] | None, int, _State] | None:
        """Batch, bytes used and whether the array ended; None where the cut proves wrong or there is none."""
        if self._at_end:
            body = self._data.rstrip(b" \t\r\n")
            if not body.endswith(b"]"):
                return None
            elements = self._try(body[:-1])
            return None if elements is None else (self._batch(elements, len(body) - 1), len(body), "closed")
        cut = self._last_border()
        elements = self._try(self._data[:cut]) if cut else None
        return None if elements is None else (self._batch(elements, cut), cut, "open")

    def _careful(self) -> tuple[Batch[T] | None, int, _State]:
        """As `_fast`, by brackets and strings; elements that cannot be decoded are salvaged or left out."""
        found = borders(self._data)
        end = int(found.ends[-1]) if len(found.ends) else 0
        batch = None
        if end:
            elements = self._try(self._data[:end])
            batch = self._batch(elements, end) if elements is not None else self._one_by_one(found, end)
        if found.stop is None:
            return batch, end, "open"
        if self._data[found.stop] == ord("]"):
            return batch, found.stop + 1, "closed"
        return batch, found.stop, "broken"

    def _one_by_one(self, found: Borders, end: int) -> Batch[T]:
        elements: list[T] = []
        kept: list[int] = []
        for place, (start, stop) in enumerate(zip(found.starts.tolist(), found.ends.tolist(), strict=True)):
            data = self._data[start:stop]
            try:
                element: T | None = self._decode(b"[" + data + b"]")[0]
            except DECODE_ERRORS:
                element = self._salvage(data)
            if element is None:
                self._report("element", self._offset + start, data[:80])
            else:
                elements.append(element)
                kept.append(place)
        ordinals = self._count + np.array(kept, np.int64)
        self._enlist(len(found.starts), end)
        return Batch(elements, ordinals)

    def _try(self, body: bytes) -> list[T] | None:
        try:
            return self._decode(b"[" + body + b"]")
        except DECODE_ERRORS:
            return None

    def _batch(self, elements: list[T], size: int) -> Batch[T]:
        ordinals = np.arange(self._count, self._count + len(elements), dtype=np.int64)
        self._enlist(len(elements), size)
        return Batch(elements, ordinals)

    def _enlist(self, elements: int, size: int) -> None:
        if elements:
            self._chunks.append((self._offset, size, self._count))
            self._count += elements

    def _last_border(self) -> int:
        """Behind the last ``}`` that seems to precede another element; 0 where there is none."""
        for start in (max(0, len(self._data) - _WINDOW), 0):
            cut = 0
            for found in _BETWEEN.finditer(self._data, start):
                cut = found.start() + 1
            if cut:
                return cut
        return 0

    def _check_end(self) -> None:
        self._fill(self._size)
        self._skip(_SPACE)
        if self._data:
            self._report("trailing", self._offset, self._data[:80])

    def _fill(self, size: int) -> None:
        if len(self._data) < size and not self._at_end:
            wanted = size - len(self._data)
            more = self._file.read(wanted)
            self._data += more
            self._at_end = len(more) < wanted

    def _skip(self, pattern: re.Pattern[bytes]) -> None:
        found = pattern.match(self._data)
        self._drop(found.end() if found else 0)

    def _drop(self, size: int) -> None:
        if size:
            self._data = self._data[size:]
            self._offset += size
