"""Lanes: what lies where in time, for all ranks that are shown, on one clock.

A lane never holds two spans at the same moment: what overlaps in the recording lies in lanes below one another.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Literal

from msgspec import Struct

from advisor_core.api.renderers import Place, PlaceKind, RankTimeline, RunResult, Timeline, Track, places
from reports.labels import Labels, one_line, shorten
from reports.outline import Outline
from reports.problems import Item
from reports.prose import plain

Kind = Literal["steps", "ledger", "critical_path", "findings", "stream"]

_WAITING = "communication/wait/"

NAME = 200
"""Longest name of a span."""


class Span(Struct, frozen=True):
    """``start_ns``: on the clock of the first rank. ``key``: the ledger path, of a kernel its trunk; or the number of
    the problem."""

    start_ns: int
    ns: int
    name: str
    key: str = ""

    @property
    def end_ns(self) -> int:
        return self.start_ns + self.ns


class Lane(Struct, frozen=True):
    """``title``: what it is called among those of its rank; the second of two that overlap has a number behind it.
    ``stream``: of a lane of a stream, -1 where none is recorded."""

    kind: Kind
    title: str
    spans: tuple[Span, ...]
    stream: int | None = None


class Group(Struct, frozen=True):
    """The lanes of a rank. ``notes``: why it is shown, and how its clock was set; ``ahead_ns``: what was taken off its
    times."""

    title: str
    notes: tuple[str, ...]
    lanes: tuple[Lane, ...]
    ahead_ns: int


class End(Struct, frozen=True):
    """A moment within a span: numbers of the group, of the lane in it and of the span in that."""

    group: int
    lane: int
    span: int
    at_ns: int


class Wait(Struct, frozen=True):
    """An arrow from where the last rank arrived to where another had waited ``ns`` for it."""

    source: End
    target: End
    ns: int


class Found(Struct, frozen=True):
    """A problem, and how many spans it has."""

    item: Item
    title: str
    spans: int


class Lanes:
    """The lanes of a result that has a timeline. Raises ValueError for one that has none."""

    def __init__(self, result: RunResult, t: Labels) -> None:
        if result.timeline is None:
            raise ValueError("the result has no timeline")
        self.timeline: Timeline = result.timeline
        self._result = result
        self._t = t
        self._outline = Outline(result)

    @cached_property
    def items(self) -> list[Item]:
        """All problems in the order of the report."""
        return [item for root in self._outline.items for item in root.walk()]

    @cached_property
    def _places(self) -> dict[str, dict[tuple[str | None, int], tuple[Place, ...]]]:
        return places(self._result)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        return tuple(self._group(rank) for rank in self.timeline.ranks)

    @cached_property
    def found(self) -> tuple[Found, ...]:
        """All problems; those without a place in this timeline have no spans."""
        return tuple(
            Found(item, self._title(item), sum(map(len, self._places.get(item.finding.fingerprint, {}).values())))
            for item in self.items
        )

    @cached_property
    def waits(self) -> tuple[Wait, ...]:
        """The waits whose two spans are shown."""
        number = {(rank.role, rank.rank): place for place, rank in enumerate(self.timeline.ranks)}
        found = []
        for arrow in self.timeline.arrows:
            last, rank = number[arrow.role, arrow.last_rank], number[arrow.role, arrow.rank]
            start = arrow.start_ns - self.timeline.ranks[last].ahead_ns
            end = arrow.end_ns - self.timeline.ranks[rank].ahead_ns
            source = self._end(last, "stream", arrow.stream, start)
            target = self._end(rank, "ledger", None, end - 1)  # the end of a span is no part of it
            if source is not None and target is not None:
                found.append(Wait(source, target, arrow.ns))
        return tuple(found)

    def _end(self, group: int, kind: Kind, stream: int | None, at_ns: int) -> End | None:
        """The span of such a lane that holds the moment; of the ledger only one of waiting."""
        for number, lane in enumerate(self.groups[group].lanes):
            if (lane.kind, lane.stream) != (kind, stream):
                continue
            place = bisect.bisect_right(lane.spans, at_ns, key=lambda span: span.start_ns) - 1
            holds = place >= 0 and at_ns < lane.spans[place].end_ns
            if holds and (kind == "stream" or lane.spans[place].key.startswith(_WAITING)):
                return End(group, number, place, at_ns)
        return None

    @cached_property
    def window(self) -> tuple[int, int]:
        """The first and the last moment of the steps that are shown."""
        steps = [(s.start_ns - r.ahead_ns, s.end_ns - r.ahead_ns) for r in self.timeline.ranks for s in r.steps]
        return min(start for start, _ in steps), max(end for _, end in steps)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What is shown of the recording, and what was left out."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        t, shown = self._t, self.timeline
        if len(shown.ranks) < shown.recorded_ranks:
            yield t("timeline.some_ranks", count=len(shown.ranks), all=shown.recorded_ranks)
        steps, recorded = (max(n) for n in zip(*((len(r.steps), r.recorded_steps) for r in shown.ranks), strict=True))
        if steps < recorded:
            yield t("timeline.some_steps", count=steps, all=recorded)
        tracks = [track for rank in shown.ranks for track in rank.tracks]
        for kinds, key in ((("stream",), "timeline.kernels_left"), (("ledger", "critical_path"), "timeline.cuts_left")):
            own = [track for track in tracks if track.kind in kinds]
            if left := sum(track.left_out for track in own):
                yield t(key, count=left, time=t.time(max(track.left_out_ns for track in own)))
        if len(self.waits) < shown.waits:
            yield t("timeline.waits_left", count=shown.waits - len(self.waits))
        if nowhere := [one.item.number for one in self.found if not one.spans]:
            yield t("timeline.no_place", list=t.join(nowhere))

    def _title(self, item: Item) -> str:
        finding = item.finding
        role = f"{finding.role}{self._t('word.colon')}" if finding.role else ""
        return one_line(f"{role}{plain(self._t.of(finding.title))}")

    def _group(self, rank: RankTimeline) -> Group:
        t = self._t
        title = t("word.rank", rank=rank.rank)
        if rank.role:
            title = f"{one_line(rank.role)}{t('word.colon')}{title}"
        notes = [] if rank.why == "all" else [t(f"timeline.why.{rank.why}")]
        if rank.apart:
            notes.append(t("timeline.apart"))
        elif rank.ahead_ns > 0:
            notes.append(t("timeline.ahead", time=t.time(rank.ahead_ns)))
        elif rank.ahead_ns < 0:
            notes.append(t("timeline.behind", time=t.time(-rank.ahead_ns)))
        return Group(title, tuple(notes), tuple(self._lanes(rank)), rank.ahead_ns)

    def _lanes(self, rank: RankTimeline) -> Iterator[Lane]:
        t, ahead = self._t, rank.ahead_ns
        whole = t("timeline.whole")
        steps = [
            Span(s.start_ns - ahead, s.end_ns - s.start_ns, whole if s.step is None else t("word.step", step=s.step))
            for s in rank.steps
        ]
        yield from _rows("steps", t("timeline.lane.steps"), steps)
        for track in rank.tracks:
            if track.kind == "ledger":
                yield from _rows("ledger", t("timeline.lane.ledger"), self._booked(track, ahead))
            elif track.kind == "critical_path":
                yield from _rows("critical_path", t("timeline.lane.critical_path"), self._booked(track, ahead))
        yield from _rows("findings", t("timeline.lane.findings"), self._findings(rank))
        for track in rank.tracks:
            if track.kind == "stream":
                stream = track.stream if track.stream is not None else -1
                title = t("timeline.lane.stream", stream=stream) if stream >= 0 else t("timeline.lane.collectives")
                yield from _rows("stream", title, _kernels(track, ahead), stream)

    def _booked(self, track: Track, ahead: int) -> Iterator[Span]:
        names = [self._t.trail(path) for path in track.names]
        for start, ns, name in track.spans:
            yield Span(start - ahead, ns, names[name], track.names[name])

    def _findings(self, rank: RankTimeline) -> Iterator[Span]:
        for item in self.items:
            own = self._places.get(item.finding.fingerprint, {}).get((rank.role, rank.rank), ())
            name = f"{item.number} {shorten(self._title(item), NAME)}"
            names: dict[PlaceKind, str] = {"evidence": name, "claimed": self._t("timeline.claimed", name=name)}
            for place in own:
                yield Span(place.start_ns - rank.ahead_ns, place.ns, names[place.kind], item.number)


def _kernels(track: Track, ahead: int) -> Iterator[Span]:
    names = [shorten(one_line(name), NAME) or "?" for name in track.names]
    keys = ["communication" if number in track.talks else "compute" for number in range(len(names))]
    for start, ns, name in track.spans:
        yield Span(start - ahead, ns, names[name], keys[name])


def _rows(kind: Kind, title: str, spans: Iterable[Span], stream: int | None = None) -> Iterator[Lane]:
    """Lanes of spans that do not overlap: as many as there are spans at one moment. A span without length takes one."""
    rows: list[list[Span]] = []
    free: list[tuple[int, int]] = []  # until when each row is taken, and its number
    for span in sorted(spans, key=lambda span: (span.start_ns, -span.ns)):
        if free and free[0][0] <= span.start_ns:
            row = heapq.heappop(free)[1]
        else:
            row = len(rows)
            rows.append([])
        rows[row].append(span)
        heapq.heappush(free, (span.start_ns + max(span.ns, 1), row))
    for number, row_spans in enumerate(rows, 1):
        yield Lane(kind, title if number == 1 else f"{title} ({number})", tuple(row_spans), stream)
