"""Evaluate checked conditions over whole columns, in three-valued logic.

Something not known (NaN, ``None``, a missing column, a division by zero, a variable that was not recorded) makes
what depends on it unknown, except where the rest decides: ``unknown and false`` is false, ``unknown or true`` is
true (Kleene). Unknown never quietly counts as false.

Numbers are float64: integers beyond 2**53 lose their last digits, so conditions judge durations and sizes, not
timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.contracts.columns import arrays_of
from advisor_core.rules.language.expression import Expression
from advisor_core.rules.language.nodes import Constant, Kind, Node, Operation, Reference, Sign, Symbol
from advisor_core.text.base import Scalar
from advisor_core.text.units import format_exact

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Values:
    """One value per row. Where ``known`` is false, ``values`` holds NaN, False or '' and means nothing."""

    values: npt.NDArray[Any]
    known: BoolArray

    @property
    def true(self) -> BoolArray:
        """Known to be true."""
        return np.asarray(self.values & self.known, dtype=np.bool_)

    @property
    def false(self) -> BoolArray:
        """Known to be false."""
        return np.asarray(self.known & ~self.values, dtype=np.bool_)

    def at(self, rows: npt.NDArray[np.intp]) -> Values:
        """Of some rows only."""
        return Values(self.values[rows], self.known[rows])


@dataclass(frozen=True)
class Explanation:
    """A part of a condition with the value it had, for ``advisor explain``. ``unit``: of a number's value."""

    source: str
    value: Scalar
    known: bool
    unit: str
    children: tuple[Explanation, ...]

    def lines(self, lang: str = "en", indent: int = 0) -> list[str]:
        """The tree as lines, a part and its value in each. Constants explain themselves and are left out."""
        shown = format_exact(self.value if self.known else None, self.unit, lang)
        inner = [line for child in self.children for line in child.lines(lang, indent + 1)]
        return [f"{'  ' * indent}{self.source} = {shown}", *inner]


def evaluate(expression: Expression, frame: pd.DataFrame, constants: Mapping[str, Scalar] | None = None) -> Values:
    """The expression for every row of ``frame``. ``constants``: values of ``params.x``, ``env.X``, ``profile.x``,
    ``fired.ID`` (parameters in base units); one that is missing, or None, is not known."""
    return Evaluator(frame, constants or {}).result(expression.root)


def explain(
    expression: Expression, row: Mapping[str, Scalar], constants: Mapping[str, Scalar] | None = None
) -> Explanation:
    """Every part of the expression with its value for one row (such as ``observation`` of a finding)."""
    columns = {symbol.key: pd.Series([row.get(symbol.key)], dtype=object) for symbol in expression.symbols}
    return _explain(expression.root, Evaluator(pd.DataFrame(columns, index=range(1)), constants or {}))


@dataclass(frozen=True)
class _Text:
    """Text as codes into distinct values, so that comparing costs as much as there are distinct values; -1 = unknown.
    A constant has a single code for all rows."""

    codes: npt.NDArray[np.int64]
    categories: Sequence[str]

    @property
    def known(self) -> BoolArray:
        return np.asarray(self.codes >= 0)

    def among(self, options: tuple[str, ...]) -> BoolArray:
        # The extra False at the end is what code -1 picks.
        return np.array([*(text in options for text in self.categories), False], dtype=np.bool_)[self.codes]

    def equals(self, other: _Text) -> BoolArray:
        codes = {text: code for code, text in enumerate(self.categories)}
        translated = np.array([*(codes.get(text, -1) for text in other.categories), -1], dtype=np.int64)[other.codes]
        return np.asarray(self.codes == translated)


class Evaluator:
    """Evaluates expressions over the rows of one frame. Intermediate results keep the shape they come in: constants are
    single values, numpy widens them. What was read of a column is kept: the conditions of a rule name the same few."""

    def __init__(
        self,
        frame: pd.DataFrame,
        constants: Mapping[str, Scalar],
        by_row: Mapping[str, Sequence[str | None]] | None = None,
    ) -> None:
        """``by_row``: texts among the constants that differ from row to row, such as ``profile.kind``."""
        self.rows = len(frame)
        self.held = dict(zip(frame.columns, arrays_of(frame), strict=True))
        self.constants = constants
        self.by_row = by_row or {}
        self.columns: dict[Symbol, Values] = {}
        self.texts: dict[str, _Text] = {}

    def evaluate(self, expression: Expression) -> Values:
        """The expression for every row."""
        return self.result(expression.root)

    def knows(self, symbol: Symbol) -> BoolArray:
        """For which rows the value of a name is known."""
        return self.result(Reference(symbol.key, 0, symbol.kind, symbol.base, symbol)).known

    def result(self, node: Node) -> Values:
        """The node's value for every row."""
        rows = self.rows
        found = self.text(node) if node.kind == "text" else self.plain(node)
        if isinstance(found, _Text):
            texts = np.array([*found.categories, ""], dtype=object)[found.codes]
            found = Values(np.asarray(texts, dtype=object), found.known)
        return Values(_for_rows(found.values, rows), _for_rows(found.known, rows))

    def text(self, node: Node) -> _Text:
        if isinstance(node, Constant):
            return _constant_text(node.value)
        assert isinstance(node, Reference)  # no operation gives text
        key = node.symbol.key
        if "." in key and key not in self.by_row:
            return _constant_text(self.constants.get(key))
        if key not in self.texts:
            self.texts[key] = self._text_column(key)
        return self.texts[key]

    def _text_column(self, key: str) -> _Text:
        if key in self.by_row:
            numbers, texts = pd.factorize(np.array(self.by_row[key], dtype=object))
            return _Text(numbers.astype(np.int64), texts.tolist())
        if key not in self.held:
            return _constant_text(None)
        column = self.held[key]
        if isinstance(column, pd.Categorical):
            return _Text(column.codes.astype(np.int64), column.categories.tolist())
        numbers, texts = pd.factorize(np.asarray(column, dtype=object))
        return _Text(numbers.astype(np.int64), texts.tolist())

    def plain(self, node: Node) -> Values:
        match node:
            case Constant(value=value):
                return _constant(value, node.kind)
            case Reference(symbol=symbol) if "." in symbol.key:
                return _constant(self.constants.get(symbol.key), node.kind)
            case Reference(symbol=symbol):
                return self.column(symbol)
            case Sign(meaning=meaning):
                return self.plain(meaning)
            case Operation(op="and" | "or" as op, operands=operands):
                return _kleene(op, [self.plain(operand) for operand in operands])
            case Operation(op="not", operands=(operand,)):
                inner = self.plain(operand)
                return Values(inner.false, inner.known)
            case Operation(op="neg", operands=(operand,)):
                inner = self.plain(operand)
                return Values(-inner.values, inner.known)
            case Operation(op="in", operands=(operand,), options=options):
                return self.membership(operand, options)
            case Operation(op="+" | "-" | "*" | "/" as op, operands=(left, right)):
                return _arithmetic(op, self.plain(left), self.plain(right))
            case Operation(op=op, operands=(left, right)):
                return self.comparison(op, left, right)
        raise AssertionError(node)

    def column(self, symbol: Symbol) -> Values:
        if symbol not in self.columns:
            self.columns[symbol] = self._column(symbol)
        return self.columns[symbol]

    def _column(self, symbol: Symbol) -> Values:
        if symbol.key not in self.held:
            return _constant(None, symbol.kind)
        column = np.asarray(self.held[symbol.key])
        if column.dtype.kind in "iub":  # these have no value for what is not known
            known = np.ones(len(column), dtype=np.bool_)
            plain = column.astype(np.bool_) if symbol.kind == "bool" else column.astype(np.float64) * symbol.factor
            return Values(plain, known)
        if column.dtype.kind == "f" and symbol.kind != "bool":
            return _finite(column * symbol.factor, np.True_)
        known = ~np.asarray(pd.isna(column))
        if symbol.kind == "bool":
            return Values(np.where(known, column, False).astype(np.bool_), known)
        return _finite(np.where(known, column, np.nan).astype(np.float64) * symbol.factor, known)

    def membership(self, operand: Node, options: tuple[Scalar, ...]) -> Values:
        if operand.kind == "text":
            text = self.text(operand)
            return Values(text.among(tuple(str(option) for option in options)), text.known)
        numbers = self.plain(operand)
        wanted = np.asarray(options, dtype=np.float64)
        return Values(np.isin(numbers.values, wanted) & numbers.known, numbers.known)

    def comparison(self, op: str, left: Node, right: Node) -> Values:
        if left.kind == "text":
            one, other = self.text(left), self.text(right)
            equal, both = one.equals(other), one.known & other.known
            return Values((equal if op == "==" else ~equal) & both, both)
        first, second = self.plain(left), self.plain(right)
        both = first.known & second.known
        return Values(_COMPARE[op](first.values, second.values) & both, both)


def _for_rows(values: Any, rows: int) -> Any:
    """The value for every row: what is a constant, as often as there are rows."""
    return values if values.shape == (rows,) else np.broadcast_to(values, rows)


_COMPARE: Mapping[str, Any] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
_COMPUTE: Mapping[str, Any] = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


@lru_cache(1024)
def _constant(value: Scalar, kind: Kind) -> Values:
    """A constant, the same for all rules that name it: it is read and not written."""
    if kind == "bool":
        return Values(np.asarray(bool(value)), np.asarray(value is not None))
    return _finite(np.asarray(np.nan if value is None else value, dtype=np.float64), np.True_)


def _constant_text(value: Scalar) -> _Text:
    code = np.asarray(-1 if value is None else 0, dtype=np.int64)
    return _Text(code, [] if value is None else [str(value)])


def _finite(numbers: npt.NDArray[np.float64], known: Any) -> Values:
    """Treat values that are not finite as not known: NaN by convention, infinities as the trace of a division by
    zero."""
    finite = np.isfinite(numbers) & known
    return Values(np.where(finite, numbers, np.nan), finite)


def _arithmetic(op: str, left: Values, right: Values) -> Values:
    with np.errstate(all="ignore"):
        return _finite(_COMPUTE[op](left.values, right.values), left.known & right.known)


def _kleene(op: str, operands: list[Values]) -> Values:
    decisive = "false" if op == "and" else "true"
    decided: Any = np.False_
    all_known: Any = np.True_
    for operand in operands:
        decided = decided | getattr(operand, decisive)
        all_known = all_known & operand.known
    is_known = decided | all_known
    return Values(is_known & (~decided if op == "and" else decided), is_known)


def _explain(node: Node, evaluator: Evaluator) -> Explanation:
    found = evaluator.result(node)
    is_known = bool(found.known[0])
    operands = node.operands if isinstance(node, Operation) else (node.meaning,) if isinstance(node, Sign) else ()
    children = tuple(_explain(operand, evaluator) for operand in operands if not isinstance(operand, Constant))
    value: Scalar = found.values[0].item() if node.kind != "text" else str(found.values[0])
    return Explanation(node.source, value if is_known else None, is_known, node.unit, children)
