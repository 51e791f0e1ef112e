"""``report.trace.json``: the timeline as trace events, which Perfetto, MindStudio Insight and chrome://tracing read.

Source: "Trace Event Format" (Chromium): complete events (X), flows (s, f) and metadata (M). Times are microseconds from
the first span on: Perfetto (v52, measured) turns them into doubles, whether they are numbers or texts, and a double has
no room for the nanoseconds of a time since 1970; it then rounds to 256 ns and drops spans that seem to overlap.
``origin_ns`` says when the first span began. A point in time is a text and a length a number, as the exporter of
torch_npu writes them. Every lane has a thread id of its own in the whole file, since Perfetto looks up the name of a
thread by that alone. The file is not compressed: MindStudio Insight opens ``.json`` only.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterator
from typing import Any

from advisor_core.api.renderers import RunResult, microseconds
from reports.labels import Labels
from reports.timeline.lanes import End, Group, Lanes, Span, Wait

_CATEGORIES = {
    "steps": "step",
    "ledger": "ledger",
    "critical_path": "critical_path",
    "findings": "finding",
    "stream": "task",
}
Json = dict[str, Any]


class TraceRenderer:
    """A process for each rank, a thread for each lane, an arrow for each wait across ranks."""

    def render(self, result: RunResult, lang: str) -> str:
        t = Labels.of_result(result, lang)
        lanes = Lanes(result, t) if result.timeline is not None else None
        notes = [t("timeline.none")] if lanes is None else [*lanes.notes]
        origin = 0 if lanes is None else _origin(lanes)
        events = [] if lanes is None else [*_metadata(lanes), *_spans(lanes, origin), *_flows(lanes, origin)]
        other = {"tool": f"{result.tool.name} {result.tool.version}", "notes": notes, "origin_ns": origin}
        # An event a line: the file can be searched and cut with the tools of text.
        lines = ",\n".join(_json(event) for event in events)
        return f'{{"traceEvents":[\n{lines}\n],\n"otherData":{_json(other)}}}\n'


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _origin(lanes: Lanes) -> int:
    """The beginning of the first span, on the clock of the first rank."""
    return min((span.start_ns for group in lanes.groups for lane in group.lanes for span in lane.spans), default=0)


def _metadata(lanes: Lanes) -> Iterator[Json]:
    tid = 0
    for pid, group in enumerate(lanes.groups, 1):
        yield _named("process_name", pid, 0, name=_process(group))
        yield _named("process_sort_index", pid, 0, sort_index=pid)
        for lane in group.lanes:
            tid += 1
            yield _named("thread_name", pid, tid, name=lane.title)
            yield _named("thread_sort_index", pid, tid, sort_index=tid)


def _process(group: Group) -> str:
    return f"{group.title} ({'; '.join(group.notes)})" if group.notes else group.title


def _named(name: str, pid: int, tid: int, /, **args: object) -> Json:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _spans(lanes: Lanes, origin: int) -> Iterator[Json]:
    tid = 0
    for pid, group in enumerate(lanes.groups, 1):
        for lane in group.lanes:
            tid += 1
            category = _CATEGORIES[lane.kind]
            for span in lane.spans:
                times = _times(span, origin)
                event = {"ph": "X", "name": span.name, "cat": category, "pid": pid, "tid": tid, **times}
                if lane.kind in ("ledger", "critical_path"):
                    event["args"] = {"path": span.key}
                if lane.kind == "steps":
                    notes = {"notes": " ".join(lanes.notes)} if lanes.notes else {}
                    event["args"] = {"start_in_recording_ns": span.start_ns + group.ahead_ns, **notes}
                yield event


def _times(span: Span, origin: int) -> Json:
    # Below 100 days the decimals of a length are exact.
    return {"ts": microseconds(span.start_ns - origin), "dur": span.ns / 1000}


def _flows(lanes: Lanes, origin: int) -> Iterator[Json]:
    first = [0]
    for group in lanes.groups:
        first.append(first[-1] + len(group.lanes))

    def at(ph: str, number: int, end: End, **more: str) -> Json:
        place = {"pid": end.group + 1, "tid": first[end.group] + end.lane + 1, "ts": microseconds(end.at_ns - origin)}
        return {"ph": ph, "name": "wait", "cat": "wait", "id": number, **place, **more}

    for number, wait in enumerate(lanes.waits, 1):
        yield at("s", number, wait.source)
        yield at("f", number, _later(lanes, wait), bp="e")


def _later(lanes: Lanes, wait: Wait) -> End:
    """The end of an arrow, not before it begins, which Perfetto would drop: a wait is over when the last rank comes, so
    that this moment lies in what the ledger books next. Where that is not shown, the end of the wait."""
    target, at_ns = wait.target, wait.source.at_ns
    if target.at_ns >= at_ns:
        return target
    spans = lanes.groups[target.group].lanes[target.lane].spans
    place = bisect.bisect_right(spans, at_ns, key=lambda span: span.start_ns) - 1
    return End(target.group, target.lane, place, at_ns) if at_ns < spans[place].end_ns else target
