"""A result in which every name and text tries to do harm."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from advisor_core.result.run import RunResult

SCRIPT: Final = "<script>document.title='hacked';alert(1)</script>"
HOSTILE: Final = (
    SCRIPT,
    '=HYPERLINK("http://evil.example/","x")',
    "a|b`c``d|e",
    '"><img src=http://evil.example/x.png onerror=alert(1)>',
    "[click](javascript:alert(1)) ![x](http://evil.example/y.png)",
    "\x1b[31mred\x1b[0m \u202eright-to-left",
    "@everyone see http://evil.example and www.evil.example",
    "</style></title><svg onload=alert(1)>",
)
MARKUP: Final = "```\nx\n```\n\n# y\n\n<b onclick=alert(1)>x</b>\n\n| a | b |\n"
"""Blocks of Markdown, which only texts of rules can hold."""

_FIXED: Final = frozenset(
    (
        "actor",
        "also_causes",
        "causes",
        "number",
        "parent",
        "parts",
        "problem",
        "rule",
        "schema_version",
        "sha256",
        "symptoms",
    )
) | {"unit", "vendor"}
"""Fields that hold a word of the tool, or numbers of problems."""

_ROOTS: Final = ("compute", "communication", "idle")
"""Parts of every ledger, beside which there are no others."""

_ADDRESSES: Final = ("javascript:alert(1)", "http://evil.example/")
_LINES: Final = ("en", "zh")


def with_hostile_names(result: RunResult) -> RunResult:
    """The result with something hostile behind every text of it, whatever it is about: the same behind equal texts, so
    that the parts still refer to each other. Numbers, choices of the tool (``Literal``) and `_FIXED` stay."""
    names = _Names()
    changed = names.model(result)
    assert isinstance(changed, RunResult)
    return RunResult.model_validate_json(changed.model_dump_json())


class _Names:
    """What stands for each text; hostile texts take turns."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}

    def name(self, text: str) -> str:
        if not text or text in _ROOTS:
            return text
        turn = len(self._given) % len(HOSTILE)
        return self._given.setdefault(text, f"{text} {HOSTILE[turn]}")

    def model(self, model: BaseModel) -> BaseModel:
        changes = {}
        for field, about in type(model).model_fields.items():
            value = getattr(model, field)
            if field == "url" and value is not None:
                changes[field] = _ADDRESSES[len(self._given) % 2]
            elif field in _LINES and value:
                changes[field] = f"{self.name(value)}\n\n{MARKUP}" if field == "zh" else self.name(value)
            elif field not in _FIXED and not _chosen(about.annotation):
                changes[field] = self.value(value, about.annotation)
        return model.model_copy(update=changes)

    def value(self, value: Any, annotation: Any = None) -> Any:
        if isinstance(value, tuple) and len(parts := typing.get_args(annotation)) == len(value):
            each = zip(value, parts, strict=True)
            return tuple(one if _chosen(part) else self.value(one, part) for one, part in each)
        if isinstance(value, list) and len(parts := typing.get_args(annotation)) == 1:
            return [self.value(one, parts[0]) for one in value]
        if isinstance(value, BaseModel):
            return self.model(value)
        if isinstance(value, str):
            return self.name(value)
        if isinstance(value, Mapping):
            return {self.key(key): self.value(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self.value(part) for part in value)
        return value

    def key(self, key: Any) -> Any:
        """Columns, settings and paths are names, too."""
        return self.name(key) if isinstance(key, str) else key


def _chosen(annotation: Any) -> bool:
    """Whether a field takes one of some words."""
    parts = (annotation, *typing.get_args(annotation))
    return any(typing.get_origin(part) is typing.Literal for part in parts)
