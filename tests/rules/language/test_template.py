from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from advisor_core.contracts.problems import SourceError
from advisor_core.rules.language.scope import Scope
from advisor_core.rules.language.template import code_span, escape_markdown, parse_template
from advisor_core.text.base import Scalar

VALUES: dict[str, Scalar] = {
    "idle_ns": 8_870_000,
    "idle_share": 0.753,
    "gap_us": 12.5,
    "size": 1_048_576,
    "launches": 12_345,
    "late": True,
    "number": None,
    "kernel": "MatMul_V2",
    "profile.kind": "training",
    "profile.steps": 3,
}


@pytest.mark.parametrize(
    ("text", "en", "zh"),
    [
        ("{{ idle_ns }}", "8.87 ms", "8.87 ms"),
        ("{{idle_ns|us}}", "8,870 µs", "8,870 µs"),
        ("{{ gap_us }} {{ gap_us | ns }}", "12.5 µs 12,500 ns", "12.5 µs 12,500 ns"),
        ("{{ idle_share }} {{ idle_share | raw }}", "75.3 % 0.753", "75.3 % 0.753"),
        (
            "{{ size }} {{ size | MiB }} {{ size | bytes }}",
            "1.05 MB 1.00 MiB 1,048,576 B",
            "1.05 MB 1.00 MiB 1,048,576 B",
        ),
        ("{{ launches }} {{ launches | raw }}", "12,345 12345", "12,345 12345"),
        ("{{ late }}, {{ number }}", "yes, unknown", "是, 未知"),
        ("{{ kernel }} {{ kernel | code }}", r"MatMul\_V2 `MatMul_V2`", r"MatMul\_V2 `MatMul_V2`"),
        ("{{ params.min_gap }}, {{ params.min_gap | ns }}", "50 µs, 50,000 ns", "50 µs, 50,000 ns"),
        ("{{ params.share }} {{ params.word }} {{ params.flag }}", "10 % slow yes", "10 % slow 是"),
        ("{{ profile.kind }} {{ profile.steps }}", "training 3", "training 3"),
        ("{{ number }} {{ number|plural('row','rows') }}", "unknown rows", "未知 rows"),
        ("no placeholder, 100 % {sure}", "no placeholder, 100 % {sure}", "no placeholder, 100 % {sure}"),
        (
            "*a* `b` [c](https://d) a < b, &lt;b>",
            "*a* `b` [c](https://d) a < b, &lt;b>",
            "*a* `b` [c](https://d) a < b, &lt;b>",
        ),
    ],
)
def test_rendered(text: str, en: str, zh: str, scope: Scope) -> None:
    template = parse_template(text, scope)
    assert (template.render(VALUES, "en"), template.render(VALUES, "zh")) == (en, zh)


@pytest.mark.parametrize(
    ("launches", "shown"), [(1, "1 launch is late"), (0, "0 launches are late"), (1.0, "1 launch is late")]
)
def test_words_fit_a_number(launches: Scalar, shown: str, scope: Scope) -> None:
    text = "{{ launches }} {{ launches | plural('launch is', 'launches are') }} late"
    assert parse_template(text, scope).render({"launches": launches}, "en") == shown


@pytest.mark.parametrize(
    ("late", "en", "zh"), [(True, "It is late.", "已迟到。"), (False, "It is in time.", "未迟到。")]
)
def test_words_fit_a_truth_value(late: bool, en: str, zh: str, scope: Scope) -> None:
    english = parse_template("It is {{ late | either('late', 'in time') }}.", scope)
    chinese = parse_template("{{ late | either('已迟到', '未迟到') }}。", scope)
    assert (english.render({"late": late}, "en"), chinese.render({"late": late}, "zh")) == (en, zh)
    assert english.render({}, "en") == "It is unknown."


@pytest.mark.parametrize(
    ("part", "en", "zh"),
    [
        (None, "of the step", "占 step"),
        ("decode", "of decode", "占 解码（decode）"),
        ("decode (rollout)", r"of decode \(rollout\)", "占 解码（decode）（rollout）"),
        ("no part", "of no part", "占 no part"),
    ],
)
def test_a_part_of_a_recording_is_named_in_words(part: str | None, en: str, zh: str, scope: Scope) -> None:
    english = parse_template("of {{ kernel | part('the step') }}", scope)
    chinese = parse_template("占 {{ kernel | part('step') }}", scope)
    assert english.render({"kernel": part}, "en") == en
    assert chinese.render({"kernel": part}, "zh") == zh


def test_words_tell_what_texts_mean_and_what_has_none_is_shown_as_it_is(scope: Scope) -> None:
    english = parse_template("for {{ kernel | words(python: 'Python code', run_time: 'calls') }}", scope)
    chinese = parse_template("{{ kernel | words(python: 'Python 代码', run_time: '调用') }}", scope)
    for value, en, zh in (
        ("python", "for Python code", "Python 代码"),
        ("python, run_time", "for Python code and calls", "Python 代码、调用"),
        ("run_time, a*b, python", "for calls, `a*b` and Python code", "调用、`a*b`、Python 代码"),
        (None, "for unknown", "未知"),
    ):
        assert english.render({"kernel": value}, "en") == en
        assert chinese.render({"kernel": value}, "zh") == zh


def test_values_that_are_not_given_are_unknown(scope: Scope) -> None:
    assert (
        parse_template("{{ kernel }}/{{ idle_ns | ms }}/{{ kernel | code }}", scope).render({}, "en")
        == "unknown/unknown/`unknown`"
    )


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("a {{ idle_shre }}", 5, "unknown name 'idle_shre'"),
        ("{{ params.shar }}", 3, "unknown name 'params.shar'"),
        ("{{ env.PATH }}", 3, "'env.PATH' cannot be quoted"),
        ("{{ fired.HD001 }}", 3, "'fired.HD001' cannot be quoted"),
        ("{{ idle_ns | percent }}", 13, "'idle_ns' is in ns and cannot be shown in percent"),
        ("{{ params.share | ms }}", 18, "'params.share' is in % and cannot be shown in ms"),
        ("{{ idle_ns | mss }}", 13, "unknown unit 'mss'"),
        ("{{ idle_ns | plural }}", 13, "plural needs the words for one and for many"),
        ("{{ idle_ns | plural('row') }}", 13, "plural needs the words for one and for many"),
        ("{{ idle_ns | plural('<b>', 'rows') }}", 13, "plural needs the words for one and for many"),
        ("{{ kernel | plural('row', 'rows') }}", 12, "'kernel' is not a number and has no plural"),
        ("{{ late | either }}", 10, "either needs the words for what holds and for what does not"),
        ("{{ late | either('<b>', 'no') }}", 10, "either needs the words for what holds and for what does not"),
        ("{{ idle_ns | either('some', 'none') }}", 13, "'idle_ns' is no truth value"),
        ("{{ kernel | part }}", 12, "part needs the words for the whole of a recording"),
        ("{{ kernel | words() }}", 12, "words needs texts and what they mean"),
        ("{{ kernel | words(one: 'a', two) }}", 12, "words needs texts and what they mean"),
        ("{{ kernel | words(one: '<b>') }}", 12, "words needs texts and what they mean"),
        ("{{ idle_ns | words(one: 'a') }}", 13, "'idle_ns' is no text"),
        ("{{ idle_ns | part('the step') }}", 13, "'idle_ns' is no text"),
        ("{{ idle_ns | ms('row', 'rows') }}", 13, "'ms' takes nothing in brackets"),
        ("{{ kernel | ms }}", 12, "'kernel' is not a number and has no unit"),
        ("{{ kernel.__class__ }}", 3, "unknown name 'kernel.__class__'"),
        ("{{ kernel.a.b }}", 0, "'{{ kernel.a.b }}' is not a placeholder"),
        ("{{ kernel() }}", 0, "'{{ kernel() }}' is not a placeholder"),
        ("{{ idle_ns + 1 }}", 0, "'{{ idle_ns + 1 }}' is not a placeholder"),
        ("{{ idle_ns | ms | raw }}", 0, "'{{ idle_ns | ms | raw }}' is not a placeholder"),
        ("{{ }}", 0, "'{{ }}' is not a placeholder"),
        ("{% for a in b %}", 0, "'{%' is not part of a placeholder"),
        ("{# x #}", 0, "'{#' is not part of a placeholder"),
        ("a {{ late }} }}", 13, "'}}' is not part of a placeholder"),
        ("a {{ late", 2, "'{{' is not part of a placeholder"),
        ("a <b>c</b>", 2, "raw HTML '<b>c</b>' is not allowed"),
        ("a <script", 2, "raw HTML '<script' is not allowed"),
        ("<!-- x -->", 0, "raw HTML '<!-- x -->' is not allowed"),
        ("<div>\nx\n</div>", 0, "raw HTML '<div> x </div>' is not allowed"),
        ('<a href="{{ kernel }} >', 0, "raw HTML '<a href=\"{{ kernel …' is not allowed"),
        ("![a](https://b)", 0, "images are not allowed"),
        ("[a](http://b)", 4, "link to 'http://b' is not https"),
        ("[a](javascript:alert(1))", 4, "link to 'javascript:alert(1)' is not https"),
        ("[a](data:text/html,x)", 4, "link to 'data:text/html,x' is not https"),
        ("[a](//b)", 4, "link to '//b' is not https"),
        ("[a][b]\n\n[b]: ftp://c", 13, "link to 'ftp://c' is not https"),
        ("<http://a.b>", 1, "link to 'http://a.b' is not https"),
        ("[a](https://b/{{ kernel }})", 17, "a placeholder cannot stand inside code or an address"),
        ("[b]: https://{{ kernel }}", 16, "a placeholder cannot stand inside code or an address"),
        ("`{{ kernel }}`", 4, "a placeholder cannot stand inside code or an address"),
        ("    {{ kernel }}", 7, "a placeholder cannot stand inside code or an address"),
        ("```\n{{ kernel }}\n```", 7, "a placeholder cannot stand inside code or an address"),
        ("```{{ kernel }}\nx\n```", 6, "a placeholder cannot stand inside code or an address"),
        ("\\{{ kernel }}", 4, "a backslash cannot stand before a placeholder"),
        ("a ` b {{ kernel }}", 2, "a backtick without its partner"),
        ("`a`{{ kernel | code }}", 6, "code font needs a space between it and the next"),
        ("{{ kernel | code }}{{ kernel }}", 3, "code font needs a space between it and the next"),
        ("| a |\n|---|\n| {{ kernel | code }} |", 17, "code font is not possible in a table"),
        ("x" * 6000, 0, "text is longer than 5000 characters"),
    ],
)
def test_refused(text: str, offset: int, message: str, scope: Scope) -> None:
    with pytest.raises(SourceError) as caught:
        parse_template(text, scope)
    assert (caught.value.message, caught.value.offset) == (message, offset)


def test_hints(scope: Scope) -> None:
    with pytest.raises(SourceError) as caught:
        parse_template("{{ idle_shre }}", scope)
    assert caught.value.hint == "did you mean 'idle_share'?"
    with pytest.raises(SourceError) as caught:
        parse_template("{{ idle_ns | percnt }}", scope)
    assert caught.value.hint == "did you mean 'percent'?"


class Tags(HTMLParser):
    """What a browser would see: elements with attributes, and the words."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.words = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag + "".join(f" {name}" for name, _ in attrs))

    def handle_data(self, data: str) -> None:
        self.words += data


NASTY = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "![x](http://evil/x.png)",
    "[x]: http://evil",
    "<http://evil.example>",
    "http://evil.example www.evil.example",
    '=HYPERLINK("http://evil","x")',
    "a`b``c```d",
    "`",
    "``",
    " ` ",
    "\\`\\",
    "x|y|[a](http://evil)",
    "| a |\n|---|",
    "# heading\n\n- list\n> quote\n\n    code\n***\n===",
    "1. one",
    "{{ idle_ns }} {% x %}",
    "&lt;b&gt; &#x3c;script&#x3e; &copy;",
    "*a* _b_ ~~c~~ **d** $e$ :smile: @someone",
    '"><b x="',
    "]( [ ) ![",
    "\x00\x1b[31m\u202egnp.exe\u200b\ufeff",
    "",
    "   ",
    "x" * 100_000,
    "中文（）。",
]


@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("html", [False, True])
def test_names_from_a_profile_are_inert(value: str, html: bool, scope: Scope) -> None:
    """As plain text, in code font, at the start of a line, next to the author's own marks; even where HTML is on."""
    for text in (
        "{{ kernel }}",
        "{{ kernel | code }}",
        "*a* {{ kernel }} `b` {{ kernel | code }} **c**",
        "- {{ kernel }}\n- x",
        "({{ kernel }})",
        "[{{ kernel }}](https://ok)",
    ):
        rendered = parse_template(text, scope).render({"kernel": value}, "en")
        plain = parse_template(text, scope).render({"kernel": "word"}, "en")
        reader = MarkdownIt("commonmark", {"html": html}).enable(["table", "strikethrough"])
        assert Tags(reader.render(rendered)).found <= Tags(reader.render(plain)).found


@given(
    st.text(alphabet=st.one_of(st.sampled_from("\\`*_{}[]()<>#+-.!|~&=$^:@\"'/ \n\ta1;"), st.characters()), max_size=60)
)
def test_escaped_text_shows_as_it_is(value: str) -> None:
    reader = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for rendered in (escape_markdown(value), code_span(value)):
        assert "\n" not in rendered
        tags = Tags(reader.render(f"x {rendered} y"))
        assert tags.found <= {"p", "code"}
        shown = re.sub(r"\s+", " ", tags.words.strip().removeprefix("x").removesuffix("y")).strip()
        visible = re.sub(
            r"\s+", " ", "".join(c for c in " ".join(value.split()) if c.isprintable() or c == " ")
        ).strip()
        if value.isprintable() and visible:
            assert shown == visible


def test_long_names_are_cut(scope: Scope) -> None:
    rendered = parse_template("{{ kernel }}", scope).render({"kernel": "x" * 1000}, "en")
    assert rendered == "x" * 199 + "…"


def test_an_empty_name_is_visible(scope: Scope) -> None:
    template = parse_template("{{ kernel }} {{ kernel | code }}", scope)
    assert template.render({"kernel": ""}, "en") == r"\(empty\) \(empty\)"
    assert template.render({"kernel": "\n"}, "zh") == "（空） （空）"
