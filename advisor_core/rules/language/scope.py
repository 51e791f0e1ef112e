"""The names that a condition or a text of a rule may use, with type and unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from advisor_core.contracts.problems import SourceError, nearest
from advisor_core.rules.language.nodes import Kind, Node, Symbol
from advisor_core.rules.model import Param
from advisor_core.text.base import Scalar
from advisor_core.text.units import base_of, to_base

ROOTS = ("params", "env", "profile", "fired")
KINDS: Mapping[str, Kind] = {"int": "number", "float": "number", "bool": "bool", "text": "text"}


class Typed(Protocol):
    """Protocol of a declared column (`advisor_core.contracts.advisor.Column` is one)."""

    @property
    def dtype(self) -> str: ...

    @property
    def unit(self) -> str: ...


@dataclass(frozen=True)
class Scope:
    """``fired``: the ids a rule may name after ``fired.``, each with the id that the rule has today. ``signs``:
    conditions that have a name."""

    columns: Mapping[str, Typed] = field(default_factory=dict)
    params: Mapping[str, Param] = field(default_factory=dict)
    profile: Mapping[str, Typed] = field(default_factory=dict)
    fired: Mapping[str, str] = field(default_factory=dict)
    signs: Mapping[str, Node] = field(default_factory=dict)

    def column(self, name: str, offset: int = 0) -> Symbol:
        """The column ``name``. Raises `SourceError`."""
        column = self.columns.get(name)
        if column is None:
            raise SourceError(f"unknown name {name!r}", offset, self._hint(name))
        base, factor = base_of(column.unit)
        return Symbol(name, KINDS[column.dtype], column.unit, base, float(factor))

    def member(self, root: str, name: str, offset: int = 0) -> Symbol:
        """``root.name``. Raises `SourceError`."""
        key = f"{root}.{name}"
        if root == "env":
            return Symbol(key, "text")
        if root == "params" and name in self.params:
            param = self.params[name]
            # Already converted when it is looked up, hence no factor.
            return Symbol(key, kind_of(param.value), base_of(param.unit)[0], base_of(param.unit)[0])
        if root == "profile" and name in self.profile:
            constant = self.profile[name]
            return Symbol(key, KINDS[constant.dtype], constant.unit, constant.unit)
        if root == "fired" and name in self.fired:
            return Symbol(f"fired.{self.fired[name]}", "bool")
        if root == "fired":
            raise SourceError(f"{key} is not among the rules in `after`", offset, nearest(name, self.fired))
        if root in ROOTS:
            known = self.params if root == "params" else self.profile
            raise SourceError(f"unknown name {key!r}", offset, nearest(name, known))
        hint = nearest(root, ROOTS) or f"only {', '.join(ROOTS)} have parts"
        raise SourceError(f"unknown name {key!r}", offset, hint)

    def _hint(self, name: str) -> str:
        if name in ROOTS:
            return f"write {name}.NAME"
        if name in self.params:
            return f"write params.{name}"
        if name in self.profile:
            return f"write profile.{name}"
        return nearest(name, [*self.signs, *self.columns, *(f"params.{param}" for param in self.params)])


def kind_of(value: Scalar) -> Kind:
    """The kind of a plain value."""
    if isinstance(value, bool):
        return "bool"
    return "text" if isinstance(value, str) else "number"


def param_values(params: Mapping[str, Param]) -> dict[str, Scalar]:
    """The parameters' values as conditions and advisors see them: numbers in the base unit."""
    return {
        name: to_base(param.value, param.unit)
        if isinstance(param.value, int | float) and not isinstance(param.value, bool)
        else param.value
        for name, param in params.items()
    }
