"""Markdown, JSON and terminal: the same content, inert, deterministic; and Markdown from strangers made safe."""

from __future__ import annotations

import dataclasses
import json
import re
from types import ModuleType
from typing import Any

import pytest
from markdown_it import MarkdownIt

from advisor_core.contracts.registry import Registry, Renderer
from advisor_core.result.evidence import Evidence
from advisor_core.result.run import RunResult
from advisor_core.text.base import Text
from reports import advisor_register_renderers, markdown, prose
from reports.html import HtmlRenderer
from reports.jira import JiraRenderer
from reports.json_file import JsonRenderer
from reports.labels import Labels, catalogue
from reports.machine.junit import JunitRenderer
from reports.machine.lines import GithubRenderer, GitlabRenderer, LinesRenderer
from reports.machine.sarif import SarifRenderer
from reports.markdown import TICKET, MarkdownRenderer
from reports.on_demand import Github, Gitlab, Html, Jira, Junit, Lines, Markdown, Sarif, Timeline, Trace
from reports.outline import STATE_ORDER, Outline
from reports.sections.plan import summary as plan_summary
from reports.terminal import summary
from reports.timeline.page import TimelineRenderer
from reports.timeline.trace import TraceRenderer

NAMES = (
    "training", "two_of_four", "launch_blocking", "hostile", "hostile_roles", "nothing_found", "empty", "many_ranks",
    "many_findings", "of_roles", "marked",
)  # fmt: skip
LANGS = ("en", "zh")
FOLD = re.compile(r"<details>\n<summary>[^<>\n]+</summary>\n?|</details>\n?")
"""The only HTML of a report for tickets: what folds, without attributes."""


def parse(text: str) -> list[tuple[str, str, str]]:
    """Every token of a document as type, content, target; parsed as a ticket system would, with HTML allowed."""
    found = []
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        found.append((token.type, token.content, ""))
        for child in token.children or []:
            target = str(child.attrs.get("href") or child.attrs.get("src") or "")
            found.append((child.type, child.content, target))
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", LANGS)
def test_markdown_has_no_html_no_image_and_resolving_links(example: ModuleType, name: str, lang: str) -> None:
    text = MarkdownRenderer().render(getattr(example, name)(), lang)
    tokens = parse(text)
    assert not {"html_inline", "image"} & {kind for kind, _, _ in tokens}
    blocks = [content for kind, content, _ in tokens if kind == "html_block"]
    assert [content for content in blocks if not FOLD.fullmatch(content)] == []
    assert sum(content.startswith("</") for content in blocks) * 2 == len(blocks)
    headings = set()
    for number, (kind, _, _) in enumerate(tokens):
        if kind == "heading_open":
            title = tokens[number + 1][1].lower()
            headings.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    for kind, _, target in tokens:
        if kind == "link_open":
            if target.startswith("#"):
                from urllib.parse import unquote

                assert unquote(target)[1:] in headings, target
            else:
                assert target.startswith("https://"), target


@pytest.mark.parametrize("name", NAMES)
def test_markdown_fits_into_a_ticket(example: ModuleType, name: str) -> None:
    assert len(MarkdownRenderer().render(getattr(example, name)(), "en")) < 65_536


def test_markdown_writes_out_as_many_findings_as_fit(example: ModuleType) -> None:
    """Also those of a large tree whose root alone fits, in the order of the plan."""
    result = example.launch_blocking()
    text = MarkdownRenderer().render(result, "en")
    assert len(text) > 55_000 and result.plan is not None
    written = re.findall(r"^####? (F\w+)$", text, re.MULTILINE)
    assert {action.problem for action in result.plan.actions[:4]} <= set(written) and len(written) >= 8
    whole = MarkdownRenderer().render(example.two_of_four(), "en")
    assert len(re.findall(r"^####? F\w+$", whole, re.MULTILINE)) == len(example.two_of_four().problems)


@pytest.mark.parametrize("characters", [500, 3_000, 12_000])
def test_a_small_ticket_is_filled_and_never_spilled(example: ModuleType, characters: int) -> None:
    labels, outline = Labels("en"), Outline(example.hostile())
    small = dataclasses.replace(TICKET, characters=characters)
    filled = small.fill(outline, labels, lambda page: markdown.text(page, labels), lambda card: "x" * 4_000)
    assert characters * 0.3 < len(filled) <= characters


def test_markdown_tables_keep_their_shape(example: ModuleType) -> None:
    for name in NAMES:
        lines = MarkdownRenderer().render(getattr(example, name)(), "en").splitlines()
        width = 0
        for line in lines:
            if not line.startswith("|"):
                width = 0
                continue
            cells = len(re.findall(r"(?<!\\)\|", line))
            width = width or cells
            assert cells == width, line
            assert line.endswith("|")


def test_markdown_says_what_the_page_says(example: ModuleType) -> None:
    result = example.every_state()
    text = MarkdownRenderer().render(result, "en")
    for finding in result.findings:
        assert f"`{finding.fingerprint}`" in text
        assert finding.title.en.replace("`", "") in text
    for state in STATE_ORDER:
        assert catalogue()[f"state.{state}"]["en"] in text
    for said in ("](#f2)", "### F2\n", "unknown: this profile"):
        assert said in text, said
    assert "#### F1a\n" in MarkdownRenderer().render(example.two_of_four(), "en")
    assert "`ASCEND_LAUNCH_BLOCKING=1`" in MarkdownRenderer().render(example.launch_blocking(), "en")
    assert "not a clean bill of health" in MarkdownRenderer().render(example.nothing_found(), "en")


def test_markdown_mentions_and_automatic_links_are_inert(example: ModuleType) -> None:
    text = MarkdownRenderer().render(example.hostile(), "en")
    outside = re.sub(r"(?<!\\)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    outside = re.sub(r"^( *)(```+).*?^\1\2$", "", outside, flags=re.MULTILINE | re.DOTALL)
    assert "evil.example" in outside
    assert not re.search(r"(?<!\\)https?://(?!www\.hiascend)", re.sub(r"\]\(<[^>]*>\)", "", outside))
    assert not re.search(r"@everyone", outside)
    assert "\x1b" not in text and "\u202e" not in text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", LANGS)
def test_terminal_summary_is_short_and_plain(example: ModuleType, name: str, lang: str) -> None:
    text = summary(getattr(example, name)(), lang, ["advisor-report/report.html"])
    assert len(text.splitlines()) <= 20
    assert "advisor-report/report.html" in text
    assert all(char.isprintable() or char == "\n" for char in text)


def test_terminal_summary_says_what_matters(example: ModuleType) -> None:
    text = summary(example.two_of_four(), "en", [])
    for said in (
        "44.7 % of the step is communication",
        "waiting for rank 2",
        "Cause: Rank 2 holds up the job",
        "1 cannot be answered",
    ):
        assert said in text, said
    assert "ASCEND_LAUNCH_BLOCKING=1" in summary(example.launch_blocking(), "en", [])


@pytest.mark.parametrize("name", NAMES)
def test_json_is_the_whole_result(example: ModuleType, name: str) -> None:
    result = getattr(example, name)()
    text = JsonRenderer().render(result, "en")
    assert text == JsonRenderer().render(result, "zh")
    data = json.loads(text)
    assert type(result).model_validate(data) == result
    assert list(data) == [name for name in type(result).model_fields if name != "timeline"]
    text.encode("utf-8")


def test_json_leaves_out_timings_and_what_json_cannot_say(example: ModuleType) -> None:
    base = example.training()
    observed = {"nan": float("nan"), "infinite": float("inf"), "half": "half \ud800"}
    finding = base.findings[0].model_copy(update={"observation": observed})
    text = JsonRenderer(timings=False).render(base.model_copy(update={"findings": [finding]}), "en")
    data = json.loads(text, parse_constant=pytest.fail)
    assert "timings" not in data
    assert list(data["findings"][0]["observation"].values()) == [None, None, "half ?"]
    text.encode("utf-8")


def test_the_plugin_adds_a_report_and_formats_for_programs() -> None:
    registry: Registry[Renderer] = Registry("renderer")
    advisor_register_renderers(registry)
    files = {name: (registry[name].filename, getattr(registry[name], "on_request", False)) for name in registry}
    assert files == {
        "html": ("report.html", False),
        "md": ("report.md", False),
        "json": ("report.json", False),
        "sarif": ("report.sarif", True),
        "junit": ("report.junit.xml", True),
        "github": ("github.txt", True),
        "gitlab": ("gl-code-quality-report.json", True),
        "lines": ("findings.txt", True),
        "folded": ("stacks.folded", True),
        "jira": ("jira.txt", True),
        "trace": ("report.trace.json", True),
        "timeline": ("timeline.html", True),
    }


@pytest.mark.parametrize(
    ("standing_in", "renderer"),
    [
        (Html, HtmlRenderer),
        (Markdown, MarkdownRenderer),
        (Jira, JiraRenderer),
        (Trace, TraceRenderer),
        (Timeline, TimelineRenderer),
        (Sarif, SarifRenderer),
        (Junit, JunitRenderer),
        (Github, GithubRenderer),
        (Gitlab, GitlabRenderer),
        (Lines, LinesRenderer),
    ],
)
def test_a_renderer_that_is_imported_on_demand_lacks_nothing(standing_in: type, renderer: type) -> None:
    """A summary or a kind of page that it forgets is left out of a run without an error."""
    names, stood_in = ({name for name in dir(one) if not name.startswith("_")} for one in (renderer, standing_in))
    assert names | {"name", "filename"} == stood_in - {"on_request", "timeline", "slices"}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
        ("![x](https://e.example/x.png)", "!<a"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("[x](http://e.example)", "[x](http://e.example)"),
        ("https://e.example", "https://e.example"),
        ("`<i>`", "<code>&lt;i&gt;</code>"),
    ],
)
def test_prose_of_strangers_is_safe_html(source: str, expected: str) -> None:
    html = str(prose.html(source))
    assert expected in html
    assert "<img" not in html and 'href="javascript' not in html and 'href="http:' not in html


def test_links_in_prose_do_not_give_away_the_page() -> None:
    assert 'rel="noopener noreferrer"' in prose.html("[x](https://e.example)")


@pytest.mark.parametrize(
    "source",
    [
        "plain *em* **strong** `code`",
        "- one\n- two\n\n  more\n",
        "1. a\n2. b\n   - c",
        "> quoted\n> text",
        "```\ncode | <b>\n```",
        "a | b",
        "[link](https://e.example/a%20b)",
        "# heading\n\ntext",
        "5 < 6 & 7 > 2, x_y_z, a*b*c",
        "+ plus\n\n= equals",
    ],
)
def test_prose_rewritten_as_markdown_reads_the_same(source: str) -> None:
    parser = MarkdownIt("commonmark", {"html": True})

    def words(text: str) -> list[str]:
        tokens = parser.parse(text)
        leaves = [c for t in tokens for c in (t.children or [t])]
        return "".join(c.content if c.content else " " for c in leaves).replace("\u2060", "").split()

    once = prose.markdown(source)
    assert words(once) == words(source)
    assert prose.markdown(once) == once


@pytest.mark.parametrize("value", ["a`b", "``", "`", "a|b", "x``y`z", " lead", "end`"])
def test_code_spans_hold_any_value(value: str) -> None:
    tokens = MarkdownIt("commonmark").parseInline(prose.code_span(value))[0].children
    assert tokens is not None
    assert [(token.type, token.content) for token in tokens] == [("code_inline", value.strip())]


@pytest.mark.parametrize("renderer", [MarkdownRenderer(), HtmlRenderer(), JiraRenderer()])
def test_a_change_of_the_plan_that_holds_on_conditions_only_says_so(example: ModuleType, renderer: Any) -> None:
    """A setting that is copied from the first page must not lose its condition."""
    result = example.training()
    assert result.plan is not None
    first = result.plan.actions[0]

    def told(**conditions: Any) -> str:
        findings = [
            finding.model_copy(update={"advice": [finding.advice[0].model_copy(update=conditions)]})
            if finding.fingerprint == first.finding
            else finding
            for finding in result.findings
        ]
        text: str = renderer.render(result.model_copy(update={"findings": findings}), "en")
        return text

    mark = f"on conditions: {first.problem}"
    assert mark not in told(only_if=None, unless=None)
    assert mark in told(only_if=Text(en="the GPU is of AMD", zh="GPU 是 AMD 的"), unless=None)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_plan_tells_the_first_change_its_hazards_and_where_it_is_called(example: ModuleType, lang: str) -> None:
    """Behind what to find out, so that nobody has to look for the change itself."""
    result = with_places(example.training())
    assert result.plan is not None
    words = Labels(lang)
    text = " ".join(MarkdownRenderer().render(result, lang).split())
    rows = [row for row in text.split("| [F")[1:] if "**" in row]
    told = 0
    for action in result.plan.actions:
        (finding,) = (finding for finding in result.findings if finding.fingerprint == action.finding)
        first, *others = finding.advice
        change = next((advice for advice in others if advice.kind not in ("investigate", "collect")), None)
        row = next((row for row in rows if f"F{row}".startswith(f"{action.problem} ")), None)
        if row is None or change is None or first.kind not in ("investigate", "collect"):
            continue
        told += 1
        _, _, behind = row.partition(words(f"plan.then.{change.kind}"))
        assert behind
        assert all(words(f"plan.hazard.{hazard}") in behind for hazard in change.hazards)
        stack = next((exhibit for exhibit in finding.evidence if exhibit.kind == "stack"), None)
        assert stack is None or f"{words('plan.called')} `{stack.place}`" in behind
    assert told


def with_places(result: RunResult) -> RunResult:
    """With the outermost frame of each call stack as the place in the code that it leads to."""

    def placed(evidence: Evidence) -> Evidence:
        place = str(evidence.rows[-1]["frame"]) if evidence.kind == "stack" else ""
        return evidence.model_copy(update={"place": place})

    findings = [
        finding.model_copy(update={"evidence": [placed(evidence) for evidence in finding.evidence]})
        for finding in result.findings
    ]
    return result.model_copy(update={"findings": findings})


@pytest.mark.parametrize("lang", LANGS)
def test_the_spread_of_steps_is_named_where_several_were_recorded(example: ModuleType, lang: str) -> None:
    result = example.training()
    assert result.plan is not None
    labels = Labels.of_result(result, lang)
    told = {}
    for steps in (1, 3):
        means = [mean.model_copy(update={"steps": steps}) for mean in result.mean_steps]
        outline = Outline(result.model_copy(update={"mean_steps": means}))
        told[steps] = plan_summary(result.plan, outline, labels)
    spread, one = {"en": ("the spread of", "one recorded step"), "zh": ("离散程度", "只记录了一个 step")}[lang]
    assert spread in told[3] and one not in told[3]
    assert one in told[1] and spread not in told[1]


@pytest.mark.parametrize("renderer", [MarkdownRenderer(), HtmlRenderer(), JiraRenderer()])
def test_what_casts_doubt_on_a_change_stands_below_the_plan(example: ModuleType, renderer: Any) -> None:
    """Once, with the numbers of all changes that it concerns."""
    result = example.training()
    assert result.plan is not None and len(result.plan.actions) > 1
    two = {action.finding for action in result.plan.actions[:2]}
    caveat = Text(en="The recording holds a first pass.", zh="采集包含首次运行。")
    findings = [
        finding.model_copy(update={"caveats": [caveat] if finding.fingerprint in two else []})
        for finding in result.findings
    ]
    text: str = renderer.render(result.model_copy(update={"findings": findings}), "en")
    numbers = ", ".join(action.problem for action in result.plan.actions[:2])
    assert text.count(f"{numbers}: {caveat.en}") == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_plan_of_a_first_pass_says_so_above_its_changes_and_marks_them(example: ModuleType, lang: str) -> None:
    result = example.training()
    assert result.plan is not None
    action, cause = result.plan.actions[0], result.findings[-1]
    findings = [
        finding.model_copy(update={"first_pass": cause.fingerprint})
        if finding.fingerprint == action.finding
        else finding
        for finding in result.findings
    ]
    words = Labels(lang)
    first = words("plan.record_first", numbers=action.problem).strip()
    for told, count in ((result.model_copy(update={"findings": findings}), 1), (result, 0)):
        text = " ".join(MarkdownRenderer().render(told, lang).split())
        assert text.count(first) == text.count(words("plan.once")) == summary(told, lang, ()).count(first) == count
        if count:
            assert text.index(first) < text.index(f"| {words('plan.change')} |") < text.index(words("plan.once"))


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("moving data (1.0 % of it) and waiting", 17, "moving data …"),
        ("moving data 12.5 ms long", 17, "moving data …"),
        ("传输（1.0 %）更短", 10, "传输 …"),
        ("waits for rank 7 and more", 16, "waits for rank …"),
        ("all of it", 9, "all of it"),
    ],
)
def test_no_number_is_cut_off_from_its_unit(text: str, width: int, expected: str) -> None:
    assert prose.opening(text, width) == expected
