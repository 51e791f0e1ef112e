"""The report in a real browser: it lays out at both widths, nothing overflows, nothing runs, nothing complains.

Each check is first shown to notice what it looks for on a page that has it.
"""

from __future__ import annotations

import html
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.html import HtmlRenderer
from tests import report_fixtures

# Frames a page in a window of the wanted width and writes down what it became.
PROBE = """<!doctype html><meta charset="utf-8">
<iframe id="f" style="width:{width}px;height:900px;border:0" src="{src}"></iframe>
<pre id="o"></pre><script>
window.onload = () => {{
  const d = document.getElementById('f').contentDocument, all = [...d.querySelectorAll('*')];
  if ({print}) for (const sheet of d.styleSheets) for (const rule of [...sheet.cssRules])
    if (rule.conditionText === 'print') for (const inner of rule.cssRules)
      if (!inner.cssText.startsWith('@page')) sheet.insertRule(inner.cssText, sheet.cssRules.length);
  // Neither within the page nor in a box that scrolls: nobody can read what is beyond the edge.
  const cut = e => {{
    const box = e.closest('.scroll'), edge = e.getBoundingClientRect().right;
    const scrolls = box && getComputedStyle(box).overflowX === 'auto';
    return edge > {width} + 1 && !(scrolls && box.getBoundingClientRect().right <= {width} + 1);
  }};
  const clipped = e => e.closest('.scroll, pre, nav');
  document.getElementById('o').textContent = JSON.stringify({{
    title: d.title, width: d.documentElement.scrollWidth, inside: d.documentElement.clientWidth,
    wide: all.filter(e => !clipped(e) && e.getBoundingClientRect().right > {width} + 1)
             .map(e => e.outerHTML.slice(0, 80)),
    cut: [...d.querySelectorAll('.evidence table, .evidence .stack, .caption')].filter(cut)
            .map(e => e.outerHTML.slice(0, 80)),
    scripts: d.scripts.length, handlers: all.filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length,
    fold: d.querySelector('header .coverage')?.getBoundingClientRect().bottom ?? null,
    planned: d.querySelectorAll('table.plan tbody tr')[1]?.getBoundingClientRect().bottom ?? null,
    bars: [...d.querySelectorAll('svg.chart rect.f')].filter(e => e.getBoundingClientRect().width > 0).length}});
}};</script>"""


@pytest.fixture
def probe(tmp_path: Path, chromium: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    def look(content: str, width: int, paper: bool = False) -> dict[str, Any]:
        page, frame = tmp_path / "page.html", tmp_path / "frame.html"
        page.write_text(content, encoding="utf-8")
        frame.write_text(PROBE.format(width=width, src=page.as_uri(), print=json.dumps(paper)), encoding="utf-8")
        dom = chromium(frame, "--window-size=1400,1000", "--dump-dom").stdout
        found: dict[str, Any] = json.loads(html.unescape(dom.partition('<pre id="o">')[2].partition("</pre>")[0]))
        return found

    return look


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize(
    ("name", "lang"),
    [
        ("training", "en"),
        ("training", "zh"),
        ("hostile", "en"),
        ("many_ranks", "zh"),
        ("of_roles", "en"),
        ("marked", "zh"),
    ],
)
def test_the_page_fits_and_nothing_runs(probe: Callable[..., Any], name: str, lang: str, width: int) -> None:
    seen = probe(HtmlRenderer().render(getattr(report_fixtures, name)(), lang), width)
    assert seen["wide"] == []
    assert seen["width"] <= seen["inside"]
    assert "hacked" not in seen["title"] and "ms" in seen["title"]
    assert seen["scripts"] == seen["handlers"] == 0
    assert seen["bars"] > 5


PAPER = 680
"""Pixels between the margins of a sheet of A4: 180 mm at 96 to the inch."""


@pytest.mark.parametrize(("width", "paper"), [(700, False), (400, False), (PAPER, True)])
@pytest.mark.parametrize(("name", "lang"), [("training", "en"), ("training", "zh"), ("hostile", "en")])
def test_no_evidence_is_cut_off(probe: Callable[..., Any], name: str, lang: str, width: int, paper: bool) -> None:
    seen = probe(HtmlRenderer().render(getattr(report_fixtures, name)(), lang), width, paper)
    assert seen["cut"] == []
    if paper:  # a sheet that is too narrow is printed smaller as a whole, text and all
        assert seen["width"] <= seen["inside"]


@pytest.mark.parametrize(("style", "paper"), [("", False), ("@media print { .scroll { overflow: visible } }", True)])
def test_the_probe_notices_evidence_that_is_cut_off(probe: Callable[..., Any], style: str, paper: bool) -> None:
    table = "<div class='evidence'><div class='scroll'><table style='width:900px'><tr><td>x</table></div></div>"
    sheet = f"<style>body {{ margin: 0 }} .scroll {{ overflow: {'auto' if paper else 'hidden'} }} {style}</style>"
    assert len(probe(f"<!doctype html>{sheet}{table}", 400, paper)["cut"]) == 1
    scrolls = sheet.replace("hidden", "auto")
    assert probe(f"<!doctype html>{scrolls}{table}", 400)["cut"] == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_first_screen_holds_verdict_bars_and_the_first_changes(probe: Callable[..., Any], lang: str) -> None:
    seen = probe(HtmlRenderer().render(report_fixtures.training(), lang), 1280)
    assert seen["planned"] <= 800 < seen["fold"]
    nothing = probe(HtmlRenderer().render(report_fixtures.nothing_found(), lang), 1280)
    assert nothing["planned"] is None


def test_the_probe_would_notice(probe: Callable[..., Any]) -> None:
    seen = probe("<title>x</title><div style='width:3000px'>x</div><script>document.title='hacked'</script>", 400)
    assert seen["title"] == "hacked" and seen["scripts"] == 1
    assert seen["wide"] and seen["width"] > seen["inside"]


def complaints(log: str) -> list[str]:
    return [line for line in log.splitlines() if "CONSOLE" in line]


def test_the_console_stays_silent_and_a_picture_is_taken(tmp_path: Path, chromium: Callable[..., Any]) -> None:
    page, picture = tmp_path / "report.html", tmp_path / "report.png"
    page.write_text(HtmlRenderer().render(report_fixtures.hostile(), "en"), encoding="utf-8")
    run = chromium(page, "--window-size=1280,800", f"--screenshot={picture}")
    assert complaints(run.stderr) == []
    data = picture.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (1280, 800)
    assert len(data) > 50_000

    page.write_text("<script>console.error('heard')</script>", encoding="utf-8")
    assert complaints(chromium(page, f"--screenshot={picture}").stderr)


def test_the_policy_stops_what_escaping_might_miss(probe: Callable[..., Any]) -> None:
    """The second line of defence: a script that did get in does not run."""
    page = HtmlRenderer().render(report_fixtures.training(), "en").replace("<body>", f"<body>{report_fixtures.SCRIPT}")
    seen = probe(page, 1280)
    assert seen["scripts"] == 1
    assert "hacked" not in seen["title"]
