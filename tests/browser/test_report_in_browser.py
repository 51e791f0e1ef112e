"""The report in a real browser: it lays out at both widths, nothing overflows, nothing runs, nothing complains.

Each check is first shown to notice what it looks for on a page that has it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from reports.html import HtmlRenderer
from tests import report_fixtures
from tests.browser.devtools import Browser, Page

# What a page became in a window of this width.
PROBE = """(() => {{
  const d = document, all = [...d.querySelectorAll('*')];
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
  return {{
    title: d.title, width: d.documentElement.scrollWidth, inside: d.documentElement.clientWidth,
    wide: all.filter(e => !clipped(e) && e.getBoundingClientRect().right > {width} + 1)
             .map(e => e.outerHTML.slice(0, 80)),
    cut: [...d.querySelectorAll('.evidence table, .evidence .stack, .caption')].filter(cut)
            .map(e => e.outerHTML.slice(0, 80)),
    scripts: d.scripts.length, handlers: all.filter(e => [...e.attributes].some(a => a.name.startsWith('on'))).length,
    fold: d.querySelector('header .coverage')?.getBoundingClientRect().bottom ?? null,
    planned: d.querySelectorAll('table.plan tbody tr')[1]?.getBoundingClientRect().bottom ?? null,
    bars: [...d.querySelectorAll('svg.chart rect.f')].filter(e => e.getBoundingClientRect().width > 0).length}};
}})()"""


HEIGHT = 900
PAPER = 680
"""Pixels between the margins of a sheet of A4: 180 mm at 96 to the inch."""


def seen(page: Page, width: int, paper: bool = False) -> dict[str, Any]:
    """The measures of a page in a window of this width. ``paper``: as it is printed, which it stays."""
    page.resize(width, HEIGHT)
    return dict(page.value(PROBE.format(width=width, print=json.dumps(paper))))


@pytest.fixture
def probe(tmp_path: Path, browser: Browser) -> Callable[..., dict[str, Any]]:
    def look(content: str, width: int, paper: bool = False) -> dict[str, Any]:
        file = tmp_path / "page.html"
        file.write_text(content, encoding="utf-8")
        with browser.page(file, width, HEIGHT) as page:
            return seen(page, width, paper)

    return look


@cache
def report(name: str, lang: str) -> str:
    return HtmlRenderer().render(getattr(report_fixtures, name)(), lang)


@pytest.mark.parametrize(
    ("name", "lang"),
    [
        ("training", "en"),
        pytest.param("training", "zh", marks=pytest.mark.search),
        ("hostile", "en"),
        ("many_ranks", "zh"),
        pytest.param("of_roles", "en", marks=pytest.mark.search),
        pytest.param("marked", "zh", marks=pytest.mark.search),
    ],
)
def test_the_page_fits_nothing_runs_and_no_evidence_is_cut_off(
    tmp_path: Path, browser: Browser, name: str, lang: str
) -> None:
    file = tmp_path / "page.html"
    file.write_text(report(name, lang), encoding="utf-8")
    with browser.page(file) as page:
        for width in (1280, 700, 400):
            found = seen(page, width)
            assert found["wide"] == found["cut"] == [], width
            assert found["width"] <= found["inside"], width
            assert "hacked" not in found["title"] and "ms" in found["title"]
            assert found["scripts"] == found["handlers"] == 0
            assert found["bars"] > 5
        printed = seen(page, PAPER, paper=True)
        assert printed["cut"] == []
        assert printed["width"] <= printed["inside"], "it is printed smaller as a whole, text and all"


@pytest.mark.parametrize(("style", "paper"), [("", False), ("@media print { .scroll { overflow: visible } }", True)])
def test_the_probe_notices_evidence_that_is_cut_off(probe: Callable[..., Any], style: str, paper: bool) -> None:
    table = "<div class='evidence'><div class='scroll'><table style='width:900px'><tr><td>x</table></div></div>"
    sheet = f"<style>body {{ margin: 0 }} .scroll {{ overflow: {'auto' if paper else 'hidden'} }} {style}</style>"
    assert len(probe(f"<!doctype html>{sheet}{table}", 400, paper)["cut"]) == 1
    scrolls = sheet.replace("hidden", "auto")
    assert probe(f"<!doctype html>{scrolls}{table}", 400)["cut"] == []


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_first_screen_holds_verdict_bars_and_the_first_changes(probe: Callable[..., Any], lang: str) -> None:
    found = probe(report("training", lang), 1280)
    assert found["planned"] <= HEIGHT < found["fold"], "the first two changes are seen without scrolling"
    nothing = probe(report("nothing_found", lang), 1280)
    assert nothing["planned"] is None


def test_the_probe_would_notice(probe: Callable[..., Any]) -> None:
    found = probe("<title>x</title><div style='width:3000px'>x</div><script>document.title='hacked'</script>", 400)
    assert found["title"] == "hacked" and found["scripts"] == 1
    assert found["wide"] and found["width"] > found["inside"]


def test_the_console_stays_silent_and_a_picture_is_taken(tmp_path: Path, browser: Browser) -> None:
    file = tmp_path / "report.html"
    file.write_text(report("hostile", "en"), encoding="utf-8")
    with browser.page(file, 1280, 800) as page:
        assert page.complaints() == []
        data = page.picture()
    assert struct.unpack(">II", data[16:24]) == (1280, 800)
    assert len(data) > 50_000

    file.write_text("<script>console.error('heard')</script>", encoding="utf-8")
    with browser.page(file) as page:
        assert page.complaints() == ["heard"]


def test_the_policy_stops_what_escaping_might_miss(probe: Callable[..., Any]) -> None:
    """The second line of defence: a script that did get in does not run."""
    page = report("training", "en").replace("<body>", f"<body>{report_fixtures.SCRIPT}")
    found = probe(page, 1280)
    assert found["scripts"] == 1
    assert "hacked" not in found["title"]
