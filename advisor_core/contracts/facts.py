"""Facts: values derived from a profile, each computed once and asked for by its typed key.

A fact is a function of tables and other facts. It declares what it needs; it receives exactly that; it is computed
at most once per rank. A fact that cannot be computed raises `Unavailable` with the reason and, where a profiler
option would provide it, what to collect. What needs it becomes unavailable with the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import pandas as pd

from advisor_core.contracts.columns import Column, require_exactly
from advisor_core.contracts.keys import Answers, AnyKey, Key, Source
from advisor_core.contracts.missing import Missing
from advisor_core.result.run import Diagnostic
from advisor_core.text.base import Text

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Facts(Source):
    """The values that a fact or an advisor of a rank declared, and no others.

    ``facts[timeline]`` is a needed fact. A wanted one may be missing: ``facts.get(launches)`` gives ``None`` then, and
    ``facts.find(launches)`` says why. Raises LookupError for a key that is not declared.
    """

    def __init__(
        self,
        answers: Answers,
        declared: Iterable[AnyKey],
        note: Callable[[Diagnostic], None] = lambda diagnostic: None,
    ) -> None:
        self._answers = answers
        self._declared = frozenset(declared)
        self._note = note

    def note(self, severity: Literal["error", "warning", "info"], source: str, text: Text) -> None:
        """Tell the reader of the report something about the input."""
        self._note(Diagnostic(severity=severity, source=source, message=text))

    def find(self, key: Key[T]) -> T | Missing:
        _require_declared(key, self._declared)
        return self._answers.find(key)


class JobFacts:
    """The values that an advisor of a job declared, of every rank: ``facts.ranks(ledger)`` is a mapping of rank to
    value, for the ranks that have it."""

    def __init__(self, ranks: Mapping[int, Answers], declared: Iterable[AnyKey]) -> None:
        self._ranks = ranks
        self._declared = frozenset(declared)

    def ranks(self, key: Key[T]) -> dict[int, T]:
        """The values by rank; empty where no rank has one, which happens to what is only wanted. Raises LookupError for
        a key that is not declared."""
        _require_declared(key, self._declared)
        found = {rank: answers.find(key) for rank, answers in self._ranks.items()}
        return {rank: value for rank, value in found.items() if not isinstance(value, Missing)}


def _require_declared(key: AnyKey, declared: frozenset[AnyKey]) -> None:
    if key not in declared:
        raise LookupError(f"{key.name!r} is not declared in needs or wants")


@dataclass(frozen=True, eq=False)
class Fact(Key[T_co]):
    """A derivation, and the key to its value. ``shared``: small enough to leave the rank's process; advisors of a job
    may need it. ``frames``: the columns of the frames that the value holds, by the name of the field; of a value that
    is a frame, by ''. What is not declared is not checked."""

    needs: tuple[AnyKey, ...]
    wants: tuple[AnyKey, ...]
    compute: Callable[[Facts], T_co] = field(repr=False)
    shared: bool = False
    frames: Mapping[str, tuple[Column, ...]] = field(default_factory=dict)

    def check(self, value: object) -> None:
        """Raise TypeError where a frame of the value has other columns or dtypes than declared: a look at the dtypes,
        not at the rows."""
        for name, columns in self.frames.items():
            frame, owner = (getattr(value, name), f"{self.name}.{name}") if name else (value, self.name)
            if not isinstance(frame, pd.DataFrame):
                raise TypeError(f"{owner} declares columns and is no frame: {type(frame).__name__}")
            require_exactly(frame, columns, owner)


def fact(
    name: str,
    *,
    needs: Iterable[AnyKey] = (),
    wants: Iterable[AnyKey] = (),
    shared: bool = False,
    columns: Iterable[Column] = (),
    frames: Mapping[str, Iterable[Column]] | None = None,
) -> Callable[[Callable[[Facts], T]], Fact[T]]:
    """Declare the decorated function as a fact; its docstring's first line is its meaning. ``columns``: of a value that
    is a frame; ``frames``: of the frames that the value holds, by field."""
    columns = tuple(columns)
    declared = {name: tuple(held) for name, held in ({"": columns} if columns else frames or {}).items()}

    def declare(compute: Callable[[Facts], T]) -> Fact[T]:
        lines = (compute.__doc__ or "").strip().splitlines()
        return Fact(name, lines[0] if lines else "", tuple(needs), tuple(wants), compute, shared, declared)

    return declare
