"""A slice of the recording for each problem that has a place in it: what ran around the longest piece of its evidence.

Source of the form: see `reports.timeline.trace`. A slice holds what stands in the recording, nothing of the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from advisor_core.contracts.isolation import quiet
from advisor_core.contracts.plain_text import plain_text
from advisor_core.contracts.profile import InputError, RankInput
from advisor_core.plugins.guarded_loaders import guarded
from advisor_core.plugins.host import Host
from advisor_core.result.run import RunResult
from advisor_core.slicing.focus import Focus, focuses
from advisor_core.slicing.recording import Recording
from advisor_core.slicing.table_events import TableEvents
from advisor_core.slicing.trace_file import NoEventsError, TraceFile

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
    before, after = recording.around(notes)
    yield Slice(focus.number, before + b",\n".join(recording.written(found.ordinals)) + after)


def _margin(focus: Focus) -> int:
    """As much again before and after the place, at least `MARGIN_NS`."""
    return max(focus.end_ns - focus.start_ns, MARGIN_NS)
