"""``report.html``: complete, self-contained, inert, within its budget, in both languages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

import reports
from reports import prose
from reports.html import DETAILED, HtmlRenderer
from reports.labels import catalogue
from reports.outline import STATE_ORDER

ROOT = Path(reports.__file__).parent
NAMES = (
    "training", "two_of_four", "launch_blocking", "hostile", "hostile_roles", "nothing_found", "empty", "many_ranks",
    "many_findings", "of_roles", "marked",
)  # fmt: skip
VOID = {"meta", "br"}


class Page(HTMLParser):
    """A page as its tags, ids, links and texts."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()
        self.ids = [attrs["id"] for _, attrs in self.tags if "id" in attrs]
        self.text = " ".join(self.texts).replace("\u00a0", " ")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if data.strip() and "style" not in self.open:
            self.texts.append(data.strip())


@pytest.fixture(
    scope="module", params=[(name, lang) for name in NAMES for lang in ("en", "zh")], ids=lambda p: f"{p[0]}-{p[1]}"
)
def html(request: pytest.FixtureRequest, example: ModuleType) -> str:
    name, lang = request.param
    return HtmlRenderer().render(getattr(example, name)(), lang)


def test_the_page_is_well_formed_and_its_links_resolve(html: str) -> None:
    page = Page(html)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    targets = {attrs["href"] for tag, attrs in page.tags if tag == "a" and "href" in attrs}
    assert targets
    for target in targets:
        assert target is not None
        if target.startswith("#"):
            assert target[1:] in page.ids, target
        else:
            assert target.startswith("https://"), target
    fills = set(re.findall(r"url\(#([\w-]+)\)", html))
    assert fills <= set(page.ids)


def test_nothing_is_fetched_and_nothing_runs(html: str) -> None:
    page = Page(html)
    names = [tag for tag, _ in page.tags]
    assert not {"script", "img", "iframe", "object", "embed", "link", "base", "form", "audio", "video"} & set(names)
    for tag, attrs in page.tags:
        assert not [name for name in attrs if name.startswith("on")], (tag, attrs)
        assert not {"src", "srcset", "xlink:href", "action", "background"} & attrs.keys()
        if tag == "a" and not (attrs.get("href") or "").startswith("#"):
            assert "noopener" in (attrs.get("rel") or "")
    style = html[html.index("<style>") : html.index("</style>")]
    assert "@import" not in style
    assert set(re.findall(r"url\((.)", html)) <= {"#"}
    policy = [attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; img-src data:"]
    assert names.count("title") >= 1 and names.count("style") == 1


def test_size_is_within_the_budget(html: str) -> None:
    assert len(html.encode("utf-8")) < 1_000_000


def test_hostile_names_stay_text(example: ModuleType) -> None:
    html = HtmlRenderer().render(example.hostile(), "en")
    page = Page(html)
    assert example.SCRIPT in page.text
    assert '=HYPERLINK("http://evil.example/","x")' in page.text
    assert "\x1b" not in html and "\u202e" not in html
    assert "javascript:" not in " ".join(attrs.get("href") or "" for _, attrs in page.tags)


def test_every_finding_and_its_parts_appear(example: ModuleType) -> None:
    result = example.training()
    page = Page(HtmlRenderer().render(result, "en"))
    for finding in result.findings:
        assert finding.fingerprint in page.text
        assert plain(finding.title.en) in page.text
        assert finding.condition in page.text
        for advice in finding.advice:
            for name, value in advice.set.items():
                assert f"{name}={value}" in page.text
        for evidence in finding.evidence:
            assert evidence.title.en[0].upper() + evidence.title.en[1:] in page.text
            assert not evidence.source or evidence.source.file in page.text
        if finding.signs:
            assert f"Signs that hold {' '.join(finding.signs)}" in page.text
        for evidence in finding.evidence:
            if evidence.kind == "rows" and (evidence.total_rows or 0) > len(evidence.rows):
                assert f"{len(evidence.rows)} of {evidence.total_rows:,} rows" in page.text
    assert any(finding.signs for finding in result.findings)
    assert "with its causes" in page.text


@pytest.mark.parametrize("rank", [0, 1])
def test_the_longest_piece_of_an_entry_is_told_with_its_place(example: ModuleType, rank: int) -> None:
    """The longest wait for the rank that was not recorded: when, how long, in which collective, on which lines."""
    result = example.two_of_four()
    text = HtmlRenderer().render(result, "en")
    page = Page(text)
    starts = {step.step: step.start_ns for step in result.profile.steps if step.rank == rank}
    piece, step = max(
        (
            (piece, step.step)
            for step in result.ledger
            for entry in step.entries
            if step.rank == rank and entry.path == "communication/wait/rank 2"
            for piece in entry.pieces
        ),
        key=lambda pair: pair[0]["ns"],
    )
    assert (
        f"waiting for rank 2 {milliseconds(piece['ns'])} {milliseconds(piece['start_ns'] - starts[step])} "
        f"into step {step} collective {piece['collective']} (kernel_details.csv line {piece['collective_line']}), "
        f"wait {piece['wait']} (trace_view.json byte {piece['wait_offset']})"
    ) in page.text


def test_evidence_in_a_trace_is_told_by_its_offset(example: ModuleType) -> None:
    result = example.training()
    page = Page(HtmlRenderer().render(result, "en"))
    sources = [evidence.source for finding in result.findings for evidence in finding.evidence if evidence.source]
    offsets = {str(source.offset) for source in sources if source.offset}
    assert len(offsets) > 5 and {offset for offset in offsets if offset not in page.text} == set()


def plain(text: str) -> str:
    """A text of a rule without its Markdown: code spans and escapes."""
    return re.sub(r"\\([^\w\s]|_)", r"\1", text.replace("`", ""))


def milliseconds(ns: int) -> str:
    """Three digits, as reports write times."""
    assert 1_000_000 <= ns < 1_000_000_000
    return f"{ns / 1e6:.{2 if ns < 10_000_000 else 1 if ns < 100_000_000 else 0}f} ms"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_rule_appears_under_its_state_with_what_is_missing(example: ModuleType, lang: str) -> None:
    result = example.every_state()
    page = Page(HtmlRenderer().render(result, lang))
    for state in STATE_ORDER:
        assert catalogue()[f"state.{state}"][lang] in page.texts
    for rule in result.rules:
        assert rule.rule in page.texts or rule.only_for is not None, "rules for other devices are counted in one line"
    missing = {rule.collect.of(lang) for rule in result.rules if rule.state == "cannot_answer" and rule.collect}
    assert missing
    for collect in missing:
        assert Page(f"<p>{prose.html(collect)}</p>").text in page.text


def test_the_first_screen_answers_what_where_and_what_to_do(example: ModuleType) -> None:
    result = example.two_of_four()
    html = HtmlRenderer().render(result, "en")
    page = Page(html[html.index("<header") : html.index("<nav")])
    walls = [step.wall_ns for step in result.ledger]
    step_time = milliseconds(round(sum(walls) / len(walls)))
    for said in ("PyTorch", "Level1", "0, 1 of 4", "training", "24 cube / 48 vector", step_time, "rank 0", "rank 1"):
        assert said in page.text, said
    first, cause = result.problems[0], next(item for item in result.findings if item.rule == "CO010")
    share = f"{100 * first.share_of_step:.1f} % of the step"
    for said in (milliseconds(first.stake_ns), share, "upper bound", cause.title.en):
        assert said in page.text, said
    unanswered = sum(rule.state == "cannot_answer" for rule in result.rules)
    assert f"{unanswered} cannot be answered" in page.text


def test_the_first_screen_says_which_setting_to_change(example: ModuleType) -> None:
    html = HtmlRenderer().render(example.launch_blocking(), "en")
    page = Page(html[html.index("<header") : html.index("<nav")])
    assert "ASCEND_LAUNCH_BLOCKING=1" in page.text


def test_no_finding_is_not_called_health(example: ModuleType) -> None:
    page = Page(HtmlRenderer().render(example.nothing_found(), "en"))
    assert "not a clean bill of health" in page.text
    assert "profile several steps" in page.text
    assert "healthy" not in page.text.lower()
    empty = Page(HtmlRenderer().render(example.empty(), "en"))
    assert "says nothing about the health" in empty.text


def test_variables_that_are_not_recorded_are_said_to_be_unknown(example: ModuleType) -> None:
    assert "TASK_QUEUE_ENABLE" not in example.training().environment.variables
    assert example.training().environment.variables["ASCEND_LAUNCH_BLOCKING"] == ""
    page = Page(HtmlRenderer().render(example.training(), "en"))
    assert re.search(r"TASK_QUEUE_ENABLE\s+not recorded", page.text)
    assert re.search(r"ASCEND_LAUNCH_BLOCKING\s+not set", page.text)
    assert re.search(r"TORCH_NPU_LAZY_FUSION\s+unknown: this profile does not record it", page.text)


def test_many_findings_are_listed_rather_than_left_out(example: ModuleType) -> None:
    result = example.many_findings()
    html = HtmlRenderer().render(result, "en")
    assert len(result.findings) > DETAILED
    assert html.count('<article class="finding') <= DETAILED
    assert len([1 for key in Page(html).ids if key and key.startswith("f-")]) == len(result.findings)
    assert "slowest: rank" in html and "and 63 more of this kind" in html


def test_the_chinese_page_has_no_english_label(example: ModuleType) -> None:
    result = example.training()
    page = Page(HtmlRenderer().render(result, "zh"))
    english = {
        texts["en"]
        for key, texts in catalogue().items()
        if texts["en"] != texts["zh"] and "{" not in texts["en"] and not key.startswith(("unit.", "units.", "counted."))
    }
    rows = [row for finding in result.findings for evidence in finding.evidence for row in evidence.rows]
    measured = [*rows, *(finding.observation for finding in result.findings)]
    quoted = {value for row in measured for value in row.values() if isinstance(value, str)}
    quoted.add("communication")  # a level of calls, as it is recorded
    assert not (set(page.texts) & english) - quoted
    assert [attrs["lang"] for tag, attrs in page.tags if tag == "html"] == ["zh-CN"]


def test_the_same_result_gives_the_same_bytes(example: ModuleType) -> None:
    first = HtmlRenderer().render(example.training(), "en")
    later = example.training().model_copy(update={"timings": {"load": 99.0}})
    assert HtmlRenderer().render(later, "en") == first


def test_markup_is_declared_safe_in_one_place_only() -> None:
    templates = "".join(path.read_text("utf-8") for path in (ROOT / "templates").glob("*.j2"))
    assert "|safe" not in templates.replace(" ", "") and "autoescape" not in templates
    sources = {path.name: path.read_text("utf-8") for path in ROOT.rglob("*.py")}
    places = [name for name, source in sources.items() for _ in re.findall(r"\bMarkup\(", source)]
    assert places == ["prose.py"]
    users = {name for name, source in sources.items() if re.search(r"\btrusted\(", source)}
    assert users == {"prose.py", "svg.py", "patterns.py", "html.py", "html_pieces.py", "page.py"}


def test_no_label_is_unused_and_none_is_missing() -> None:
    """Keys are written out in the sources, or built from a prefix that is."""
    text = "".join(path.read_text("utf-8") for path in [*ROOT.rglob("*.py"), *(ROOT / "templates").glob("*.j2")])
    built = {match.group(1) for match in re.finditer(r"f?[\"']([a-z_]+\.)(?:[\"'] ?~|\{|at_\{|into_)", text)}
    unused = [key for key in catalogue() if key not in text and not any(key.startswith(prefix) for prefix in built)]
    assert unused == []
    used = set(re.findall(r"\b(?:t|labels|self\.t)\(\s*[\"']([a-z_]+\.[\w./]+)[\"']", text))
    assert used <= catalogue().keys()


ALLOWED = ("advisor_core.result", "advisor_core.text", "advisor_core.api")


def test_reports_do_not_import_what_they_must_not() -> None:
    for path in ROOT.rglob("*.py"):
        source = path.read_text("utf-8")
        assert not re.search(r"^\s*(?:import|from) (?:pandas|numpy|advisors|rulesets)\b", source, re.MULTILINE), path
        for module in re.findall(r"^\s*from (advisor_core[\w.]*)", source, re.MULTILINE):
            assert module.startswith(("advisor_core.result", "advisor_core.text", "advisor_core.api")) or (
                path.name == "__init__.py"
            ), (path, module)
