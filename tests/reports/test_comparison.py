"""Comparisons of the kept results, in every format and language: complete, inert, and the same numbers."""

from __future__ import annotations

import dataclasses
import json
import re
from itertools import product
from types import ModuleType

import pytest

from advisor_core.compare.compare import compare_all
from advisor_core.result.comparison import ComparisonResult
from advisor_core.result.run import RunResult
from reports import markdown
from reports.comparison.document import document
from reports.comparison.terminal import summary
from reports.html import HtmlRenderer
from reports.json_file import JsonRenderer
from reports.labels import Labels
from reports.markdown import TICKET, MarkdownRenderer
from tests.reports.test_report_html import Page
from tests.reports.test_report_texts import FOLD, parse

PAIRS = (
    ("training", "two_of_four"), ("training", "training"), ("nothing_found", "launch_blocking"),
    ("hostile", "training"), ("training", "hostile"), ("many_ranks", "training"), ("of_roles", "of_roles"),
    ("marked", "marked"),
)  # fmt: skip


@pytest.fixture(params=PAIRS, ids="-".join)
def told(request: pytest.FixtureRequest, example: ModuleType) -> ComparisonResult:
    return compare_all([*request.param], [getattr(example, name)() for name in request.param])


@pytest.fixture
def slower(example: ModuleType) -> ComparisonResult:
    """A result and the same with each entry half as long again."""
    before: RunResult = example.training()
    means = [
        step.model_copy(
            update={
                "wall_ns": sum(entry.ns * 3 // 2 for entry in step.entries),
                "entries": [entry.model_copy(update={"ns": entry.ns * 3 // 2}) for entry in step.entries],
            }
        )
        for step in before.ledger
    ]
    return compare_all(["before", "after"], [before, example.recomposed(before.model_copy(update={"ledger": means}))])


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_pages_are_valid_and_links_lead_somewhere(told: ComparisonResult, lang: str) -> None:
    html = HtmlRenderer().render_comparison(told, lang)
    page = Page(html)
    assert not page.open and len(page.ids) == len({*page.ids})
    targets = {str(attrs["href"])[1:] for tag, attrs in page.tags if tag == "a" and str(attrs["href"]).startswith("#")}
    assert targets <= {*page.ids}
    assert not {tag for tag, _ in page.tags} & {"script", "img", "iframe", "object"}
    assert "None" not in page.text and "{" not in page.text.replace("{}", "")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_markdown_is_inert(told: ComparisonResult, lang: str) -> None:
    tokens = parse(MarkdownRenderer().render_comparison(told, lang))
    assert not {kind for kind, _, _ in tokens} & {"html_inline", "image"}
    assert all(FOLD.fullmatch(content) for kind, content, _ in tokens if kind == "html_block")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_summary_is_short_and_plain(told: ComparisonResult, lang: str) -> None:
    lines = summary(told, lang, ["out/compare.html"]).split("\n")
    assert len(lines) <= 40 and all(line.isprintable() for line in lines)
    assert "out/compare.html" in lines[-1]


def test_a_long_comparison_says_which_sections_have_no_room(told: ComparisonResult) -> None:
    labels = Labels("en", told.labels)
    page = document(told, labels)
    whole = MarkdownRenderer().render_comparison(told, "en")
    small = dataclasses.replace(TICKET, characters=len(whole) - 1)
    fitted = small.fit(page, labels, lambda shorter: markdown.text(shorter, labels))
    assert len(fitted) <= small.characters and fitted.rstrip().split("\n")[-1].startswith("Not shown here")
    assert f"## {page.sections[-1].title}" in whole and f"## {page.sections[-1].title}" not in fitted


def test_json_holds_everything(told: ComparisonResult) -> None:
    written = JsonRenderer().render_comparison(told, "en")
    assert ComparisonResult.model_validate(json.loads(written)) == told


def test_several_runs_have_ids_of_their_own(example: ModuleType) -> None:
    names = ("training", "two_of_four", "nothing_found")
    told = compare_all([*names], [getattr(example, name)() for name in names])
    for lang, renderer in product(("en", "zh"), (HtmlRenderer(), MarkdownRenderer())):
        assert all(name in renderer.render_comparison(told, lang) for name in names)
    ids = Page(HtmlRenderer().render_comparison(told, "en")).ids
    assert len(ids) == len({*ids}) and {"run-1", "run-2"} <= {*ids}


def test_every_part_of_the_waterfall_is_drawn_and_written(slower: ComparisonResult) -> None:
    (one,) = slower.comparisons
    assert one.verdict.difference_ns > 0 and one.causes
    page = Page(HtmlRenderer().render_comparison(slower, "en"))
    text = MarkdownRenderer().render_comparison(slower, "en")
    block = re.search(r"```text\n(Before .*?)```", text[text.index("## What the difference") :], re.DOTALL)
    assert block is not None and len(block.group(1).strip().split("\n")) == len(one.causes) + 2 + bool(one.rest_ns)
    bars = [attrs for tag, attrs in page.tags if tag == "rect" and attrs.get("class") == "f f-total"]
    assert len(bars) == 2
