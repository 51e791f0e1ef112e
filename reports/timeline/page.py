"""``timeline.html``: the timeline as a page to look into: zoom, pan, search, and the way from a finding to its place.

The page is one file with one script, which its policy names by its hash; it may load and send nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from advisor_core.api.renderers import RunResult
from reports.labels import Labels, shorten
from reports.prose import trusted
from reports.timeline.lanes import Group, Lane, Lanes

_HERE = Path(__file__).parent
_REPORTS = _HERE.parent
_TITLE = 140

_SAID = ("starts", "takes", "recorded", "no_match", "place", "waited")
"""What the script says, by the end of the id of its label."""

_LEGEND = ("compute", "communication/transmit", "communication/wait", "idle", "idle/host", "idle/sync")


class TimelineRenderer:
    """Draws the lanes on a canvas, with the findings as a list beside them."""

    def render(self, result: RunResult, lang: str) -> str:
        t = Labels.of_result(result, lang)
        lanes = None if result.timeline is None else Lanes(result, t)
        script, style = _asset(_HERE / "timeline.js"), _asset(_REPORTS / "styles" / "timeline.css")
        page: str = _template().render(
            t=t,
            lang="zh-CN" if t.lang == "zh" else "en",
            tool=f"{result.tool.name} {result.tool.version}",
            script=trusted(script),
            style=trusted(style),
            policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
            "form-action 'none'",
            found=() if lanes is None else lanes.found,
            notes=(t("timeline.none"),) if lanes is None else lanes.notes,
            report="" if result.timeline is None else result.timeline.files.get("html", ""),
            short=lambda title: shorten(title, _TITLE),
            legend=[(path, t.trail(path)) for path in _LEGEND],
            data=trusted(_data(lanes, t)),
        )
        return page


def _data(lanes: Lanes | None, t: Labels) -> str:
    """What the script draws, as JSON that may stand in a page: times are ns from ``origin``."""
    said = {key: t(f"timeline.{key}") for key in _SAID}
    if lanes is None:
        return _embedded({"groups": [], "waits": [], "said": said, "origin": "0", "length": 0})
    start, end = lanes.window
    return _embedded(
        {
            "origin": str(start),
            "length": end - start,
            "groups": [_group(group, start) for group in lanes.groups],
            "waits": [
                [*(n for end in (w.source, w.target) for n in (end.group, end.lane, end.span, end.at_ns - start)), w.ns]
                for w in lanes.waits
            ],
            "said": said,
        }
    )


def _group(group: Group, origin: int) -> dict[str, Any]:
    return {
        "title": group.title,
        "notes": "; ".join(group.notes),
        "ahead": str(group.ahead_ns),
        "lanes": [_lane(lane, origin) for lane in group.lanes],
    }


def _lane(lane: Lane, origin: int) -> dict[str, Any]:
    """``spans``: for each, how much later it begins than the one before it ended, its length, and its kind."""
    kinds = list(dict.fromkeys((span.name, span.key) for span in lane.spans))
    number = {kind: place for place, kind in enumerate(kinds)}
    flat: list[int] = []
    before = origin
    for span in lane.spans:
        flat += (span.start_ns - before, span.ns, number[span.name, span.key])
        before = span.end_ns
    return {"kind": lane.kind, "title": lane.title, "kinds": kinds, "spans": flat}


def _embedded(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


@cache
def _asset(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(_REPORTS / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("timeline.html.j2")
