"""Markdown of the reference: tables, code font, headings and the links between pages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = ROOT / "docs" / "reference"

Pages = dict[str, str]
"""Path below docs/reference to the text of the page."""


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; empty without rows."""
    body = ["| " + " | ".join(cell(str(value)) for value in row) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(header) + " |", "|" + " --- |" * len(header), *body]) if body else ""


def cell(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text).replace("|", r"\|")


def code(text: object) -> str:
    return f"`{text}`"


def fence(text: str) -> str:
    return f"```text\n{text.strip()}\n```"


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def to(page: str, heading: str, start: str, shown: str | None = None) -> str:
    """A link to a heading of another page; ``start``: the page that it stands on."""
    path = "" if page == start else os.path.relpath(page, Path(start).parent)
    return f"[{shown or heading}]({path}#{slug(heading)})"


def source_link(path: str, start: str) -> str:
    return f"[{path}]({os.path.relpath(ROOT / path, (TARGET / start).parent)})"


def join(*parts: str) -> str:
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def listing(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)
