"""Computes facts on demand, each at most once, for one rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar, cast

import pandas as pd

from advisor_core.contracts.columns import require_exactly
from advisor_core.contracts.facts import Fact, Facts
from advisor_core.contracts.frames import quick
from advisor_core.contracts.isolation import working
from advisor_core.contracts.keys import Answers, AnyKey, Key, Source, unknown
from advisor_core.contracts.missing import Missing, Unanswered
from advisor_core.contracts.owner import Owner
from advisor_core.contracts.registry import Registry
from advisor_core.contracts.stopwatch import Stopwatch
from advisor_core.facts.communication.cross_rank_waits import COLUMNS, CROSS_RANK_WAITS, no_waits
from advisor_core.facts.doubt.marks import caveats
from advisor_core.result.run import Diagnostic
from advisor_core.text.base import Text
from advisor_core.text.messages import message

T = TypeVar("T")


class FactStore(Source):
    """The facts of one rank: what is ``given`` of it, and what the registered ``facts`` derive. The rank stands alone
    until `settle` tells what the comparison of ranks found. ``watch``: what each fact takes is counted there."""

    def __init__(self, facts: Mapping[str, Fact[object]], given: Answers, watch: Stopwatch | None = None) -> None:
        self._facts = facts
        self._answers = given.copy()
        self._answers.put(CROSS_RANK_WAITS, no_waits())
        self._settled = False
        self.watch = watch or Stopwatch()
        self.diagnostics: list[Diagnostic] = []

    def settle(self, waits: pd.DataFrame) -> None:
        """Give `CROSS_RANK_WAITS`. Raises RuntimeError where a fact has read it already: what was told once is never
        revised."""
        if self._settled:
            raise RuntimeError(f"{CROSS_RANK_WAITS.name} was read before the ranks were compared")
        require_exactly(waits, COLUMNS, CROSS_RANK_WAITS.name)
        self._answers.put(CROSS_RANK_WAITS, waits)

    def find(self, key: Key[T]) -> T | Missing:
        """The value, or why it is not known: because a function raised by mistake is said in a diagnostic as well, as
        a fact that is only wanted fails in silence otherwise."""
        if not self._answers.answers(key):
            self._answers.put(key, self._derive(key))
        self._settled |= key is CROSS_RANK_WAITS
        return self._answers.find(key)

    def _derive(self, key: Key[T]) -> T | Missing:
        if not isinstance(key, Fact) or self._facts.get(key.name) is not key:
            return unknown(key)
        try:
            with self.watch.of(f"fact {key.name}"):
                view = self.view(key.needs, key.wants)
                with working(self._owner(key.name), f"which derives {key.name}"):
                    value: T = key.compute(view)
                    key.check(value)
        except Unanswered as stopped:
            return stopped.missing
        except Exception as error:
            failure = self._failure(key.name, error)
            self.diagnostics.append(Diagnostic(severity="error", source=key.name, message=failure.reason))
            return failure
        return cast(T, quick(value)) if isinstance(value, pd.DataFrame) else value

    def _failure(self, name: str, error: Exception) -> Missing:
        detail = f"{type(error).__name__}: {error}"
        raised = message("engine.plugin_raised", what=name, plugin=str(self._owner(name)), error=detail)
        return Missing(raised, kind="failed")

    def _owner(self, name: str) -> Owner:
        return self._facts.owner(name) if isinstance(self._facts, Registry) else Owner("", "", builtin=True)

    def view(self, needs: Iterable[AnyKey], wants: Iterable[AnyKey]) -> Facts:
        """The declared facts. Raises `Unavailable` or `NotApplicable` for the first needed value that is not known."""
        needs, wants = tuple(needs), tuple(wants)
        for key in needs:
            if (missing := self.missing(key)) is not None:
                raise missing.error()
        for key in wants:
            self.find(key)
        return Facts(self._answers, (*needs, *wants), self.diagnostics.append)

    def caveats(self, needs: Iterable[AnyKey]) -> tuple[Text, ...]:
        """Doubts about a measurement that needs these values."""
        return caveats(needs, self)
