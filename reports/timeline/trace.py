"""``report.trace.json``: the timeline as trace events, which Perfetto, MindStudio Insight and chrome://tracing read.

Source: "Trace Event Format" (Chromium): complete events (X), flows (s, f) and metadata (M). Times are microseconds, as
the exporter of torch_npu writes them: a point in time as a text, since readers turn a number into a double, which has
no room for the nanoseconds of a time since 1970; a length as a number. Every lane has a thread id of its own in the
whole file, since Perfetto looks up the name of a thread by that alone. The file is not compressed: MindStudio Insight
opens ``.json`` only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from advisor_core.api.renderers import RunResult, microseconds
from reports.labels import Labels
from reports.timeline.lanes import End, Group, Lanes, Span

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
        events = [] if lanes is None else [*_metadata(lanes), *_spans(lanes), *_flows(lanes)]
        other = {"tool": f"{result.tool.name} {result.tool.version}", "notes": notes}
        # An event a line: the file can be searched and cut with the tools of text.
        lines = ",\n".join(_json(event) for event in events)
        return f'{{"traceEvents":[\n{lines}\n],\n"otherData":{_json(other)}}}\n'


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


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


def _spans(lanes: Lanes) -> Iterator[Json]:
    tid = 0
    for pid, group in enumerate(lanes.groups, 1):
        for lane in group.lanes:
            tid += 1
            category = _CATEGORIES[lane.kind]
            for span in lane.spans:
                event = {"ph": "X", "name": span.name, "cat": category, "pid": pid, "tid": tid, **_times(span)}
                if lane.kind in ("ledger", "critical_path"):
                    event["args"] = {"path": span.key}
                if lane.kind == "steps" and lanes.notes:
                    event["args"] = {"notes": " ".join(lanes.notes)}
                yield event


def _times(span: Span) -> Json:
    return {"ts": microseconds(span.start_ns), "dur": span.ns / 1000}  # below 100 days the decimals of it are exact


def _flows(lanes: Lanes) -> Iterator[Json]:
    first = [0]
    for group in lanes.groups:
        first.append(first[-1] + len(group.lanes))

    def at(ph: str, number: int, end: End, **more: str) -> Json:
        place = {"pid": end.group + 1, "tid": first[end.group] + end.lane + 1, "ts": microseconds(end.at_ns)}
        return {"ph": ph, "name": "wait", "cat": "wait", "id": number, **place, **more}

    for number, wait in enumerate(lanes.waits, 1):
        yield at("s", number, wait.source)
        yield at("f", number, wait.target, bp="e")
