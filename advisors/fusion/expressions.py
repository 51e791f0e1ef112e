"""Expressions of computations, as ``computations.yaml`` writes them, read into trees."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

ROLES = (
    *("row", "column", "equal", "pair", "single", "bias", "weighted", "halves", "parts", "narrow", "append"),
    *("quantises", "restores", "turns", "turned"),
)
_TOKEN = re.compile(r"\s*([=%+]*[@~^!]?)(?:\*\{([a-z_,\s]+)\}|([a-z_]+(?:\|[a-z_]+)*))(?:\.([a-z]+))?(\??)\s*")
_ANY = ("x", "y")
_GIVEN = "weight"


@dataclass(frozen=True)
class Expression:
    """A step and what it reads. ``operations``: either of them; none stands for any tensor. ``role``: one of `ROLES`,
    '' for any. ``optional``: the step may be missing. ``repeated``: any number of these operations in a row.
    ``anchor``: the search begins here. ``beside``: it has to be there, and neither it nor what lies below it or between
    belongs to the computation; so have all steps below it. ``close``: that, and it stands right before its reader.
    ``latest``: no other kernel wrote such a tensor between it and its reader; ``beside`` steps are that as well.
    ``whole``: its result is as large as that of its reader, and not extended there. ``half``: half as large.
    ``shaped``: no copy between the two changes the shape or the length of rows. These three hold on the way from the
    anchor to the result. ``given``: a tensor that no kernel nearby wrote, but copies of it. ``behind``: of the result
    of a whole expression: another one that stands right behind it."""

    operations: tuple[str, ...]
    operands: tuple[Expression, ...] = ()
    role: str = ""
    optional: bool = False
    repeated: bool = False
    anchor: bool = False
    beside: bool = False
    close: bool = False
    latest: bool = False
    whole: bool = False
    half: bool = False
    shaped: bool = False
    given: bool = False
    behind: Expression | None = None

    @property
    def constrains(self) -> bool:
        """Whether not every tensor will do."""
        return self.given or bool(self.operations)

    def steps(self) -> list[Expression]:
        """This step and all below it, and those of the expression behind."""
        behind = self.behind.steps() if self.behind else []
        return [self, *(step for operand in self.operands for step in operand.steps()), *behind]

    def above_anchor(self) -> tuple[Expression, ...]:
        """The steps from the anchor to the result; empty if the anchor is not among them."""
        if self.anchor:
            return (self,)
        for operand in self.operands:
            if path := operand.above_anchor():
                return (*path, self)
        return ()


def parse(text: str) -> Expression:
    """Read an expression. Raises ValueError that says where it cannot be read, and where it has not one anchor."""
    first, separator, rest = text.partition("&")
    if separator:
        return replace(parse(first), behind=parse(rest))
    expression, end = _read(text, 0)
    if text[end:].strip():
        raise ValueError(f"{text!r}: cannot be read from {text[end:]!r} on")
    anchors = sum(step.anchor for step in expression.steps())
    if anchors != 1:
        raise ValueError(f"{text!r}: has {anchors} anchors (@) where it needs one")
    return expression


def _read(text: str, start: int, *, beside: bool = False, close: bool = False) -> tuple[Expression, int]:
    token = _TOKEN.match(text, start)
    if token is None:
        raise ValueError(f"{text!r}: an operation should stand at {text[start:]!r}")
    mark, repeated, alternatives, role, optional = token.groups()
    if role is not None and role not in ROLES:
        raise ValueError(f"{text!r}: no role {role!r}; there are {', '.join(ROLES)}")
    names = [name.strip() for name in repeated.split(",")] if repeated else alternatives.split("|")
    operations = () if tuple(names) in [(name,) for name in (*_ANY, _GIVEN)] else tuple(names)
    close = close or "^" in mark
    beside = beside or close or "~" in mark
    operands, end = _operands(text, token.end(), beside=beside, close=close)
    if (optional or repeated) and len(operands) > 1:
        raise ValueError(f"{text!r}: a step that may be missing reads one operand")
    step = Expression(
        operations,
        operands,
        role or "",
        bool(optional),
        bool(repeated),
        "@" in mark,
        beside,
        close,
        latest=beside or "!" in mark,
        whole="=" in mark,
        half="%" in mark,
        shaped="+" in mark,
        given=names == [_GIVEN],
    )
    return step, end


def _operands(text: str, start: int, *, beside: bool, close: bool) -> tuple[tuple[Expression, ...], int]:
    if start >= len(text) or text[start] != "(":
        return (), start
    operands = []
    end = start
    while text[end : end + 1] in ("(", ","):
        operand, end = _read(text, end + 1, beside=beside, close=close)
        operands.append(operand)
    if text[end : end + 1] != ")":
        raise ValueError(f"{text!r}: a bracket should close at {text[end:]!r}")
    return tuple(operands), end + 1
