"""Operators and collectives side by side, also where a side lists only its largest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor_core.compare.compare import compare
from advisor_core.compare.match import matched
from advisor_core.compare.same_work import other_count, other_shapes
from advisor_core.compare.work import changed, shape_differences, type_differences
from advisor_core.result.work import Work
from tests.compare.results import result, step, work

LEDGER = [step({"compute/matmul": 1000})]


def rows(before: Work, after: Work):  # type: ignore[no-untyped-def]
    return shape_differences(matched(result(LEDGER, work=[before]), result(LEDGER, work=[after])))


def test_a_difference_is_of_count_and_of_time_per_call() -> None:
    (row,) = rows(work(("Mul", "8", 4, 400)), work(("Mul", "8", 6, 480)))
    assert (row.difference_ns, row.by_count_ns, row.by_time_ns, row.change) == (80, 200, -120, "calls")


def test_per_step_of_a_rank() -> None:
    (row,) = rows(work(("Mul", "8", 4, 400), rank_steps=4), work(("Mul", "8", 3, 600), rank_steps=2))
    assert (row.calls_before, row.calls_after, row.before_ns, row.after_ns) == (1.0, 1.5, 100, 300)


def test_what_came_and_went() -> None:
    told = {row.type: (row.change, row.by_count_ns) for row in rows(work(("A", "8", 1, 50)), work(("B", "8", 1, 70)))}
    assert told == {"A": ("gone", -50), "B": ("new", 70)}


def test_a_type_is_the_sum_of_its_shapes_with_those_that_did_not_change() -> None:
    shapes = rows(work(("A", "8", 1, 50), ("A", "9", 2, 60)), work(("A", "8", 1, 50), ("A", "10", 2, 90)))
    (total,) = type_differences(shapes)
    assert (total.calls_before, total.calls_after, total.before_ns, total.after_ns) == (3, 3, 110, 140)
    assert (total.by_count_ns, total.by_time_ns) == (0, 30)
    assert [row.shapes for row in changed(shapes)] == ["10", "9"]


def test_shapes_that_one_side_does_not_record_are_not_compared() -> None:
    (row,) = rows(work(("A", "8", 1, 50), ("A", "9", 2, 60)), work(("A", "", 3, 90)))
    assert (row.shapes, row.calls_before, row.calls_after, row.by_time_ns) == (None, 3, 3, -20)


def test_what_may_not_be_listed_is_neither_gone_nor_new() -> None:
    before = work(("A", "8", 1, 50), ("A", None, 9, 20), (None, None, 5, 5))
    after = work(("A", "8", 1, 40), ("A", "9", 1, 30), ("B", "1", 1, 10))
    told = {(row.type, row.shapes): (row.before_ns, row.after_ns) for row in rows(before, after)}
    assert told == {("A", "8"): (50, 40), ("A", None): (20, 30), (None, None): (5, 10)}


amounts = st.tuples(st.integers(1, 50), st.integers(0, 10**9))
listed = st.dictionaries(st.tuples(st.sampled_from("ABC"), st.sampled_from(["1", "2", None])), amounts)


@given(listed, listed, st.booleans(), st.integers(1, 3))
def test_nothing_is_lost(
    before: dict[tuple[str, str | None], tuple[int, int]],
    after: dict[tuple[str, str | None], tuple[int, int]],
    rest: bool,
    steps: int,
) -> None:
    sides = [
        work(
            *((kind, shapes, *amount) for (kind, shapes), amount in side.items()),
            *([(None, None, 1, 7)] if rest else []),
        )
        for side in (before, after)
    ]
    told = rows(*sides)
    assert sum(row.before_ns for row in told) == sum(row.ns for row in sides[0].operators)
    assert sum(row.after_ns for row in told) == sum(row.ns for row in sides[1].operators)
    assert all(row.by_count_ns + row.by_time_ns == row.difference_ns for row in told)
    totals = type_differences(told)
    assert sum(row.difference_ns for row in totals) == sum(row.difference_ns for row in told)
    assert all(row.after_ns - row.before_ns == row.difference_ns for row in totals)


MANY = (("MatMul", "8,8", 4, 400), ("Add", "8", 8, 80), ("Mul", "8", 8, 80), ("Adam", "64", 1, 90))


def test_another_batch_is_another_work() -> None:
    larger = work(("MatMul", "16,8", 4, 800), ("Add", "16", 8, 160), ("Mul", "16", 8, 160), ("Adam", "64", 1, 90))
    assert other_shapes(work(*MANY), larger)
    assert not other_shapes(work(*MANY), work(*MANY))


def test_another_format_of_the_products_is_not() -> None:
    blocked = work(("MatMul", "1,1,16,16", 4, 300), *MANY[1:])
    assert not other_shapes(work(*MANY), blocked)


def test_a_fused_operator_is_not() -> None:
    fused = work(*MANY[:2], ("MulAdd", "8", 8, 90), ("Adam", "64", 1, 90))
    assert not other_shapes(work(*MANY), fused) and other_count(work(*MANY), fused) is None


def test_twice_the_layers_are_another_work() -> None:
    deeper = work(*((kind, shapes, 2 * calls, 2 * ns) for kind, shapes, calls, ns in MANY[:3]), MANY[3])
    assert other_count(work(*MANY), deeper) == 2
    assert other_count(work(*MANY), work(*MANY)) is None


def test_unknown_operators_are_said_and_not_gone() -> None:
    told = compare(result(LEDGER, work=[work(*MANY)]), result(LEDGER))
    assert told.operators == [] and "operators" in told.withheld
    assert "no_work" in [obstacle.about for obstacle in told.obstacles]
