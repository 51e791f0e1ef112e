"""A plan by a replay that does not explain the recording: ranges, and no single numbers."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from advisor_core.result.run import RunResult
from reports.html import HtmlRenderer
from reports.markdown import MarkdownRenderer
from reports.sections.plan import TRUSTED_ERROR
from reports.terminal import summary


def with_error(example: ModuleType, error: float) -> RunResult:
    result: RunResult = example.training()
    assert result.model is not None and result.plan is not None and len(result.plan.actions) > 4
    model = result.model.model_copy(update={"error_share_by_rank": {0: 0.01, 1: error}})
    return result.model_copy(update={"model": model})


def plan_of(text: str) -> str:
    return text[text.index("## What to do") : text.index("What the end of a step waits for")]


def test_below_the_limit_each_change_has_its_number(example: ModuleType) -> None:
    told = plan_of(MarkdownRenderer().render(with_error(example, TRUSTED_ERROR), "en"))
    assert "in place of" in told and "misses" not in told
    assert re.search(r"\| \*\*[\d.]+ [mµ]s\*\* \|", told)


def test_above_it_only_ranges_are_told(example: ModuleType) -> None:
    result = with_error(example, 0.08)
    told = plan_of(MarkdownRenderer().render(result, "en"))
    assert "misses 8.0 % of the recorded time, more than 5.0 %" in told and "less" not in told.split("\n\n")[1]
    rows = [row for row in told.splitlines() if row.startswith("| [F")]
    assert rows
    for row in rows:
        *_, wins, then, alone, last = (cell.strip() for cell in row.strip("| ").split(" | "))
        assert {wins, then, last} == {"–"}
        assert re.fullmatch(r"[\d.]+ \S+( to [\d.]+ \S+)?", alone), alone
    assert "win " not in told.split("<summary>", 1)[1].split("</summary>")[0]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_page_and_terminal_say_the_same(example: ModuleType, lang: str) -> None:
    result = with_error(example, 0.08)
    page, told = HtmlRenderer().render(result, lang), summary(result, lang, [])
    assert result.plan is not None
    first = result.plan.actions[0]
    assert f"{first.problem} −" not in told
    assert ("重放与所记录的时间相差" if lang == "zh" else "The replay misses") in page
