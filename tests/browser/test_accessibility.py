"""Reports can be read by everybody: axe-core finds nothing to complain of, in light and dark, on wide and narrow pages.

$AXE is the path of axe.min.js; `make test` fetches it where that is possible.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor_core.compare.compare import compare_all
from reports.html import HtmlRenderer
from reports.timeline.page import TimelineRenderer
from tests import report_fixtures
from tests.reports.timeline.timelines import FILES, with_timeline

AXE = os.environ.get("AXE")
pytestmark = pytest.mark.skipif(not AXE, reason="no axe-core: set AXE to the path of axe.min.js")

JUDGE = """<script>{axe}</script><script>
addEventListener("load", async () => {{
  const found = await axe.run(document, {{resultTypes: ["violations"]}});
  const told = found.violations.map(one => [one.id, ...one.nodes.slice(0, 2).map(node => node.html.slice(0, 120))]);
  document.body.innerHTML = "";
  document.body.append(Object.assign(document.createElement("pre"), {{id: "o", textContent: JSON.stringify(told)}}));
}});</script>"""

Judge = Callable[..., list[list[str]]]

DARK = "--blink-settings=preferredColorScheme=0"
NARROW = "--window-size=400,900"


@pytest.fixture
def judged(tmp_path: Path, chromium: Callable[..., subprocess.CompletedProcess[str]]) -> Judge:
    """The violations on a page whose folded parts are open: rules of axe-core with the first elements."""
    script = Path(str(AXE)).read_text(encoding="utf-8").replace("</script>", "<\\/script>")

    def judge(page: str, *flags: str) -> list[list[str]]:
        free = re.sub(r"<meta[^>]*Content-Security-Policy[^>]*>", "", page, flags=re.IGNORECASE)
        copy = tmp_path / "page.html"
        copy.write_text(free.replace("<details", "<details open") + JUDGE.format(axe=script), encoding="utf-8")
        dom = chromium(copy, "--dump-dom", "--virtual-time-budget=60000", *flags).stdout
        found: list[list[str]] = json.loads(html.unescape(dom.partition('<pre id="o">')[2].partition("</pre>")[0]))
        return found

    return judge


@pytest.mark.parametrize(("lang", "flags"), [("en", ()), ("zh", (DARK,)), ("en", (NARROW,))])
@pytest.mark.parametrize("name", ["training", "of_roles"])
def test_a_report_has_no_violation(judged: Judge, name: str, lang: str, flags: tuple[str, ...]) -> None:
    assert judged(HtmlRenderer().render(getattr(report_fixtures, name)(), lang), *flags) == []


@pytest.mark.parametrize(("lang", "flags"), [("en", ()), ("zh", (DARK,)), ("en", (NARROW,))])
def test_a_timeline_has_no_violation(judged: Judge, lang: str, flags: tuple[str, ...]) -> None:
    page = TimelineRenderer().render(with_timeline(report_fixtures.training(), FILES), lang)
    assert judged(page, *flags) == []


def test_a_comparison_has_no_violation(judged: Judge) -> None:
    told = compare_all(["before", "after"], [report_fixtures.training(), report_fixtures.two_of_four()])
    assert judged(HtmlRenderer().render_comparison(told, "en")) == []


def test_the_judge_notices(judged: Judge) -> None:
    page = "<!doctype html><title>x</title><p style='color:#ccc'>faint</p><img src='x.png'>"
    assert {"color-contrast", "image-alt", "html-has-lang"} <= {rule for rule, *_ in judged(page)}
