"""The tree of a condition: what it consists of once it is read and checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from advisor_core.text.base import Scalar

Kind = Literal["number", "text", "bool"]


@dataclass(frozen=True)
class Symbol:
    """A name that resolved. ``key`` is how values are looked up when the rule is judged: the column's name, or
    ``params.x``, ``env.X``, ``profile.x``, ``fired.ID``. ``base``: ``unit`` or what it converts to; ``factor``:
    by how much."""

    key: str
    kind: Kind
    unit: str = ""
    base: str = ""
    factor: float = 1.0


@dataclass(frozen=True)
class Node:
    """``source``: the part of the condition that it was read from, starting at ``start``. ``unit``: the base unit of
    a number; '' goes with any unit (literals, products)."""

    source: str
    start: int
    kind: Kind
    unit: str


@dataclass(frozen=True)
class Constant(Node):
    value: bool | int | float | str


@dataclass(frozen=True)
class Reference(Node):
    symbol: Symbol


@dataclass(frozen=True)
class Sign(Node):
    """A condition that the rule gave a name, under that name."""

    name: str
    meaning: Node


@dataclass(frozen=True)
class Operation(Node):
    """``op``: ``+ - * / neg < <= > >= == != in and or not``. ``a < b < c`` is ``and`` over its two comparisons,
    ``not in`` is ``not`` over ``in``. ``options``: what follows ``in``."""

    op: str
    operands: tuple[Node, ...]
    options: tuple[Scalar, ...] = ()


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, from left to right."""
    yield node
    if isinstance(node, Sign):
        yield from walk(node.meaning)
    elif isinstance(node, Operation):
        for operand in node.operands:
            yield from walk(operand)
