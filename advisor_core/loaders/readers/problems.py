"""Collect the problems of a file while it is read, and report them as a few diagnostics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from advisor_core.result.run import Diagnostic
from advisor_core.text.base import Text
from advisor_core.text.messages import message

SHOWN = 3
"""Examples of one kind of problem that a diagnostic names; the rest is counted."""

_LONGEST = 60


def quoted(value: str) -> str:
    """A value as a message shows it: one line, printable, not long."""
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in value)
    return f"'{printable[:_LONGEST]}…'" if len(printable) > _LONGEST else f"'{printable}'"


class Problems:
    """The diagnostics of one file. Equal problems are counted; the first few are shown with position and value."""

    def __init__(self, file: str) -> None:
        self.file = file.encode("utf-8", "replace").decode("utf-8")
        """Bytes of a name that are no UTF-8 reach Python as halves of surrogate pairs, which cannot be written."""
        self._said: list[Diagnostic] = []
        self._counted: dict[tuple[str, str], tuple[int, list[str]]] = {}

    def say(self, severity: Literal["error", "warning", "info"], text: Text) -> None:
        self._said.append(Diagnostic(severity=severity, source=self.file, message=text))

    def count(self, kind: str, what: str, amount: int, examples: Iterable[tuple[int, str]]) -> None:
        """Add ``amount`` problems of the message ``kind`` about ``what`` (a column); examples: position and value."""
        total, shown = self._counted.get((kind, what), (0, []))
        for position, value in examples:
            if len(shown) >= SHOWN:
                break
            shown.append(f"{self.file}:{position} {quoted(value)}")
        self._counted[kind, what] = (total + amount, shown)

    def diagnostics(self) -> list[Diagnostic]:
        counted = [
            Diagnostic(
                severity="warning",
                source=self.file,
                message=message(
                    kind,
                    file=self.file,
                    what=what,
                    count=total,
                    examples=", ".join(shown) + (", …" if total > len(shown) else ""),
                ),
            )
            for (kind, what), (total, shown) in self._counted.items()
        ]
        return [*self._said, *counted]
