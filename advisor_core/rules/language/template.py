"""Texts of a rule: the author's Markdown with ``{{ name }}``, ``{{ name | unit }}``,
``{{ name | plural('one', 'many') }}``, ``{{ name | either('where it holds', 'where not') }}``,
``{{ name | words(one: 'what it means', other: 'what that means') }}`` and ``{{ recorded_part | part('the step') }}`` in
it, and nothing more.

Both sides are kept in bounds. The author (possibly a stranger) may write neither raw HTML nor images, nor links other
than https. The values (names of kernels, of streams: whatever a profile holds) are escaped as Markdown, so that they
show as what they are and do nothing, in Markdown as in the HTML made of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING

from advisor_core.contracts.problems import SourceError, nearest, shorten
from advisor_core.rules.language.nodes import Symbol
from advisor_core.rules.language.scope import Scope
from advisor_core.rules.model import Param
from advisor_core.rules.places import named_place
from advisor_core.text import units
from advisor_core.text.base import Scalar, Text
from advisor_core.text.listed import listed
from advisor_core.text.plural import plural
from advisor_core.vocabulary.parts import PARTS, place_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_LENGTH = 5000
MAX_VALUE_LENGTH = 200

UNIT_FILTERS = (
    *("ns", "us", "ms", "s"),
    *("bytes", "kB", "MB", "GB", "KiB", "MiB", "GiB"),
    *("MB/s", "GB/s", "TB/s", "MHz", "GHz"),
    *("percent", "%", "count"),
)
"""Filters that choose the unit of a number; without one it is the most readable."""

PLAIN_FILTERS = ("raw", "code")
"""``raw``: the bare number, no separators. ``code``: in code font."""

PLURAL = "plural"
"""``plural('row is', 'rows are')``: not the number, but the words that fit it."""

EITHER = "either"
"""``either('rows are missing', 'no row is missing')``: not the truth value, but the words that fit it."""

WORDS = "words"
"""``words(python: 'Python code', runtime: 'calls into the runtime')``: not the text, but what it means to a reader; of
several with commas between them, what all of them mean."""

PART = "part"
"""``part('the step')``: the part of a recording in words, or these where the row is about the whole of it."""

_PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_INSIDE = re.compile(
    r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)?)\s*"
    r"(?:\|\s*(?P<filter>[A-Za-z%/]+)\s*(?P<forms>\(.*\)\s*)?)?\Z"
)
_FORMS = re.compile(r"\(\s*'(?P<one>[A-Za-z][A-Za-z ,-]*)'\s*,\s*'(?P<many>[A-Za-z][A-Za-z ,-]*)'\s*\)\s*\Z")
_CHOICE = re.compile(
    r"\(\s*'(?P<yes>[A-Za-z0-9\u4e00-\u9fff][A-Za-z0-9\u4e00-\u9fff ,;:，；：、-]*)'\s*,"
    r"\s*'(?P<no>[A-Za-z0-9\u4e00-\u9fff][A-Za-z0-9\u4e00-\u9fff ,;:，；：、-]*)'\s*\)\s*\Z"
)
_MEANING = re.compile(
    r"\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*:\s*'(?P<words>[A-Za-z\u4e00-\u9fff][A-Za-z\u4e00-\u9fff -]*)'\s*(?:,|\Z)"
)
_WHOLE = re.compile(r"\(\s*'(?P<whole>[A-Za-z\u4e00-\u9fff][A-Za-z\u4e00-\u9fff -]*)'\s*\)\s*\Z")
_STRAY = re.compile(r"\{\{|\}\}|\{%|%\}|\{#|#\}")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&=$^:@])")
_TAG = re.compile(r"<[A-Za-z/!?]")
_BACKTICKS = re.compile(r"`+")
_MAY_BE_ACTIVE = re.compile(r"[<\[`~|]|\t| {4}")
"""Without any of these a text holds no HTML, image, link, code or table, and need not be parsed to know it."""


@dataclass(frozen=True)
class Slot:
    """A placeholder. ``param``: the parameter it quotes, shown as it is written in the rule. ``forms``: the words of
    `PLURAL`, for one and for many, of `EITHER`, for what holds and what does not, of `WORDS`, a text and what it means
    in turns, or of `PART`, for the whole."""

    symbol: Symbol
    filter: str
    start: int
    param: Param | None = None
    forms: tuple[str, ...] = ("", "")

    def show(self, values: Mapping[str, Scalar], lang: str) -> str:
        value, unit = (
            (self.param.value, self.param.unit) if self.param else (values.get(self.symbol.key), self.symbol.unit)
        )
        if self.filter == PLURAL:
            one, many = self.forms
            return plural(value, one, many)
        if self.filter == EITHER:
            return self.forms[0 if value else 1] if isinstance(value, bool) else units.format_quantity(value, "", lang)
        if self.filter == PART:
            return self.forms[0] if value is None else escape_markdown(_part_in_words(str(value), lang), lang)
        if self.filter == WORDS and value is not None:
            return self._meaning(str(value), lang)
        if isinstance(value, str):
            return code_span(value, lang) if self.filter == "code" else escape_markdown(value, lang)
        if self.filter == "raw":
            return units.format_raw(value, lang)
        if self.filter == "code":
            return code_span(units.format_quantity(value, unit, lang), lang)
        if self.filter:
            return units.format_in(value, _assumed(unit, self.filter), self.filter, lang)
        return units.format_exact(value, unit, lang) if self.param else units.format_quantity(value, unit, lang)

    def _meaning(self, value: str, lang: str) -> str:
        """The words of each text in the value; a text without words is shown as it is."""
        known = dict(zip(self.forms[::2], self.forms[1::2], strict=True))
        *others, last = (known.get(one) or code_span(one, lang) for one in value.split(", "))
        if lang == "zh":
            return "、".join([*others, last])
        return f"{', '.join(others)} and {last}" if others else last


@dataclass(frozen=True)
class Template:
    """A checked text in one language."""

    source: str
    parts: tuple[str | Slot, ...]

    @property
    def slots(self) -> tuple[Slot, ...]:
        return tuple(part for part in self.parts if isinstance(part, Slot))

    def render(self, values: Mapping[str, Scalar], lang: str) -> str:
        """The text with ``values`` put in: columns by name, constants as ``profile.name``. One that is missing,
        None or NaN reads ``unknown``. Parameters are known to the template already."""
        return "".join(part if isinstance(part, str) else part.show(values, lang) for part in self.parts)


@dataclass(frozen=True)
class TextTemplate:
    """A checked text in both languages."""

    en: Template
    zh: Template

    def render(self, values: Mapping[str, Scalar]) -> Text:
        return Text(en=self.en.render(values, "en"), zh=self.zh.render(values, "zh"))

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        return tuple(dict.fromkeys(slot.symbol for slot in chain(self.en.slots, self.zh.slots)))


def parse_template(source: str, scope: Scope, *, trusted: bool = False) -> Template:
    """Read and check a text. ``trusted``: its Markdown was checked before. Raises `SourceError`."""
    if len(source) > MAX_LENGTH:
        raise SourceError(f"text is longer than {MAX_LENGTH} characters")
    parts: list[str | Slot] = []
    end = 0
    for found in _PLACEHOLDER.finditer(source):
        parts += [_plain(source, end, found.start()), _slot(found, scope)]
        end = found.end()
    parts.append(_plain(source, end, len(source)))
    template = Template(source, tuple(part for part in parts if part != ""))
    if not trusted:
        _check_markdown(template)
    return template


def escape_markdown(text: str, lang: str = "en") -> str:
    """``text`` so that Markdown shows it as it is: one line of at most 200 characters, every mark escaped."""
    return _MARKDOWN.sub(r"\\\1", _tame(text)) or _MARKDOWN.sub(r"\\\1", units.word("empty", lang))


def code_span(text: str, lang: str = "en") -> str:
    """``text`` as a code span that ends where it should, whatever backticks are in it."""
    tame = _tame(text)
    if not tame:
        return escape_markdown(tame, lang)
    fence = "`" * (1 + max((len(run) for run in _BACKTICKS.findall(tame)), default=0))
    padding = " " if tame.startswith("`") or tame.endswith("`") else ""
    return f"{fence}{padding}{tame}{padding}{fence}"


def _part_in_words(name: str, lang: str) -> str:
    """A part, or several with commas between them, in words; what names no part as it is."""
    found = [place_of(one) for one in name.split(", ")]
    if any(part not in PARTS for part, _ in found):
        return name
    words = listed([named_place(part, phase) for part, phase in found])
    return words.zh if lang == "zh" else words.en


def _tame(text: str) -> str:
    """One line, no control or invisible characters, bounded."""
    flat = " ".join(text[: 10 * MAX_VALUE_LENGTH].split())
    flat = "".join(character for character in flat if unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co"})
    flat = flat.strip()
    return flat if len(flat) <= MAX_VALUE_LENGTH else flat[: MAX_VALUE_LENGTH - 1] + "…"


def _plain(source: str, start: int, end: int) -> str:
    text = source[start:end]
    stray = _STRAY.search(text)
    if stray:
        hint = "placeholders are {{ name }} and {{ name | unit }}; there are no blocks or comments"
        raise SourceError(f"{stray.group()!r} is not part of a placeholder", start + stray.start(), hint)
    return text


def _slot(found: re.Match[str], scope: Scope) -> Slot:
    inside = _INSIDE.match(found[1])
    start = found.start()
    if inside is None:
        hint = "write {{ name }} or {{ name | unit }}"
        raise SourceError(f"{shorten(found.group())!r} is not a placeholder", start, hint)
    start += 2 + inside.start("name")
    root, dot, member = inside["name"].partition(".")
    if dot and root in {"env", "fired"}:
        raise SourceError(f"{inside['name']!r} cannot be quoted", start, "only columns, params and profile can")
    symbol = scope.member(root, member, start) if dot else scope.column(root, start)
    param = scope.params[member] if root == "params" else None
    name = inside["filter"] or ""
    filter_at = found.start() + 2 + inside.start("filter")
    if name == PLURAL:
        return Slot(symbol, name, start, param, _forms(inside["forms"] or "", symbol, filter_at))
    if name == EITHER:
        return Slot(symbol, name, start, param, _choice(inside["forms"] or "", symbol, filter_at))
    if name == WORDS:
        return Slot(symbol, name, start, param, _meanings(inside["forms"] or "", symbol, filter_at))
    if name == PART:
        return Slot(symbol, name, start, param, _whole(inside["forms"] or "", symbol, filter_at))
    if inside["forms"]:
        raise SourceError(f"{name!r} takes nothing in brackets", filter_at, "only plural, either, words and part do")
    if name:
        _check_filter(name, symbol, param.unit if param else symbol.unit, filter_at)
    return Slot(symbol, name, start, param)


def _forms(source: str, symbol: Symbol, offset: int) -> tuple[str, str]:
    """The two forms of a `PLURAL` filter: plain words, so that they are no Markdown."""
    forms = _FORMS.match(source)
    if forms is None:
        raise SourceError("plural needs the words for one and for many", offset, "write plural('row is', 'rows are')")
    if symbol.kind != "number":
        raise SourceError(f"{symbol.key!r} is not a number and has no plural", offset)
    return forms["one"], forms["many"]


def _choice(source: str, symbol: Symbol, offset: int) -> tuple[str, str]:
    """The two forms of an `EITHER` filter: plain words, as those of a `PLURAL`, in either language."""
    forms = _CHOICE.match(source)
    if forms is None:
        hint = "write either('rows are missing', 'no row is missing')"
        raise SourceError("either needs the words for what holds and for what does not", offset, hint)
    if symbol.kind != "bool":
        raise SourceError(f"{symbol.key!r} is no truth value", offset)
    return forms["yes"], forms["no"]


def _meanings(source: str, symbol: Symbol, offset: int) -> tuple[str, ...]:
    """The texts of a `WORDS` filter and what they mean, in turns: plain words, in either language."""
    inside = source.strip()[1:-1]
    found = list(_MEANING.finditer(inside))
    if not found or "".join(one.group() for one in found) != inside:
        raise SourceError("words needs texts and what they mean", offset, "write words(one: 'this', other: 'that')")
    if symbol.kind != "text":
        raise SourceError(f"{symbol.key!r} is no text", offset)
    return tuple(one for meaning in found for one in (meaning["name"], meaning["words"]))


def _whole(source: str, symbol: Symbol, offset: int) -> tuple[str, ...]:
    """The words of a `PART` filter for the whole of a recording."""
    words = _WHOLE.match(source)
    if words is None:
        raise SourceError("part needs the words for the whole of a recording", offset, "write part('the step')")
    if symbol.kind != "text":
        raise SourceError(f"{symbol.key!r} is no text", offset)
    return (words["whole"],)


def _check_filter(name: str, symbol: Symbol, unit: str, offset: int) -> None:
    if name in PLAIN_FILTERS:
        return
    if name not in UNIT_FILTERS:
        known = [*UNIT_FILTERS, *PLAIN_FILTERS, PLURAL, EITHER, PART]
        hint = nearest(name, known) or f"known: {', '.join(known)}"
        raise SourceError(f"unknown unit {name!r}", offset, hint)
    if symbol.kind != "number":
        raise SourceError(f"{symbol.key!r} is not a number and has no unit", offset)
    if units.base_of(_assumed(unit, name))[0] != units.base_of(name)[0]:
        raise SourceError(f"{symbol.key!r} is in {unit or 'no unit'} and cannot be shown in {name}", offset)


def _assumed(unit: str, target: str) -> str:
    """A number without a unit may be shown as a count or a percentage, if the author says so."""
    if unit in {"", "count"} and target == "count":
        return "count"
    return "ratio" if unit == "" and target in {"percent", "%"} else unit


@cache
def _parser() -> MarkdownIt:
    """Finds everything that could become active, hence more permissive than what renders reports."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).disable("entity")
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


def _check_markdown(template: Template) -> None:
    """No raw HTML, images, or links other than https; no placeholder where escaping would not help."""
    _check_neighbours(template)
    source = template.source
    if not any(_MAY_BE_ACTIVE.search(part) for part in template.parts if isinstance(part, str)):
        return
    stand_ins = {f"XslotX{number}X": slot for number, slot in enumerate(template.slots)}
    names = iter(stand_ins)
    text = "".join(part if isinstance(part, str) else next(names) for part in template.parts)
    seen: set[str] = set()
    for token, in_table in _tokens(_parser().parse(text)):
        if token.type in {"html_inline", "html_block"} or (token.type == "text" and _TAG.search(token.content)):
            opening = _TAG.search(source)
            start = opening.start() if opening else 0
            raise SourceError(f"raw HTML {shorten(source[start:], 20)!r} is not allowed", start, "write &lt; for <")
        if token.type == "image":
            raise SourceError("images are not allowed", max(0, source.find("![")))
        href = str(token.attrs.get("href", "https://"))
        if not href.startswith("https://"):
            raise SourceError(f"link to {shorten(href, 40)!r} is not https", max(0, source.find(href)))
        if token.type != "text":
            continue
        if stand_ins and "`" in token.content:
            raise SourceError("a backtick without its partner", source.find("`"), "placeholders could end up in code")
        inside = [name for name in stand_ins if name in token.content]
        seen.update(inside)
        for name in inside:
            if in_table and stand_ins[name].filter == "code":
                raise SourceError("code font is not possible in a table", stand_ins[name].start, "leave out | code")
    for name, slot in stand_ins.items():
        if name not in seen:
            hint = "for code font write {{ name | code }} without backticks"
            raise SourceError("a placeholder cannot stand inside code or an address", slot.start, hint)


def _check_neighbours(template: Template) -> None:
    """Check that the text next to a placeholder does not undo the escaping of its value or run into its backticks."""
    around = ("", *template.parts, "")
    for before, slot, after in zip(around, around[1:], around[2:], strict=False):
        if not isinstance(slot, Slot):
            continue
        if isinstance(before, str) and before.endswith("\\"):
            raise SourceError("a backslash cannot stand before a placeholder", slot.start)
        if slot.filter == "code" and not (
            isinstance(before, str) and isinstance(after, str) and "`" not in before[-1:] + after[:1]
        ):
            raise SourceError("code font needs a space between it and the next", slot.start)


def _tokens(tokens: Iterable[Token]) -> Iterator[tuple[Token, bool]]:
    """All tokens, inline ones included, and whether they are in a table."""
    in_table = False
    for token in tokens:
        in_table = token.type == "table_open" or (in_table and token.type != "table_close")
        yield token, in_table
        for child in token.children or ():
            yield child, in_table
