"""The condition language: parsed and checked when a rule file is loaded, never executed as Python.

Names of observation columns, ``params.NAME``, ``env.NAME``, ``profile.NAME``, ``fired.ID``; numbers, 'text',
``true``, ``false``; ``+ - * /``, comparisons (chained too), ``in`` and ``not in`` over a list of constants, ``and or
not``, parentheses. Nothing else: a rule file from a stranger is data, not a program.

Two gates guard the parse. The first allows only the words and signs above, so that Python's parser never sees a
backslash, a comment, an exotic number or a letter that looks like another. The second allows only the tree nodes
above. The result is our own tree, with a kind and a unit on every node; `evaluate.py` computes it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

from advisor_core.contracts.problems import SourceError, shorten
from advisor_core.rules.language.nodes import Constant, Kind, Node, Operation, Reference, Sign, Symbol, walk
from advisor_core.rules.language.scope import Scope, kind_of

MAX_LENGTH = 500
MAX_NESTING = 30
MAX_NUMBER = 2.0**63

_TOKEN = re.compile(
    r"""[ ]+
    | (?P<number> (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+) (?:[eE][-+]?[0-9]+)? ) (?![A-Za-z0-9_.])
    | (?P<name> [A-Za-z][A-Za-z0-9_]* (?:\.[A-Za-z_][A-Za-z0-9_]*)? )
    | '[^'\\]*' | "[^"\\]*"
    | (?P<sign> [<>=!]=|[<>]|[-+*/(),] | \[ | \] )
    """,
    re.VERBOSE,
)
_NOTHING_AFTER = re.compile(r"[.\w'\"]")
_HINTS = {
    "=": "compare with ==",
    "&": "write and",
    "|": "write or",
    "!": "write not",
    "%": "write the ratio: 0.1 for 10 %",
    "\\": "no escapes in text",
    "#": "no comments in conditions",
}
_PYTHON_WORDS = {"if", "else", "is", "lambda", "for", "await", "yield", "True", "False", "None"}
_INSTEAD = {
    "True": "write true",
    "False": "write false",
    "None": "what is not known is neither equal nor unequal to anything",
    "is": "compare with ==",
}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_CALLED: dict[Kind, str] = {"number": "a number", "text": "text", "bool": "a condition"}


@dataclass(frozen=True)
class Expression:
    """A checked condition or amount."""

    source: str
    root: Node

    @cached_property
    def symbols(self) -> tuple[Symbol, ...]:
        """Every name in it, once, in order of appearance."""
        return tuple(dict.fromkeys(node.symbol for node in walk(self.root) if isinstance(node, Reference)))


def parse(source: str | float, scope: Scope, *, want: Kind = "bool", unit: str = "") -> Expression:
    """Read and check a condition, or with ``want="number"`` an amount in ``unit``.

    A plain number or boolean, as YAML gives it, stands for itself. Raises `SourceError`.
    """
    text = as_written(source)
    if len(text) > MAX_LENGTH:
        raise SourceError(f"condition is longer than {MAX_LENGTH} characters", 0, "move arithmetic into the advisor")
    flat = re.sub(r"[\t\n\r\f\v]", " ", text)
    _check_words(flat)
    try:
        tree = ast.parse(flat, mode="eval")
    except SyntaxError as error:
        message = f"cannot be read as a condition: {error.msg}"
        raise SourceError(message, max(0, min((error.offset or 1) - 1, len(text)))) from None
    except (RecursionError, MemoryError, ValueError, OverflowError):
        raise SourceError(f"condition is nested deeper than {MAX_NESTING} levels") from None
    root = _Checker(flat, scope).node(tree.body, 1)
    _expect(root, want)
    if not _compatible(root.unit, unit):
        raise SourceError(f"{shorten(root.source)!r} is in {root.unit}, but {unit} is needed", root.start)
    return Expression(text, root)


def as_written(source: str | float) -> str:
    """The text of a condition or amount, also of a plain number or boolean."""
    return (str(source).lower() if isinstance(source, bool) else str(source)).strip()


def _check_words(text: str) -> None:
    """The first gate: nothing but the words and signs of the language, nested within reason."""
    position = depth = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            _refuse_character(text, position)
        if token["sign"] in {"(", "["}:
            depth += 1
            if depth > MAX_NESTING:
                raise SourceError(f"condition is nested deeper than {MAX_NESTING} levels", position)
        elif token["sign"] in {")", "]"}:
            depth -= 1
        elif token["name"] in _PYTHON_WORDS:
            hint = _INSTEAD.get(token["name"], "not part of the condition language")
            raise SourceError(f"{token['name']!r} is not allowed", position, hint)
        elif token["name"] and _NOTHING_AFTER.match(text, token.end()):
            _refuse_character(text, token.end())
        position = token.end()


def _refuse_character(text: str, position: int) -> NoReturn:
    character = text[position]
    if character in {"'", '"'}:
        raise SourceError("text is not closed, or stands where it cannot", position)
    if character.isdigit():
        raise SourceError("not a plain number", position, "write decimal digits, such as 1000 or 0.25")
    shown = repr(character) if character.isascii() else f"{character!r} (U+{ord(character):04X})"
    raise SourceError(f"character {shown} is not allowed", position, _HINTS.get(character, ""))


class _Checker:
    """The second gate: builds our tree from the allowed nodes of Python's, with kinds and units checked."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.text = text
        self.scope = scope
        self.bytes = text.encode()

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Start and end in characters; Python counts bytes."""
        end = node.end_col_offset or node.col_offset
        return len(self.bytes[: node.col_offset].decode()), len(self.bytes[:end].decode())

    def node(self, node: ast.expr, depth: int) -> Node:
        start, end = self.span(node)
        source = self.text[start:end]
        if depth > MAX_NESTING:
            raise SourceError(f"condition is nested deeper than {MAX_NESTING} levels", start)
        match node:
            case ast.Constant(value=str() | int() | float() as value):
                return self.constant(value, source, start)
            case ast.Name(id="true" | "false" as word):
                return Constant(source, start, "bool", "", word == "true")
            case ast.Name(id=name) if name in self.scope.signs:
                return Sign(source, start, "bool", "", name, self.scope.signs[name])
            case ast.Name(id=name):
                return self.reference(self.scope.column(name, start), source, start)
            case ast.Attribute(value=ast.Name(id=root), attr=name):
                return self.reference(self.scope.member(root, name, start), source, start)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                operand = self.node(inner, depth + 1)
                _expect(operand, "number")
                return Operation(source, start, "number", operand.unit, "neg", (operand,))
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                operand = self.node(inner, depth + 1)
                _expect(operand, "bool")
                return Operation(source, start, "bool", "", "not", (operand,))
            case ast.BinOp(op=op) if type(op) in _ARITHMETIC:
                return self.arithmetic(_ARITHMETIC[type(op)], node, source, start, depth)
            case ast.BoolOp(op=op, values=values):
                operands = tuple(self.node(value, depth + 1) for value in values)
                for operand in operands:
                    _expect(operand, "bool")
                return Operation(source, start, "bool", "", "and" if isinstance(op, ast.And) else "or", operands)
            case ast.Compare():
                return self.comparison(node, source, start, depth)
        raise SourceError(f"{shorten(source)!r} is not part of the condition language", start)

    def constant(self, value: str | float, source: str, start: int) -> Node:
        if not isinstance(value, str) and abs(value) > MAX_NUMBER:
            raise SourceError(f"number {shorten(source, 20)} is too large", start)
        return Constant(source, start, kind_of(value), "", value)

    def reference(self, symbol: Symbol, source: str, start: int) -> Node:
        return Reference(source, start, symbol.kind, symbol.base, symbol)

    def arithmetic(self, op: str, node: ast.BinOp, source: str, start: int, depth: int) -> Node:
        left, right = self.node(node.left, depth + 1), self.node(node.right, depth + 1)
        for operand in (left, right):
            _expect(operand, "number", f"{op!r} needs numbers, but ")
        if op in "+-":
            _same_unit(left, right, "added to" if op == "+" else "subtracted from")
            unit = left.unit or right.unit
        else:
            unit = _product(op, left, right)
        return Operation(source, start, "number", unit, op, (left, right))

    def comparison(self, node: ast.Compare, source: str, start: int, depth: int) -> Node:
        ops = [_COMPARISONS.get(type(op)) for op in node.ops]
        if None in ops:
            raise SourceError(f"{shorten(source)!r} is not part of the condition language", start)
        if "in" in ops or "not in" in ops:
            if len(ops) > 1:
                raise SourceError("'in' cannot be chained with other comparisons", start, "use parentheses and `and`")
            return self.membership(node, source, start, depth)
        operands = [self.node(part, depth + 1) for part in (node.left, *node.comparators)]
        pairs = []
        for op, left, right in zip(ops, operands[:-1], operands[1:], strict=True):
            assert op is not None
            self.check_pair(op, left, right)
            pair = f"{left.source} {op} {right.source}"
            pairs.append(Operation(pair, left.start, "bool", "", op, (left, right)))
        if len(pairs) == 1:
            return Operation(source, start, "bool", "", pairs[0].op, pairs[0].operands)
        return Operation(source, start, "bool", "", "and", tuple(pairs))

    def check_pair(self, op: str, left: Node, right: Node) -> None:
        if left.kind != right.kind:
            hint = ""
            for text, number in ((left, right), (right, left)):
                if text.kind == "text" and isinstance(number, Constant) and number.kind == "number":
                    hint = f"write '{number.value}'"
            message = (
                f"{shorten(left.source)!r} is {_CALLED[left.kind]}, but "
                f"{shorten(right.source)!r} is {_CALLED[right.kind]}: they cannot be compared"
            )
            raise SourceError(message, left.start, hint)
        if op not in {"==", "!="} and left.kind != "number":
            raise SourceError(f"{op!r} compares numbers only", left.start, "for text there are == != in")
        _same_unit(left, right, "compared with")

    def membership(self, node: ast.Compare, source: str, start: int, depth: int) -> Node:
        left = self.node(node.left, depth + 1)
        (container,) = node.comparators
        place = self.span(container)[0]
        if not isinstance(container, ast.Tuple | ast.List):
            hint = f"write ({self.text[slice(*self.span(container))]},)" if isinstance(container, ast.Constant) else ""
            raise SourceError("'in' needs a list of constants, such as ('a', 'b')", place, hint)
        options = []
        for element in container.elts:
            inner = self.node(element, depth + 2)
            negative = isinstance(inner, Operation) and inner.op == "neg"
            constant = inner.operands[0] if isinstance(inner, Operation) and negative else inner
            if not isinstance(constant, Constant) or constant.kind == "bool":
                raise SourceError("'in' needs a list of numbers or texts as they are", inner.start)
            if constant.kind != left.kind:
                message = (
                    f"{shorten(left.source)!r} is {_CALLED[left.kind]}, but the list has {shorten(inner.source)!r}"
                )
                raise SourceError(message, inner.start)
            options.append(-constant.value if negative and not isinstance(constant.value, str) else constant.value)
        if not options:
            raise SourceError("the list after 'in' is empty", place)
        if isinstance(node.ops[0], ast.In):
            return Operation(source, start, "bool", "", "in", (left,), tuple(options))
        inside = Operation(source.replace(" not ", " ", 1), start, "bool", "", "in", (left,), tuple(options))
        return Operation(source, start, "bool", "", "not", (inside,))


def _expect(node: Node, kind: Kind, prefix: str = "") -> None:
    if node.kind != kind:
        needed = "" if prefix else f", but {_CALLED[kind]} is needed here"
        hint = "compare it with something" if kind == "bool" else ""
        raise SourceError(f"{prefix}{shorten(node.source)!r} is {_CALLED[node.kind]}{needed}", node.start, hint)


def _compatible(left: str, right: str) -> bool:
    return not left or not right or left == right


def _same_unit(left: Node, right: Node, what: str) -> None:
    if not _compatible(left.unit, right.unit):
        message = f"{shorten(left.source)!r} in {left.unit} cannot be {what} {shorten(right.source)!r} in {right.unit}"
        raise SourceError(message, left.start)


_PLAIN = ("ratio", "count")


def _product(op: str, left: Node, right: Node) -> str:
    """The unit of a product or quotient where it is certain; '' otherwise, which goes with anything.

    Ratios and counts leave the other's unit alone. A bare number may be a conversion, so nothing is certain then.
    """
    if left.unit in _PLAIN and right.unit in _PLAIN:
        return left.unit if op == "*" and left.unit == right.unit else ""
    if right.unit in _PLAIN:
        return left.unit
    return right.unit if op == "*" and left.unit in _PLAIN else ""
