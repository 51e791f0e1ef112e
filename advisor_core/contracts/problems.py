"""Problems of rule files, with their position: every mistake of an author becomes a `Problem`, never a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake. ``line`` and ``column`` are 1-based; 0 means that the place is the file (or option) as a whole.

    A ``warning`` is what ``advisor rules check`` alone mentions; the rule can still be used.
    """

    file: str
    line: int
    column: int
    message: str
    hint: str = ""
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        mark = "warning: " if self.severity == "warning" else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {mark}{self.message}{hint}"


class RuleFileError(Exception):
    """Rule files, or options about rules, that cannot be used; ``problems`` are all that were found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(map(str, self.problems)))


class SourceError(Exception):
    """A mistake ``offset`` characters into a condition or a text; whoever knows the file turns it into a `Problem`."""

    def __init__(self, message: str, offset: int = 0, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint


def closest(name: str, candidates: Iterable[str]) -> str:
    """The candidate that is most like ``name``, or nothing if none is."""
    known = {candidate.lower(): candidate for candidate in sorted(candidates)}
    found = difflib.get_close_matches(name.lower(), known, n=1)
    return known[found[0]] if found else ""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """The hint ``did you mean 'x'?``, or nothing if no candidate is like ``name``."""
    found = closest(name, candidates)
    return f"did you mean {found!r}?" if found else ""


def shorten(text: str, length: int = 60) -> str:
    """``text`` for quoting in a message: one line, bounded."""
    flat = " ".join(text[: 4 * length].split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"
