"""Conditions over columns, checked against an interpreter of single rows that knows nothing of numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.columns import Column
from advisor_core.rules.language.evaluate import evaluate, explain
from advisor_core.rules.language.expression import parse
from advisor_core.rules.language.scope import Scope
from advisor_core.rules.model import Param
from advisor_core.text.base import Scalar

SCOPE = Scope(
    {
        **{name: Column(name, "float", "", "") for name in ("n1", "n2")},
        **{name: Column(name, "text", "", "") for name in ("t1", "t2")},
        **{name: Column(name, "bool", "", "") for name in ("b1", "b2")},
    },
    {"p": Param(value=3, unit="", why="for this test only"), "t": Param(value="a", unit="", why="for this test only")},
    {"kind": Column("kind", "text", "", ""), "steps": Column("steps", "int", "", "")},
    {"HD001": "HD001"},
)

# A condition as a tree of our own: the test never asks the parser what a text means.
Tree = tuple[Any, ...]
numbers = st.sampled_from([0.0, 1.0, 2.0, 3.0, 0.5, 9e18, 7.25])
words = st.sampled_from(["a", "b", "算子", "", "x y"])


def trees() -> tuple[st.SearchStrategy[Tree], st.SearchStrategy[Tree]]:
    number: st.SearchStrategy[Tree] = st.recursive(
        st.one_of(
            st.tuples(st.just("literal"), numbers),
            st.tuples(st.just("name"), st.sampled_from(["n1", "n2", "params.p", "profile.steps"])),
        ),
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["+", "-", "*", "/"]), inner, inner), st.tuples(st.just("neg"), inner)
        ),
        max_leaves=5,
    )
    text = st.one_of(
        st.tuples(st.just("literal"), words),
        st.tuples(st.just("name"), st.sampled_from(["t1", "t2", "params.t", "profile.kind", "env.X"])),
    )
    compare = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    equal = st.sampled_from(["==", "!="])
    member = st.sampled_from(["in", "not in"])
    leaf: st.SearchStrategy[Tree] = st.one_of(
        st.tuples(st.just("literal"), st.booleans()),
        st.tuples(st.just("name"), st.sampled_from(["b1", "b2", "fired.HD001"])),
        st.tuples(compare, number, number),
        st.tuples(st.just("chain"), number, compare, number, compare, number),
        st.tuples(equal, text, text),
        st.tuples(member, number, st.lists(numbers, min_size=1, max_size=3).map(tuple)),
        st.tuples(member, text, st.lists(words, min_size=1, max_size=3).map(tuple)),
    )
    condition: st.SearchStrategy[Tree] = st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["and", "or"]), inner, inner),
            st.tuples(st.just("not"), inner),
            st.tuples(equal, inner, inner),
        ),
        max_leaves=6,
    )
    return number, condition


NUMBERS, CONDITIONS = trees()


def source(tree: Tree) -> str:
    match tree:
        case ("literal", bool() as value):
            return "true" if value else "false"
        case ("literal", value):
            return repr(value)
        case ("name", name):
            return str(name)
        case ("neg", inner):
            return f"(-{source(inner)})"
        case ("not", inner):
            return f"(not {source(inner)})"
        case ("chain", a, one, b, two, c):
            return f"({source(a)} {one} {source(b)} {two} {source(c)})"
        case ("in" | "not in" as op, left, options):
            return f"({source(left)} {op} ({', '.join(map(repr, options))},))"
        case (op, left, right):
            return f"({source(left)} {op} {source(right)})"
    raise AssertionError(tree)


def interpret(tree: Tree, row: Mapping[str, Any]) -> Any:
    """The value for one row; ``None`` for unknown."""
    match tree:
        case ("literal", value):
            return value
        case ("name", name):
            return row.get(name)
        case ("neg", inner):
            value = interpret(inner, row)
            return None if value is None else -value
        case ("not", inner):
            value = interpret(inner, row)
            return None if value is None else not value
        case ("and", left, right):
            both = [interpret(left, row), interpret(right, row)]
            return False if False in both else None if None in both else True
        case ("or", left, right):
            both = [interpret(left, row), interpret(right, row)]
            return True if True in both else None if None in both else False
        case ("chain", a, one, b, two, c):
            return interpret(("and", (one, a, b), (two, b, c)), row)
        case ("in" | "not in" as op, left, options):
            value = interpret(left, row)
            return None if value is None else (value in options) == (op == "in")
        case (op, left, right):
            return combine(op, interpret(left, row), interpret(right, row))
    raise AssertionError(tree)


def combine(op: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    if op in "+-*/":
        try:
            value = {"+": left.__add__, "-": left.__sub__, "*": left.__mul__, "/": left.__truediv__}[op](right)
        except (ZeroDivisionError, OverflowError):
            return None
        return value if math.isfinite(value) else None
    return {
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
        "==": lambda: left == right,
        "!=": lambda: left != right,
    }[op]()


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


rows = st.lists(
    st.fixed_dictionaries(
        {
            **{name: maybe(st.sampled_from([0.0, 1.0, -2.0, 3.0, 1e200])) for name in ("n1", "n2")},
            **{name: maybe(words) for name in ("t1", "t2")},
            **{name: maybe(st.booleans()) for name in ("b1", "b2")},
        }
    ),
    max_size=6,
)
constants = st.fixed_dictionaries(
    {"params.p": st.just(3.0), "params.t": st.just("a")},
    optional={
        "profile.steps": maybe(st.sampled_from([0.0, 3.0])),
        "profile.kind": maybe(words),
        "env.X": words,
        "fired.HD001": maybe(st.booleans()),
    },
)


def as_frame(records: list[dict[str, Any]], how: str) -> pd.DataFrame:
    """The same rows in the dtypes that advisors produce."""
    columns: dict[str, Any] = {}
    for name in ("n1", "n2", "t1", "t2", "b1", "b2"):
        values = [record[name] for record in records]
        if name[0] == "n":
            columns[name] = (
                pd.array(values, dtype="Float64") if how == "nullable" else np.array(values, dtype=np.float64)
            )
        elif name[0] == "t":
            columns[name] = pd.Categorical(values) if how == "numpy" else pd.array(values, dtype="str")
        else:
            columns[name] = pd.array(values, dtype="boolean" if how == "nullable" else object)
    return pd.DataFrame(columns)


@given(CONDITIONS, rows, constants, st.sampled_from(["numpy", "nullable"]))
def test_agrees_with_row_by_row(tree: Tree, records: list[dict[str, Any]], given_: dict[str, Scalar], how: str) -> None:
    text = source(tree)
    if len(text) > 500:
        return
    result = evaluate(parse(text, SCOPE), as_frame(records, how), given_)
    expected = [interpret(tree, {**record, **given_}) for record in records]
    assert list(result.known) == [value is not None for value in expected]
    assert list(result.true) == [value is True for value in expected]
    assert list(result.false) == [value is False for value in expected]


@given(NUMBERS, rows, constants)
def test_amounts_agree_with_row_by_row(tree: Tree, records: list[dict[str, Any]], given_: dict[str, Scalar]) -> None:
    expression = parse(source(tree), SCOPE, want="number")
    result = evaluate(expression, as_frame(records, "numpy"), given_)
    for number, record in enumerate(records):
        expected = interpret(tree, {**record, **given_})
        assert bool(result.known[number]) == (expected is not None)
        assert expected is None or result.values[number] == expected
    for record in records[:1]:
        assert explain(expression, record, given_).value == interpret(tree, {**record, **given_})


def check(text: str, frame: pd.DataFrame, scope: Scope, **given_: Scalar) -> list[bool | None]:
    result = evaluate(parse(text, scope), frame, given_)
    return [bool(v) if k else None for v, k in zip(result.values, result.known, strict=True)]


def test_units_are_converted(frame: pd.DataFrame, scope: Scope) -> None:
    assert check("gap_us > 2500", frame, scope) == [False, False, True, True, None]  # in ns
    assert check("gap_us >= idle_ns / 40 - 500", frame.assign(idle_ns=60_000), scope) == [True] * 4 + [None]


def test_unknown_decides_nothing_by_itself(frame: pd.DataFrame, scope: Scope) -> None:
    assert check("late and launches > 0", frame, scope) == [True, False, None, False, None]
    assert check("late or launches > 0", frame, scope) == [True, True, True, True, True]
    assert check("kernel != 'Add'", frame, scope) == [True, True, False, True, None]
    assert check("number / (number - 1) > 0", frame, scope) == [None, True, True, True, True]
    assert check("env.X == '2'", frame, scope) == [None] * 5
    assert check("env.X == ''", frame, scope, **{"env.X": ""}) == [True] * 5
    assert check("fired.HD001", frame, scope, **{"fired.HD001": None}) == [None] * 5


def test_a_column_that_is_not_there_is_unknown(frame: pd.DataFrame, scope: Scope) -> None:
    without = frame.drop(columns=["idle_ns", "kernel", "late"])
    for text in ("idle_ns > 1", "kernel == 'a'", "kernel in ('a',)", "late"):
        assert check(text, without, scope) == [None] * 5


@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_text_in_any_dtype(dtype: Any, frame: pd.DataFrame, scope: Scope) -> None:
    values = frame.assign(kernel=pd.Series(["a", "b", None, "a", "c"], dtype=object, index=frame.index).astype(dtype))
    assert check("kernel in ('a', 'c')", values, scope) == [True, False, None, True, True]
    assert check("kernel == params.word", values, scope, **{"params.word": "b"}) == [False, True, None, False, False]


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "Int64", "Float64", object])
def test_numbers_in_any_dtype(dtype: Any, frame: pd.DataFrame, scope: Scope) -> None:
    values = frame.assign(launches=pd.Series([1, 2, 3, 4, 5], index=frame.index).astype(dtype))
    assert check("launches > 2", values, scope) == [False, False, True, True, True]


def test_no_rows(frame: pd.DataFrame, scope: Scope) -> None:
    assert check("kernel == 'a' and launches > 0 and late", frame.iloc[:0], scope) == []


def test_many_rows_take_no_time(scope: Scope) -> None:
    """Two million rows: a loop over them would take seconds."""
    count = 2_000_000
    frame = pd.DataFrame(
        {"idle_ns": np.arange(count), "kernel": pd.Categorical.from_codes(np.arange(count) % 3, ["a", "b", "c"])}
    )
    result = evaluate(parse("idle_ns >= 1000 and kernel in ('a', 'b')", scope), frame)
    assert int(result.true.sum()) == 1_332_667


def test_explanation_is_a_tree_of_parts(scope: Scope) -> None:
    expression = parse("gap_us >= params.min_gap and not (late or idle_share < params.share)", scope)
    row: dict[str, Scalar] = {"gap_us": 60.0, "late": None, "idle_share": 0.05}
    tree = explain(expression, row, {"params.min_gap": 50_000, "params.share": 0.1})
    assert tree.lines() == [
        "gap_us >= params.min_gap and not (late or idle_share < params.share) = no",
        "  gap_us >= params.min_gap = yes",
        "    gap_us = 60,000 ns",
        "    params.min_gap = 50,000 ns",
        "  not (late or idle_share < params.share) = no",
        "    late or idle_share < params.share = yes",
        "      late = unknown",
        "      idle_share < params.share = yes",
        "        idle_share = 5 %",
        "        params.share = 10 %",
    ]
    assert [child.source for child in explain(parse("1 < launches <= 3", scope), {"launches": 2}).children] == [
        "1 < launches",
        "launches <= 3",
    ]
    assert explain(parse("kernel not in ('a', 'b')", scope), {"kernel": "x"}).lines("zh") == [
        "kernel not in ('a', 'b') = 是",
        "  kernel in ('a', 'b') = 否",
        "    kernel = x",
    ]
