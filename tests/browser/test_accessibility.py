"""Reports can be read by everybody: axe-core finds nothing to complain of, in light and dark, on wide and narrow pages.

$AXE is the path of axe.min.js; `make test` fetches it where that is possible.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor_core.compare.compare import compare_all
from reports.html import HtmlRenderer
from reports.timeline.page import TimelineRenderer
from tests import report_fixtures
from tests.browser.devtools import Browser
from tests.reports.timeline.timelines import FILES, with_timeline

AXE = os.environ.get("AXE")
pytestmark = pytest.mark.skipif(not AXE, reason="no axe-core: set AXE to the path of axe.min.js")

JUDGE = """axe.run(document, {resultTypes: ["violations"]}).then(found =>
  found.violations.map(one => [one.id, ...one.nodes.slice(0, 2).map(node => node.html.slice(0, 120))]))"""

Judge = Callable[..., list[list[str]]]

LIGHT: dict[str, Any] = {}
DARK = {"dark": True}
NARROW = {"width": 400, "height": 900}


@pytest.fixture
def judged(tmp_path: Path, browser: Browser) -> Judge:
    """The violations on a page whose folded parts are open: rules of axe-core with the first elements."""
    script = Path(str(AXE)).read_text(encoding="utf-8")

    def judge(page: str, **shown: Any) -> list[list[str]]:
        copy = tmp_path / "page.html"
        copy.write_text(page.replace("<details", "<details open"), encoding="utf-8")
        with browser.page(copy, **shown) as opened:
            opened.value(script)
            found: list[list[str]] = opened.value(JUDGE)
        return found

    return judge


# They share blocks and style, and a look at a large one takes many seconds: each view is looked at once, dark and
# narrow on smaller ones.
@pytest.mark.parametrize(
    ("name", "lang", "shown"),
    [
        ("launch_blocking", "zh", DARK),
        pytest.param("of_roles", "en", LIGHT, marks=pytest.mark.search),
        ("nothing_found", "en", NARROW),
        pytest.param("two_of_four", "en", NARROW, marks=pytest.mark.search),
        pytest.param("training", "zh", DARK, marks=pytest.mark.search),
        pytest.param("training", "en", NARROW, marks=pytest.mark.search),
    ],
)
def test_a_report_has_no_violation(judged: Judge, name: str, lang: str, shown: dict[str, Any]) -> None:
    assert judged(HtmlRenderer().render(getattr(report_fixtures, name)(), lang), **shown) == []


@pytest.mark.parametrize(
    ("lang", "shown"), [("en", LIGHT), ("zh", DARK), pytest.param("en", NARROW, marks=pytest.mark.search)]
)
def test_a_timeline_has_no_violation(judged: Judge, lang: str, shown: dict[str, Any]) -> None:
    page = TimelineRenderer().render(with_timeline(report_fixtures.training(), FILES), lang)
    assert judged(page, **shown) == []


def test_a_comparison_has_no_violation(judged: Judge) -> None:
    told = compare_all(["before", "after"], [report_fixtures.training(), report_fixtures.two_of_four()])
    assert judged(HtmlRenderer().render_comparison(told, "en")) == []


def test_the_judge_notices(judged: Judge) -> None:
    page = "<!doctype html><title>x</title><p style='color:#ccc'>faint</p><img src='x.png'>"
    assert {"color-contrast", "image-alt", "html-has-lang"} <= {rule for rule, *_ in judged(page)}
