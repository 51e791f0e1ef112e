"""Computes facts on demand, each at most once, for one rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from advisor_core.contracts.facts import Fact, Facts, Failed, NotApplicable, Unavailable
from advisor_core.contracts.registry import Registry
from advisor_core.facts.communication.cross_rank_waits import CROSS_RANK_WAITS, NO_WAITS
from advisor_core.result.run import Diagnostic
from advisor_core.text.messages import message


class FactStore:
    """The facts of one rank. ``base``: what the loader gave (tables by name, ``profile``); ``missing``: why a table
    is not there. The rank stands alone until `settle` tells what the comparison of ranks found."""

    def __init__(self, facts: Mapping[str, Fact], base: Mapping[str, Any], missing: Mapping[str, Unavailable]) -> None:
        self._facts = facts
        self._values: dict[str, Any] = {CROSS_RANK_WAITS: NO_WAITS, **base}
        self._settled = False
        self._failed: dict[str, Unavailable | NotApplicable] = dict(missing)
        self._computing: list[str] = []
        self.diagnostics: list[Diagnostic] = []

    def settle(self, waits: pd.DataFrame) -> None:
        """Give the fact `CROSS_RANK_WAITS`. Raises RuntimeError where a fact has read it already: what was told once is
        never revised."""
        if self._settled:
            raise RuntimeError(f"{CROSS_RANK_WAITS} was read before the ranks were compared")
        self._values[CROSS_RANK_WAITS] = waits

    def get(self, name: str) -> Any:
        """The fact or table ``name``. Raises `Unavailable` or `NotApplicable`; `Failed` where a function raised by
        mistake, which a diagnostic says as well: a fact that is only wanted fails in silence otherwise."""
        if name in self._values:
            self._settled |= name == CROSS_RANK_WAITS
            return self._values[name]
        if name in self._failed:
            raise self._failed[name]
        fact = self._facts.get(name)
        if fact is None:
            raise Unavailable(message("fact.unknown", name=name))
        if name in self._computing:
            raise RuntimeError(f"facts need each other: {' -> '.join([*self._computing, name])}")
        self._computing.append(name)
        try:
            value = fact.compute(self.view(fact.needs, fact.wants))
        except (Unavailable, NotApplicable) as reason:
            self._failed[name] = reason
            raise
        except Exception as error:
            self._failed[name] = failure = self._failure(name, error)
            self.diagnostics.append(Diagnostic(severity="error", source=name, message=failure.reason))
            raise failure from error
        finally:
            self._computing.pop()
        self._values[name] = value
        return value

    def _failure(self, name: str, error: Exception) -> Failed:
        plugin = str(self._facts.owner(name)) if isinstance(self._facts, Registry) else ""
        detail = f"{type(error).__name__}: {error}"
        return Failed(message("engine.plugin_raised", what=name, plugin=plugin, error=detail))

    def view(self, needs: Iterable[str], wants: Iterable[str]) -> Facts:
        """The declared facts. Raises `Unavailable` for the first needed one that is not to be had."""
        needs, wants = tuple(needs), tuple(wants)
        values = {name: self.get(name) for name in needs}
        for name in wants:
            try:
                values[name] = self.get(name)
            except (Unavailable, NotApplicable):
                continue
        return Facts(values, (*needs, *wants), self.diagnostics.append)
