"""Texts of the code as the reference shows them: of rules, docstrings and columns."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from advisor_core.rules.language.template import TextTemplate
from reference_pages.markdown import ROOT, code


def rule_text(text: TextTemplate | None) -> str:
    """The English text of a rule: parameters with the value they have, measured values by their column's name."""
    if text is None:
        return ""
    parts = []
    for part in text.en.parts:
        if isinstance(part, str):
            parts.append(part)
        else:
            parts.append(part.show({}, "en") if part.param else code(part.symbol.key))
    return "".join(parts).strip()


def column_rows(columns: Iterable[Any]) -> Iterator[tuple[str, str, str, str, str]]:
    return ((code(column.name), column.dtype, column.unit, column.meaning, column.zh) for column in columns)


COLUMNS = ("Column", "Type", "Unit", "Meaning", "Chinese heading")


def source_of(function: Callable[..., Any]) -> str:
    return Path(inspect.getsourcefile(function) or "").resolve().relative_to(ROOT).as_posix()


def details(thing: object) -> str:
    return prose(inspect.getdoc(thing) or "")


def prose(text: str) -> str:
    """A docstring as Markdown: code as Markdown marks it, and lines that tell one kind after the other as a list."""
    return re.sub(r"^kind `", "- kind `", text.replace("``", "`"), flags=re.MULTILINE)
