"""``report.html``: complete, self-contained, inert, within its budget, in both languages."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest

import reports
from reports.html import DETAILED, HtmlRenderer
from reports.labels import catalogue
from reports.outline import STATE_ORDER

ROOT = Path(reports.__file__).parent
NAMES = ("alexnet", "hostile", "nothing_found", "empty", "many_ranks", "of_roles", "marked")
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


@pytest.fixture(params=[(name, lang) for name in NAMES for lang in ("en", "zh")], ids=lambda p: f"{p[0]}-{p[1]}")
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
    result = example.alexnet()
    page = Page(HtmlRenderer().render(result, "en"))
    for finding in result.findings:
        assert finding.fingerprint in page.text
        assert finding.title.en in page.text
        assert finding.condition in page.text
        for advice in finding.advice:
            for name, value in advice.set.items():
                assert f"{name}={value}" in page.text
        for evidence in finding.evidence:
            assert evidence.title.en in page.text
            assert not evidence.source or evidence.source.file in page.text
    assert re.search(r"waiting for rank 5 78.8 ms 24.3 ms into step 50 collective hcom_\w+ \(line 81\)", page.text)
    assert "Signs that hold drains often" in page.text
    for said in ("Notify waits", "1288401", "78.8 ms", "3 of 16 rows", "with its causes", "24.1 ms into step 50"):
        assert said in page.text, said


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_rule_appears_under_its_state_with_what_is_missing(example: ModuleType, lang: str) -> None:
    result = example.alexnet()
    page = Page(HtmlRenderer().render(result, lang))
    for state in STATE_ORDER:
        assert catalogue()[f"state.{state}"][lang] in page.texts
    for rule in result.rules:
        assert rule.rule in page.texts
    assert "aic_metrics=ACL_AICORE_MEMORY_ACCESS" in page.texts


def test_the_first_screen_answers_what_where_and_what_to_do(example: ModuleType) -> None:
    html = HtmlRenderer().render(example.alexnet(), "en")
    page = Page(html[html.index("<header") : html.index("<nav")])
    for said in ("PyTorch", "Level1", "0, 1 of 8", "training", "Ascend910B4", "136.4 ms", "rank 0", "rank 1"):
        assert said in page.text, said
    for said in (
        "102 ms",
        "74.5 % of the step",
        "measured",
        "TASK_QUEUE_ENABLE=2",
        "Every collective waits for rank 5",
    ):
        assert said in page.text, said
    assert "2 cannot be answered" in page.text


def test_no_finding_is_not_called_health(example: ModuleType) -> None:
    page = Page(HtmlRenderer().render(example.nothing_found(), "en"))
    assert "not a clean bill of health" in page.text
    assert "profile all ranks of the job" in page.text
    assert "healthy" not in page.text.lower()
    empty = Page(HtmlRenderer().render(example.empty(), "en"))
    assert "says nothing about the health" in empty.text


def test_variables_that_are_not_recorded_are_said_to_be_unknown(example: ModuleType) -> None:
    page = Page(HtmlRenderer().render(example.alexnet(), "en"))
    assert re.search(r"TASK_QUEUE_ENABLE\s+unknown: this profile does not record it", page.text)
    assert re.search(r"ASCEND_LAUNCH_BLOCKING\s+recorded as unset", page.text)


def test_many_findings_are_listed_rather_than_left_out(example: ModuleType) -> None:
    result = example.many_ranks()
    html = HtmlRenderer().render(result, "en")
    assert html.count('<article class="finding') <= DETAILED
    assert len([1 for key in Page(html).ids if key and key.startswith("f-")]) == len(result.findings)
    assert "slowest: rank" in html and "and 63 more of this kind" in html


def test_the_chinese_page_has_no_english_label(example: ModuleType) -> None:
    page = Page(HtmlRenderer().render(example.alexnet(), "zh"))
    english = {texts["en"] for texts in catalogue().values() if texts["en"] != texts["zh"] and "{" not in texts["en"]}
    names = {"host", "idle", "computing"}  # quoted from the profile, not said by us
    assert not (set(page.texts) & english) - names
    assert [attrs["lang"] for tag, attrs in page.tags if tag == "html"] == ["zh-CN"]


def test_the_same_result_gives_the_same_bytes(example: ModuleType) -> None:
    first = HtmlRenderer().render(example.alexnet(), "en")
    later = example.alexnet().model_copy(update={"timings": {"load": 99.0}})
    assert HtmlRenderer().render(later, "en") == first


def test_markup_is_declared_safe_in_one_place_only() -> None:
    templates = "".join(path.read_text("utf-8") for path in (ROOT / "templates").glob("*.j2"))
    assert "|safe" not in templates.replace(" ", "") and "autoescape" not in templates
    sources = {path.name: path.read_text("utf-8") for path in ROOT.rglob("*.py")}
    places = [name for name, source in sources.items() for _ in re.findall(r"\bMarkup\(", source)]
    assert places == ["prose.py"]
    users = {name for name, source in sources.items() if re.search(r"\btrusted\(", source)}
    assert users == {"prose.py", "svg.py", "patterns.py", "html.py"}


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
