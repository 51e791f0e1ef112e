"""Texts as Jira's wiki notation: whatever a name holds, it reads the same and does nothing.

Source: Atlassian, "Text Formatting Notation Help" (a backslash before a mark takes its meaning).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reports.labels import one_line
from reports.prose import parsed

if TYPE_CHECKING:
    from markdown_it.token import Token

_MARKS = re.compile(r"[{}\[\]|!]|(?<![A-Za-z0-9])[*_^~+-]|[*_^~+-](?![A-Za-z0-9])|\?\?|(?<=:)//|^#")
"""Code, macros, links, cells, images; what is bold, raised or struck out, which is so between words and not inside of
them; citations, addresses, lists."""

_SMILEYS = re.compile(r"[:;](?=[()DP])|\((?=(?:[/x!yni?+-]|on|off|\\?\*[rgby]?|flag|flagoff)\))")
_LINE_START = re.compile(r"^(?:bq|h[1-6])(?=\.)")


def escape(text: str) -> str:
    """Plain text on one line."""
    said = one_line(text).replace("&", "&amp;").replace("\\", "&#92;")
    said = _SMILEYS.sub(r"\\\g<0>", said)
    said = _MARKS.sub(lambda mark: "".join(f"\\{letter}" for letter in mark[0]), said)
    return _LINE_START.sub(lambda start: f"{start[0]}\\", said).replace("www.", "www\\.")


def code(text: str) -> str:
    """A name or a value; empty ones as a dash."""
    said = escape(text)
    return f"{{{{{said}}}}}" if said.strip() else "–"


def preformatted(text: str) -> list[str]:
    """Lines that stand as they are."""
    return ["{noformat}", *text.replace("{noformat", "{ noformat").split("\n"), "{noformat}"]


def inline(text: str) -> str:
    """One line of Markdown."""
    return " ".join(_inline(token.children or []) for token in parsed(one_line(text)) if token.type == "inline")


def blocks(text: str) -> list[str]:
    """Block Markdown as lines; an empty one after each block."""
    lines: list[str] = []
    marks, marker = "", ""
    for token in parsed(text):
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                marks += "*" if token.type.startswith("bullet") else "#"
            case "bullet_list_close" | "ordered_list_close":
                marks = marks[:-1]
                lines += [] if marks else [""]
            case "list_item_open":
                marker = f"{marks} "
            case "inline":
                lines.append(marker + _inline(token.children or []))
                marker = ""
            case "paragraph_close" | "heading_close" if not marks:
                lines.append("")
            case "fence" | "code_block":
                lines += [*preformatted(token.content.rstrip("\n")), ""]
    return lines


def _inline(tokens: Sequence[Token]) -> str:
    parts: list[str] = []
    targets: list[str] = []
    for token in tokens:
        match token.type:
            case "code_inline":
                parts.append(code(token.content))
            case "softbreak" | "hardbreak":
                parts.append(" ")
            case "em_open" | "em_close":
                parts.append("_")
            case "strong_open" | "strong_close":
                parts.append("*")
            case "link_open":
                parts.append("[")
                targets.append(address(str(token.attrs.get("href", ""))))
            case "link_close":
                parts.append(f"|{targets.pop()}]")
            case _:
                lead, tail = (" " if token.content[place].isspace() else "" for place in (slice(0, 1), slice(-1, None)))
                said = escape(token.content)
                parts.append(f"{lead}{said}{tail}" if said else lead)
    return "".join(parts)


def address(url: str) -> str:
    """An address that ends where a link does."""
    return one_line(url).replace("|", "%7C").replace("]", "%5D").replace("[", "%5B").replace(" ", "%20")
