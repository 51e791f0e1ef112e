"""A slice of the recording for each problem that has a place in it: what ran around the longest piece of its evidence.

Source of the form: see `reports.timeline.trace`. A slice holds what stands in the recording, nothing of the report.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from advisor_core.contracts.isolation import quiet
from advisor_core.contracts.plain_text import plain_text
from advisor_core.contracts.profile import InputError, RankInput
from advisor_core.contracts.tables import Int64Array
from advisor_core.loaders.kineto.head import SLICE
from advisor_core.plugins.guarded_loaders import guarded
from advisor_core.plugins.host import Host
from advisor_core.result.run import RunResult
from advisor_core.slicing.events import HEADING
from advisor_core.slicing.focus import Focus, focuses
from advisor_core.slicing.recording import Event, Recording
from advisor_core.slicing.rows import apart
from advisor_core.slicing.table_events import TableEvents
from advisor_core.slicing.trace_file import NoEventsError, TraceFile
from advisor_core.text.units import microseconds

MOST_BYTES: Final = 2 << 20
"""The largest slice; our choice: any viewer opens it at once, and it fits into an attachment of a ticket."""

MARGIN_NS: Final = 1_000_000
"""What is shown before and after the place at least, where there is room: some dozens of launches; our choice."""


@dataclass(frozen=True)
class Slice:
    """``number``: of the problem; ``content``: a file of trace events."""

    number: str
    content: bytes


@dataclass(frozen=True)
class Unsliced:
    """Problems whose place is known, but not what ran there; ``why`` in a few words."""

    numbers: tuple[str, ...]
    why: str


def slices(
    host: Host,
    sources: Sequence[RankInput],
    result: RunResult,
    lang: str,
    progress: Callable[[str], None] = lambda line: None,
) -> Iterator[Slice | Unsliced]:
    """The slices of the problems of a result of ``sources``, rank by rank. A rank is read a second time for them."""
    by_rank: dict[tuple[str | None, int], list[Focus]] = {}
    for focus in focuses(result):
        by_rank.setdefault((focus.role, focus.rank), []).append(focus)
    for (role, rank), own in by_rank.items():
        source = _source(sources, role, rank)
        numbers = tuple(focus.number for focus in own)
        if source is None:
            yield Unsliced(numbers, f"the recording of rank {rank} was not found again")
            continue
        progress(f"slices of rank {rank}: {source.directory}")
        try:
            with quiet(), plain_text():
                recordings = _recordings(host, source)
                for focus in own:
                    yield from _cut(recordings, focus, lang)
        except (InputError, NoEventsError, OSError) as error:
            yield Unsliced(numbers, str(error))


def _source(sources: Sequence[RankInput], role: str | None, rank: int) -> RankInput | None:
    """The profile of a rank; a result of one role does not name it."""
    of_rank = [source for source in sources if source.rank == rank and role in (None, source.role)]
    return of_rank[0] if len(of_rank) == 1 else None


def _recordings(host: Host, source: RankInput) -> list[tuple[str, Recording]]:
    """What a rank was recorded in, each with its name: its trace files, else its tables."""
    loader = guarded(host, source.loader)
    files: Sequence[Path] = getattr(loader, "traces", lambda source: ())(source)
    if files:
        return [(file.name, TraceFile(file)) for file in files]
    return [(source.directory.name, TableEvents(loader.load(source).tables))]


def _cut(recordings: Sequence[tuple[str, Recording]], focus: Focus, lang: str) -> Iterator[Slice | Unsliced]:
    """The slice of the file that has most in the window, of a timeline that was written in several."""
    chosen = [
        (recording.events.choose(focus.start_ns, focus.end_ns, _margin(focus), MOST_BYTES - 4096), name, recording)
        for name, recording in recordings
    ]
    found, name, recording = max(chosen, key=lambda one: len(one[0].ordinals))
    if not len(found.ordinals):
        yield Unsliced((focus.number,), f"nothing in {name} is at its place")
        return
    notes: dict[str, Any] = {
        "problem": focus.number,
        "rule": focus.finding.rule,
        "title": focus.finding.title.of(lang),
        "recording": name,
        "rank": focus.rank,
        **({"role": focus.role} if focus.role else {}),
        "place": {"kind": focus.kind, "start_ns": focus.start_ns, "end_ns": focus.end_ns},
        "window": {"start_ns": found.start_ns, "end_ns": found.end_ns},
        "further_places": focus.further,
        "arrows": found.arrows,
        "left_out": found.left_out,
    }
    origin = int(recording.events.start_ns[found.ordinals[recording.events.kind[found.ordinals] != HEADING]].min())
    yield Slice(focus.number, _written(recording, found.ordinals, origin, {**notes, "origin_ns": origin}))


def _written(recording: Recording, ordinals: Int64Array, origin: int, notes: Mapping[str, Any]) -> bytes:
    """A file of the form that the recording has: an array, whose first event has the notes, or an object around one.
    Times count from ``origin``, for the reason that `reports.timeline.trace` gives."""
    table = recording.events
    starts, ends = table.start_ns[ordinals], table.end_ns[ordinals]
    timed = [
        _placed(event, start - origin) for event, start in zip(recording.chosen(ordinals), starts.tolist(), strict=True)
    ]
    events = apart(timed, starts.tolist(), (ends - starts).tolist())
    if recording.as_array:
        events.insert(0, {"ph": "M", "name": SLICE, "pid": 0, "tid": 0, "args": dict(notes)})
    lines = ",\n".join(json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in events)
    if recording.as_array:
        text = f"[\n{lines}\n]\n"
    else:
        text = f'{{{json.dumps(SLICE)}:{json.dumps(dict(notes), ensure_ascii=False)},"traceEvents":[\n{lines}\n]}}\n'
    return text.encode("utf-8", "replace")


def _placed(event: Event, ns: int) -> Event:
    """An event at its time in the slice. Old traces of Kineto name one thread by a text and by a number, which Perfetto
    takes for two."""
    if event.get("ph") == "M":
        event.pop("ts", None)
    elif "ts" in event:
        event["ts"] = microseconds(ns)
    return event | {key: _number(event[key]) for key in ("pid", "tid") if key in event}


def _number(name: object) -> object:
    """A text that is a number as a number, and anything else as it is."""
    return int(name) if isinstance(name, str) and name.isascii() and name.isdecimal() else name


def _margin(focus: Focus) -> int:
    """As much again before and after the place, at least `MARGIN_NS`."""
    return max(focus.end_ns - focus.start_ns, MARGIN_NS)
