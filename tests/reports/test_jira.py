"""The report as a Jira ticket: its size, its notation, and names that hold marks."""

from __future__ import annotations

import html
import re
from collections import Counter
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jira2markdown import convert
from markdown_it import MarkdownIt

from advisor_core.text.base import Text
from reports.jira import JiraRenderer
from reports.jira_prose import blocks, code, escape, inline
from reports.labels import one_line
from tests.reports.test_report_texts import LANGS, NAMES

ACTIVE = re.compile(r"(?<!\\)[{}\[\]|!]|(?<![A-Za-z0-9\\])[*_^~+-](?=\S)|(?<!\\):(?=[()DP])")
"""Marks that Jira would act on; a backslash before one takes its meaning."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", LANGS)
def test_it_fits_into_a_field_and_every_link_arrives(example: ModuleType, name: str, lang: str) -> None:
    text = JiraRenderer().render(getattr(example, name)(), lang)
    assert len(text.replace("\n", "\r\n")) <= 32_767
    assert text.startswith("h1. ")
    anchors = set(re.findall(r"(?<!\\)\{anchor:([^}]+)\}", text))
    for target in re.findall(r"(?<!\\)\[(?:\\.|[^\]\\\n])*\|([^\]|]+)\]", text):
        assert target.startswith("https://") or target.removeprefix("#") in anchors, target
    assert set(re.findall(r"(?<!\\)(?<!\{)\{([a-z]+)[:}]", text)) <= {"anchor", "noformat", "quote"}
    for macro in ("{noformat}", "{quote}"):
        assert text.count(macro) % 2 == 0


def test_a_reader_of_jira_sees_what_was_meant(example: ModuleType) -> None:
    """By its own grammar; half of a small report, since that takes seconds."""
    whole = JiraRenderer().render(example.nothing_found(), "zh")
    text = whole[: whole.index("\n\nh", len(whole) // 2)]
    seen = Counter(block.type for block in MarkdownIt("commonmark").enable("table").parse(convert(text)))
    lines = text.splitlines()
    tables = [line for line, above in zip(lines, ["", *lines], strict=False) if line[:1] == "|" != above[:1]]
    assert seen["heading_open"] == sum(re.match(r"h\d\. ", line) is not None for line in lines) > 3
    assert seen["table_open"] == len(tables) > 3
    assert seen["fence"] == text.count("{noformat}") // 2 > 0


@pytest.mark.parametrize("name", ["training", "hostile", "marked"])
def test_tables_keep_their_shape(example: ModuleType, name: str) -> None:
    width = 0
    for row in JiraRenderer().render(getattr(example, name)(), "en").splitlines():
        if not row.startswith("|"):
            width = 0
            continue
        if row.startswith("||"):
            width = row.count("||") - 1
            continue
        outside = re.sub(r"(?<!\\)\[(?:\\.|[^\]\\])*\]", "link", row)
        cells = len(re.findall(r"(?<!\\)\|", outside)) - 1
        width = width or cells
        assert cells == width, row


def test_the_changes_of_the_plan_are_written_out_first(example: ModuleType) -> None:
    result = example.launch_blocking()
    text = JiraRenderer().render(result, "en")
    assert result.plan is not None
    first = result.plan.actions[0].problem
    assert re.search(rf"^h[34]\. \{{anchor:[^}}]+\}}{first} ", text, re.MULTILINE)
    assert "{{ASCEND_LAUNCH_BLOCKING=1}}" in text


def test_problems_come_before_what_stands_behind_them(example: ModuleType) -> None:
    """Rules that cannot answer for long reasons, each another, are no reason to leave problems out."""
    result = example.two_of_four()
    text = Text(en="x " * 900, zh="无 " * 900)
    unknown = [
        rule.model_copy(update={"state": "cannot_answer", "reason": Text(en=f"{rule.rule} {text.en}", zh=text.zh)})
        for rule in result.rules
    ]
    told = JiraRenderer().render(result.model_copy(update={"rules": unknown}), "en")
    assert "for want of room: Every rule and its state" in told
    assert len(told) > 10_000 and "{anchor:rules}" not in told and "{anchor:ledger}" in told
    assert {problem.number for problem in result.problems} == set(
        re.findall(r"^h[34]\. \S+\}(F\w+)", told, re.MULTILINE)
    )


def test_rules_without_an_answer_stand_together_by_reason(example: ModuleType) -> None:
    result = example.two_of_four()
    rules = [rule for rule in result.rules if rule.only_for is None][:6]
    why = [Text(en="no stacks", zh="无"), Text(en="no shapes", zh="无")]
    unknown = [
        rule.model_copy(update={"state": "cannot_answer", "reason": why[number % 2], "collect": None, "ranks": {}})
        for number, rule in enumerate(rules)
    ]
    text = JiraRenderer().render(result.model_copy(update={"rules": unknown}), "en")
    for number, reason in enumerate(why):
        ids = " ".join(f"{{{{{rule}}}}}" for rule in sorted(rule.rule for rule in rules[number::2]))
        assert f"|{ids}|{reason.en}|\n" in text


@given(st.text(alphabet=st.sampled_from("ab *_{}[]|!?+-~^#\\&;:()/\n.h1x中@<"), max_size=40))
def test_escaped_text_reads_the_same_and_does_nothing(text: str) -> None:
    said = escape(text)
    assert not ACTIVE.search(said)
    assert html.unescape(re.sub(r"\\(?=[^A-Za-z0-9])", "", said)) == one_line(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("torch_npu.npu_fusion(*args)", "torch_npu.npu_fusion(\\*args)"),
        ("_x_ -y- h1.", "\\_x\\_ \\-y\\- h1."),
        ("h1. x", "h1\\. x"),
        ("C:\\data", "C:&#92;data"),
        ("(x) :) https://a", "\\(x) \\:) https:\\/\\/a"),
        ("!a.png! [~bob] {color:red}", "\\!a.png\\! \\[\\~bob\\] \\{color:red\\}"),
    ],
)
def test_marks(text: str, said: str) -> None:
    assert escape(text) == said


def test_prose_of_rules() -> None:
    assert (
        inline("use `a|b` and **x** of [y](https://z.example/a b)")
        == "use {{a\\|b}} and *x* of \\[y\\](https:\\/\\/z.example/a b)"
    )
    assert inline("see [y](https://z.example/a)") == "see [y|https://z.example/a]"
    told = blocks("One:\n\n- a\n  1. b\n- c\n\n```\nx = {noformat}\n```\n")
    assert told == ["One:", "", "* a", "*# b", "* c", "", "{noformat}", "x = { noformat}", "{noformat}", ""]
    assert code("") == "–"
