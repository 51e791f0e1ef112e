"""Events of a trace file (trace_view.json, msprof_*.json, *.pt.trace.json, compressed or not), which is read in pieces.

It is read once for the numbers; chosen events are then read from the pieces that hold them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.kineto.head import joined, open_trace
from advisor_core.loaders.readers import times
from advisor_core.loaders.readers.columns import Interner
from advisor_core.loaders.readers.gzip_file import GzipFile
from advisor_core.loaders.readers.json_events import ElementReader, borders, read_plain
from advisor_core.loaders.readers.trace_event import TraceEvent
from advisor_core.slicing.events import BEGIN, END, HEADING, OPEN, POINT, SLICE, Events
from advisor_core.slicing.recording import Event

_KINDS: Final = {"X": SLICE, "s": BEGIN, "t": END, "f": END, "M": HEADING}
_THREADS: Final = frozenset({"thread_name", "thread_sort_index"})
_OTHER: Final = -1
_LONGEST_REST: Final = 1 << 20

_decoder = msgspec.json.Decoder(list[TraceEvent], float_hook=str)
_GET: Final = {name: attrgetter(name) for name in ("ph", "name", "cat", "pid", "tid", "ts", "dur", "id")}

Sized = tuple[TraceEvent, int]
"""An event without its arguments, and its bytes."""


class NoEventsError(Exception):
    """A file holds no events that could be cut."""


class TraceFile:
    """A trace file. Raises `NoEventsError`, and OSError where it cannot be read."""

    def __init__(self, path: Path) -> None:
        columns = _Columns()
        with open_trace(path) as file:
            reader: ElementReader[Sized] = ElementReader(file, _decode, _salvage, lambda *damage: None)
            for batch in reader:
                columns.add(batch.elements, batch.ordinals)
            rest = reader.rest(_LONGEST_REST)
            self._read_at = file.points.read_at if isinstance(file, GzipFile) else read_plain
        self._path = path
        self._index = reader.index()
        if not self._index.elements:
            raise NoEventsError(f"{path.name} holds no events")
        self.as_array = not reader.head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
        base = {} if self.as_array else joined(reader.head, rest)
        origin = base.get("baseTimeNanoseconds")
        self.events = columns.events(origin if isinstance(origin, int) else 0, self._index.elements)

    def chosen(self, ordinals: Int64Array) -> Iterator[Event]:
        """The events of these ordinals, as they stand in the file."""
        index = self._index
        chunks = np.searchsorted(index.firsts, ordinals, side="right") - 1
        for chunk in np.unique(chunks).tolist():
            data = self._read_at(self._path, int(index.offsets[chunk]), int(index.sizes[chunk]))
            found = borders(data)
            places = ordinals[chunks == chunk] - index.firsts[chunk]
            for place in places[places < len(found.starts)].tolist():
                yield json.loads(data[found.starts[place] : found.ends[place]].decode("utf-8", "replace"), strict=False)


def _decode(data: bytes) -> list[Sized]:
    heads = _decoder.decode(data)
    inside = borders(data[1:-1])
    sizes = (inside.ends - inside.starts).tolist()
    if len(sizes) != len(heads):  # something that is no object, which the decoder takes for one without members
        raise msgspec.DecodeError("not an array of objects")
    return list(zip(heads, sizes, strict=True))


def _salvage(data: bytes) -> Sized | None:
    """None: what cannot be decoded as it stands would make the slice a file that cannot be read."""
    return None


class _Columns:
    """Collects the numbers of events, batch by batch."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []
        self._processes, self._lanes, self._arrows = Interner(), Interner(), Interner()

    def add(self, elements: list[Sized], ordinals: Int64Array) -> None:
        heads = [head for head, _ in elements]
        got = {name: list(map(get, heads)) for name, get in _GET.items()}
        kinds = np.array([_KINDS.get(ph, POINT) if isinstance(ph, str) else POINT for ph in got["ph"]], np.int8)
        starts = times.points_ns(got["ts"])
        spans = np.nan_to_num(times.numbers(got["dur"]), nan=0.0, posinf=0.0, neginf=0.0) * 1000
        process = [str(pid) for pid in got["pid"]]
        lanes = self._lanes.codes([f"{pid}\0{tid}" for pid, tid in zip(process, got["tid"], strict=True)])
        whole = np.array([name not in _THREADS for name in map(str, got["name"])], np.bool_)
        arrows = self._arrows.codes([f"{cat}\0{number}" for cat, number in zip(got["cat"], got["id"], strict=True)])
        known = (starts != times.NO_TIME) | (kinds == HEADING)
        self.parts.append(
            {
                "ordinal": ordinals,
                "kind": np.where(known, kinds, _OTHER).astype(np.int8),
                "process": self._processes.codes(process),
                "lane": np.where((kinds == HEADING) & whole, OPEN, lanes).astype(np.int32),
                "arrow": np.where((kinds == BEGIN) | (kinds == END), arrows, -1).astype(np.int64),
                "start_ns": starts,
                "end_ns": starts + np.where(kinds == SLICE, np.maximum(spans, 0), 0).astype(np.int64),
                "bytes": np.array([size + 2 for _, size in elements], np.int32),
            }
        )

    def events(self, base_ns: int, count: int) -> Events:
        """By ordinal: what could not be decoded is of no kind. ``base_ns``: the origin of the times."""
        joined_parts = {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}
        ordinals = joined_parts.pop("ordinal")
        filled = {name: np.full(count, _OTHER, values.dtype) for name, values in joined_parts.items()}
        for name, values in joined_parts.items():
            filled[name][ordinals] = values
        filled["start_ns"] += base_ns
        filled["end_ns"] += base_ns
        return Events(**filled)
