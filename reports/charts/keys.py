"""Keys of charts: which fill and which label each has, and the patterns of the fills."""

from __future__ import annotations

from reports.labels import Labels, one_line, prettify
from reports.ledgers import CLASSES

FAMILIES = (*CLASSES, "overlap")

VARIANTS = 4
"""Fills within a family, for its causes side by side."""

EXTRA_FILLS = 6
"""Fills for keys that belong to no family."""

_ALIASES = {
    "computing": "compute",
    "comm": "communication",
    "uncovered": "communication",
    "uncovered_communication": "communication",
    "overlapped": "overlap",
    "free": "idle",
    "bubble": "idle",
}


class Keys:
    """Fills of the keys of one chart: a family keeps its own everywhere, its causes and all others take the next."""

    def __init__(self, labels: Labels) -> None:
        self._labels = labels
        self._seen: dict[str | None, list[str]] = {}

    def family(self, key: str) -> str | None:
        head = key.partition("/")[0].lower()
        head = _ALIASES.get(head, head)
        return head if head in FAMILIES else None

    def fill(self, key: str) -> str:
        family = self.family(key)
        if family and "/" not in key:
            return f"f f-{family}"
        keys_of_family = self._seen.setdefault(family, [])
        if key not in keys_of_family:
            keys_of_family.append(key)
        number = keys_of_family.index(key)
        return f"f f-{family}-{number % VARIANTS}" if family else f"f f-x{number % EXTRA_FILLS}"

    def label(self, key: str) -> str:
        family = self.family(key)
        if family and "/" not in key:
            return self._labels(f"key.{family}")
        return self._labels.trail(key) if family else prettify(one_line(key))
