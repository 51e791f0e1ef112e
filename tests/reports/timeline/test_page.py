"""timeline.html: one script, which its policy names; the lanes of the trace; links that meet those of the report."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from types import ModuleType
from typing import Any

import pytest

from advisor_core.result.run import RunResult
from reports.html import HtmlRenderer
from reports.markdown import MarkdownRenderer
from reports.timeline.page import TimelineRenderer
from reports.timeline.trace import TraceRenderer
from tests.reports.timeline.timelines import FILES, of_two, track, with_timeline

CASES = [(name, lang) for name in ("training", "of_roles", "hostile", "many_ranks") for lang in ("en", "zh")]


class Seen(HTMLParser):
    """Tags with their attributes, and what stands in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self._in = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._in = tag
            self.raw.append((tag, ""))

    def handle_endtag(self, tag: str) -> None:
        self._in = "" if tag == self._in else self._in

    def handle_data(self, data: str) -> None:
        if self._in:
            self.raw[-1] = (self._in, self.raw[-1][1] + data)


def page_of(result: RunResult, lang: str = "en") -> Seen:
    return Seen(TimelineRenderer().render(result, lang))


def drawn(seen: Seen) -> dict[str, Any]:
    data = json.loads(next(text for tag, text in seen.raw if tag == "script"))
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize(("name", "lang"), CASES)
def test_nothing_runs_but_its_own_script_and_nothing_is_fetched(example: ModuleType, name: str, lang: str) -> None:
    seen = page_of(with_timeline(getattr(example, name)(), FILES), lang)
    (policy,) = (a["content"] or "" for _, a in seen.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    (_, style), (_, data), (_, script) = seen.raw
    for text, directive in ((script, "script-src"), (style, "style-src")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert "<" not in data
    for tag, attrs in seen.tags:
        assert not [key for key in attrs if key.startswith("on") or key == "style"], (tag, attrs)
        assert not {"src", "srcset", "action", "background"} & attrs.keys()
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & {tag for tag, _ in seen.tags}
    assert not re.search(r"https?:|\bfetch\(|XMLHttp|WebSocket|sendBeacon|import\(|innerHTML|eval\(", script)


@pytest.mark.parametrize("name", ["training", "of_roles"])
def test_the_page_draws_what_the_trace_holds(example: ModuleType, name: str) -> None:
    result = with_timeline(getattr(example, name)())
    data = drawn(page_of(result))
    origin, spans = int(data["origin"]), []
    for number, group in enumerate(data["groups"], 1):
        for lane in group["lanes"]:
            before, flat = origin, lane["spans"]
            for late, ns, kind in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
                start = before + late
                before = start + ns
                spans.append((number, lane["title"], lane["kinds"][kind][0], start, ns))
    trace = json.loads(TraceRenderer().render(result, "en"))
    events, first = trace["traceEvents"], trace["otherData"]["origin_ns"]
    titles = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert spans == [
        (e["pid"], titles[e["pid"], e["tid"]], e["name"], first + int(e["ts"].replace(".", "")), round(e["dur"] * 1000))
        for e in events
        if e["ph"] == "X"
    ]


def test_arrows_name_their_lanes(example: ModuleType) -> None:
    data = drawn(page_of(example.empty().model_copy(update={"timeline": of_two(ahead_ns=400)})))
    ((g, lane, span, at, to_g, to_lane, to_span, end, ns),) = data["waits"]
    assert data["groups"][g]["lanes"][lane]["title"] == "Collectives" and (span, at) == (0, 80)
    assert data["groups"][to_g]["lanes"][to_lane]["kind"] == "ledger" and (to_span, end, ns) == (1, 79, 30)
    assert [group["ahead"] for group in data["groups"]] == ["0", "400"]


def test_findings_of_the_report_lead_to_their_place_and_back(example: ModuleType) -> None:
    result = with_timeline(example.training(), FILES)
    report = HtmlRenderer().render(result, "en")
    there = set(re.findall(r'href="timeline\.html#([^"]+)"', report))
    seen = page_of(result)
    listed = {a["data-number"] for tag, a in seen.tags if tag == "a" and "data-number" in a}
    keys = {
        kind[1]
        for group in drawn(seen)["groups"]
        for lane in group["lanes"]
        if lane["kind"] == "findings"
        for kind in lane["kinds"]
    }
    assert there == listed == keys and len(there) > 10
    back = {a["href"] for tag, a in seen.tags if tag == "a" and a.get("class") == "out"}
    ids = set(re.findall(r'id="([^"]+)"', report))
    assert len(back) == len(result.findings)
    assert all(href is not None and href.startswith("report.html#") and href[12:] in ids for href in back)
    assert "<script" not in report


def test_links_stand_only_where_the_other_file_is_written(example: ModuleType) -> None:
    alone = with_timeline(example.training(), {"timeline": "timeline.html"})
    assert not [a for tag, a in page_of(alone).tags if tag == "a" and a.get("class") == "out"]
    traced = with_timeline(example.training(), {"html": "report.html", "trace": "report.trace.json"})
    assert "timeline.html" not in HtmlRenderer().render(traced, "en")
    both = with_timeline(example.training(), FILES)
    assert MarkdownRenderer().render(both, "en") == MarkdownRenderer().render(example.training(), "en")


def test_names_of_strangers_stay_text(example: ModuleType) -> None:
    first, second = of_two().ranks
    kernels = track("stream", [(1000 + n, 1, name) for n, name in enumerate(example.HOSTILE)], 2)
    timeline = of_two().model_copy(update={"ranks": [first.model_copy(update={"tracks": [kernels]}), second]})
    seen = page_of(example.hostile().model_copy(update={"timeline": timeline}))
    names = {kind[0] for g in drawn(seen)["groups"] for lane in g["lanes"] for kind in lane["kinds"]}
    assert example.SCRIPT in names and len([tag for tag, _ in seen.raw if tag == "script"]) == 2
    assert not any("\u202e" in name or "\x1b" in name for name in names)


def test_without_a_timeline_the_page_says_so(example: ModuleType) -> None:
    assert "There is no timeline" in TimelineRenderer().render(example.training(), "en")
    assert drawn(page_of(example.training()))["groups"] == []
