"""Rule texts are Markdown from untrusted authors: convert them to safe HTML, safe Markdown and plain text.

This is the only module that declares markup safe. A test counts the places.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from markupsafe import Markup

from reports.labels import one_line, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MD_SPECIAL = re.compile(r"([\\`*_\[\]<>|~&$#])")
_MD_LINE_START = re.compile(r"^(\s*)([-+](?=\s|$)|=|\+(?!\d)|-(?=-*\s*$)|\d+[.)](?=\s|$))", re.MULTILINE)
"""What begins a list, a rule or a heading at the start of a line, or a formula at the start of a spreadsheet's cell."""
_CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
KEPT = 4096
"""Texts that are kept as they were converted: a report has the same names and headings again and again, and the
Markdown report is written anew until it fits."""
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")


def trusted(markup: str) -> Markup:
    """Declare markup safe: only what this package built itself, with every value escaped."""
    return Markup(markup)


def joined(parts: Iterable[Markup]) -> Markup:
    """Pieces of safe markup, one after the other."""
    return trusted("".join(parts))


@cache
def _markdown() -> MarkdownIt:
    # Imported when a text is converted: formats for programs use this module and are registered by every command.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).disable(["image", "html_block", "html_inline"])
    parser.validateLink = is_https  # type: ignore[method-assign]
    parser.add_render_rule("link_open", _link_open)
    return parser


def is_https(url: str) -> bool:
    """Whether a link may be followed from a report: https, or a place in the report itself."""
    return url.startswith(("https://", "#"))


def _link_open(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("rel", "noopener noreferrer")
    return str(renderer.renderToken(tokens, index, options, env))


def parsed(text: str) -> Sequence[Token]:
    """Block Markdown as tokens, for a format that writes them anew; nothing in them is HTML or an image."""
    return _markdown().parse(visible(text))


@lru_cache(KEPT)
def html(text: str) -> Markup:
    """Block Markdown as HTML."""
    return trusted(_markdown().render(visible(text)))


@lru_cache(KEPT)
def html_inline(text: str) -> Markup:
    """One line of Markdown as HTML without a paragraph."""
    return trusted(_markdown().renderInline(one_line(text)))


@lru_cache(KEPT)
def plain(text: str) -> str:
    """Markdown as plain text on one line: for a table of contents, a window title, a terminal."""
    return one_line(
        " ".join(_plain(token.children or []) for token in _markdown().parse(visible(text)) if token.children)
    )


def first_sentence(text: str) -> str:
    """How a text begins, as Markdown: for a first screen, which has no room for the whole of it."""
    outside = _CODE.sub(lambda code: "x" * len(code.group()), text)
    found = _SENTENCE_END.search(outside)
    return text[: found.end()].strip() if found else text


_LAST_NUMBER = re.compile(r"[\s(（]*\d[\d.,]*$")


def opening(text: str, width: int) -> str:
    """How a text begins, as plain text at most ``width`` letters wide (a Chinese one is as wide as two), up to the end
    of a word. A number does not stand without its unit."""
    told, at = plain(text), 0
    for end, character in enumerate(told):
        at += wide(character)
        if at > width:
            cut = told[:end]
            whole = cut[: cut.rfind(" ")] if " " in cut[end // 2 :] else cut
            return f"{_LAST_NUMBER.sub('', whole)} …"
    return told


def wide(text: str) -> int:
    """How many letters wide a text stands on a terminal."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _plain(tokens: Sequence[Token]) -> str:
    return "".join(" " if token.type in ("softbreak", "hardbreak") else token.content for token in tokens)


# --- Markdown to Markdown: what a stranger wrote is parsed and written anew, so that nothing but the known comes out


def escape_markdown(text: str) -> str:
    """Plain text as Markdown that reads the same: no markup, no HTML, no automatic link, no mention."""
    escaped = _MD_SPECIAL.sub(r"\\\1", one_line(text))
    escaped = _MD_LINE_START.sub(_escape_line_start, escaped)
    escaped = escaped.replace("://", "\\://").replace("www.", "www\\.")
    return re.sub(r"@(?=\w)", "@\u2060", escaped)


def _escape_line_start(match: re.Match[str]) -> str:
    lead, mark = match.groups()
    return f"{lead}\\{mark}" if len(mark) == 1 else f"{lead}{mark[:-1]}\\{mark[-1]}"


def code_span(text: str, in_table: bool = False) -> str:
    """A value as a code span that holds whatever the value holds; in a table its pipes are escaped."""
    text = one_line(text)
    if in_table:
        text = text.replace("|", "\\|")
    if not text:
        return "–"
    if "`" not in text:
        return f"`{text}`"
    longest = max(len(run) for run in re.findall(r"`+", text))
    fence = "`" * (longest + 1)
    pad = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{pad}{text}{pad}{fence}"


@lru_cache(KEPT)
def markdown(text: str) -> str:
    """Block Markdown, rewritten."""
    return "\n".join(_blocks(_markdown().parse(visible(text)))).strip("\n")


@lru_cache(KEPT)
def markdown_inline(text: str, in_table: bool = False) -> str:
    """One line of Markdown, rewritten."""
    return " ".join(_inline(token.children or [], in_table) for token in _markdown().parseInline(one_line(text)))


def _blocks(tokens: Sequence[Token]) -> list[str]:
    lines: list[str] = []
    prefix: list[str] = []
    counters: list[int | None] = []
    marker = ""
    for token in tokens:
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            counters.append(int(str(token.attrs.get("start", 1))) if kind.startswith("ordered") else None)
        elif kind in ("bullet_list_close", "ordered_list_close"):
            counters.pop()
            lines.append("".join(prefix).rstrip())
        elif kind == "list_item_open":
            count = counters[-1]
            marker = "- " if count is None else f"{count}. "
            if count is not None:
                counters[-1] = count + 1
            prefix.append(" " * len(marker))
        elif kind == "list_item_close":
            prefix.pop()
        elif kind == "blockquote_open":
            prefix.append("> ")
        elif kind == "blockquote_close":
            prefix.pop()
        elif kind == "inline":
            lines.append(_prefixed(prefix, marker) + _inline(token.children or [], False))
            marker = ""
        elif kind in ("paragraph_close", "heading_close") and not token.hidden:
            lines.append("".join(prefix).rstrip())
        elif kind in ("fence", "code_block"):
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", token.content)), default=0))
            body = [fence, *token.content.rstrip("\n").split("\n"), fence]
            first = _prefixed(prefix, marker)
            marker = ""
            lines += [first + body[0], *("".join(prefix) + line for line in body[1:]), "".join(prefix).rstrip()]
    return lines


def _prefixed(prefix: Sequence[str], marker: str) -> str:
    """The line prefix, its last indent replaced by the marker of a list item that begins here."""
    return "".join(prefix[:-1]) + marker if marker else "".join(prefix)


def _inline(tokens: Sequence[Token], in_table: bool) -> str:
    parts: list[str] = []
    closing: list[str] = []
    for token in tokens:
        match token.type:
            case "code_inline":
                parts.append(code_span(token.content, in_table))
            case "softbreak" | "hardbreak":
                parts.append(" ")
            case "em_open" | "em_close":
                parts.append("*")
            case "strong_open" | "strong_close":
                parts.append("**")
            case "link_open":
                parts.append("[")
                closing.append(f"](<{_url(str(token.attrs.get('href', '')))}>)")
            case "link_close":
                parts.append(closing.pop())
            case _:
                lead = token.content[: len(token.content) - len(token.content.lstrip())]
                tail = token.content[len(token.content.rstrip()) :] if token.content.strip() else ""
                parts.append((" " if lead else "") + escape_markdown(token.content) + (" " if tail else ""))
    return "".join(parts)


def _url(url: str) -> str:
    return one_line(url).replace("<", "%3C").replace(">", "%3E").replace("|", "%7C").replace(" ", "%20")
