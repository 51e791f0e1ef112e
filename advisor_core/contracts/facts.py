"""Facts: values derived from a profile, each computed once and looked up by name.

A fact is a function of tables and other facts. It declares what it needs; it receives exactly that; it is computed
at most once per rank. A fact that cannot be computed raises `Unavailable` with the reason and, where a profiler
option would provide it, what to collect. What needs it becomes unavailable with the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from advisor_core.result.run import Diagnostic
from advisor_core.text.base import Text


class Unavailable(Exception):  # noqa: N818 - a state, not a mistake
    """Something could not be computed or answered from this profile. ``options``: what a new profile has to record
    to answer it, as ids of ``collecting/options.yaml``; empty where no option of the profiler would help."""

    def __init__(self, reason: Text, collect: Text | None = None, options: tuple[str, ...] = ()) -> None:
        super().__init__(reason, collect, options)  # what it is made of: it travels between processes
        self.reason = reason
        self.collect = collect
        self.options = options

    def __str__(self) -> str:
        return self.reason.en


class Failed(Unavailable):
    """The function of a fact raised by mistake; the reason names the fact and the plugin that it belongs to."""


class NotApplicable(Exception):  # noqa: N818 - a state, not a mistake
    """The question does not arise for this profile (no collectives on a single rank)."""

    def __init__(self, reason: Text) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason.en


class Facts(Mapping[str, Any]):
    """The facts and tables that a fact or an advisor declared, and no others.

    ``facts["timeline"]`` is a needed fact. A wanted one that is unavailable is absent: ``facts.get("launches")``
    gives ``None``.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        declared: Iterable[str],
        note: Callable[[Diagnostic], None] = lambda diagnostic: None,
    ) -> None:
        self._values = values
        self._declared = frozenset(declared)
        self._note = note

    def note(self, severity: Literal["error", "warning", "info"], source: str, text: Text) -> None:
        """Tell the reader of the report something about the input."""
        self._note(Diagnostic(severity=severity, source=source, message=text))

    def __getitem__(self, name: str) -> Any:
        if name not in self._declared:
            raise LookupError(f"fact {name!r} is not declared in needs or wants")
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


@dataclass(frozen=True)
class Fact:
    """A named derivation. ``shared``: small enough to leave the rank's process; job advisors may need it."""

    name: str
    meaning: str
    needs: tuple[str, ...]
    wants: tuple[str, ...]
    compute: Callable[[Facts], Any]
    shared: bool = False


def fact(
    name: str, *, needs: Iterable[str] = (), wants: Iterable[str] = (), shared: bool = False
) -> Callable[[Callable[[Facts], Any]], Fact]:
    """Declare the decorated function as the fact ``name``; its docstring's first line is its meaning."""

    def declare(compute: Callable[[Facts], Any]) -> Fact:
        lines = (compute.__doc__ or "").strip().splitlines()
        return Fact(name, lines[0] if lines else "", tuple(needs), tuple(wants), compute, shared)

    return declare
