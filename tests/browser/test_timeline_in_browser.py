"""timeline.html in a real browser: its script runs under its own policy, and can be used by keys alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reports.timeline.page import TimelineRenderer
from tests import report_fixtures
from tests.browser.devtools import Browser
from tests.reports.timeline.timelines import FILES, with_timeline

# Opens the page at a finding in a frame, presses keys, searches, and says what it then says and shows.
FRAME = """<!doctype html><meta charset="utf-8">
<iframe id="f" style="width:{width}px;height:900px;border:0" src="{src}#{number}"></iframe>"""
PROBE = """(async () => {{
  const w = document.getElementById('f').contentWindow, d = w.document, board = d.getElementById('board');
  const text = id => d.getElementById(id).textContent, picture = () => d.getElementById('lanes').toDataURL();
  const press = (target, key) => target.dispatchEvent(new w.KeyboardEvent('keydown', {{key, bubbles: true}}));
  const wait = () => new Promise(done => setTimeout(done, 100));
  for (let i = 0; i < 300 && !text('told'); i++) await wait();
  w.requestAnimationFrame = act => w.setTimeout(act, 0);  // without a screen frames come late or never
  const seen = {{told: text('told'), count: text('count'), title: d.title, scroll: d.documentElement.scrollWidth,
    inside: d.documentElement.clientWidth,
    current: [...d.querySelectorAll('[aria-current]')].map(e => e.dataset.number)}};
  const pictures = [picture()];
  press(board, 'n'); await wait();
  seen.next = text('count');
  for (const key of ['+', 'ArrowRight', '0']) {{ press(board, key); await wait(); pictures.push(picture()); }}
  seen.different = new Set(pictures).size;
  press(board, 'Escape'); await wait();
  seen.let_go = [text('told'), text('count'), w.location.hash];
  press(board, 'ArrowDown'); press(board, 'ArrowDown'); await wait();
  seen.below = text('told');
  const search = d.getElementById('search');
  search.value = {words}; search.dispatchEvent(new w.Event('input')); await wait();
  press(search, 'Enter'); await wait();
  seen.found = [text('count'), text('told')];
  search.value = 'no such name'; search.dispatchEvent(new w.Event('input')); await wait();
  seen.nothing = text('count');
  w.location.hash = '#{other}'; await wait();
  seen.other = text('told');
  return seen;
}})()"""


@pytest.mark.parametrize(("lang", "width"), [("en", 1280), ("zh", 400)])
def test_it_can_be_used_by_keys_alone(tmp_path: Path, browser: Browser, lang: str, width: int) -> None:
    file, frame = tmp_path / "timeline.html", tmp_path / "frame.html"
    file.write_text(TimelineRenderer().render(with_timeline(report_fixtures.training(), FILES), lang), encoding="utf-8")
    frame.write_text(FRAME.format(width=width, src=file.as_uri(), number="F2a"), encoding="utf-8")
    with browser.page(frame, 1400, 1000) as page:
        seen = page.value(PROBE.format(other="F5a", words=json.dumps("F3a ")))
        assert page.complaints() == []
    first, second = {"en": ("1 of ", "2 of "), "zh": ("第 1 处", "第 2 处")}[lang]
    assert seen["told"].startswith("F2a ") and seen["current"] == ["F2a"] and seen["count"].startswith(first)
    assert seen["next"].startswith(second)
    assert seen["different"] == 4, "each key changes what is drawn"
    assert seen["let_go"] == ["", "", ""]
    assert "rank 0" in seen["below"]
    assert seen["found"][0].startswith(first) and seen["found"][1].startswith("F3a ")
    assert seen["nothing"] == {"en": "nothing found", "zh": "没有匹配"}[lang]
    assert seen["other"].startswith("F5a ")
    assert seen["scroll"] <= seen["inside"], "nothing hangs over the edge"


def test_a_script_that_got_in_does_not_run(tmp_path: Path, browser: Browser) -> None:
    file = tmp_path / "timeline.html"
    text = TimelineRenderer().render(with_timeline(report_fixtures.training()), "en")
    file.write_text(text.replace("<body>", f"<body>{report_fixtures.SCRIPT}"), encoding="utf-8")
    with browser.page(file) as page:
        assert "hacked" not in page.value("document.title")
        assert any("Content Security Policy" in said for said in page.complaints()), "it is told that it was stopped"
