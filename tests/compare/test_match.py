"""Which rank and which step is which."""

from __future__ import annotations

from advisor_core.compare.match import matched
from tests.compare.results import result, step

ONE = {"compute/matmul": 10}


def pairs(before: list[int], after: list[int], old: dict[str, int] | None = None, new: dict[str, int] | None = None):  # type: ignore[no-untyped-def]
    found = matched(
        result([step(ONE, rank) for rank in before], profile={"parallel": old or {}}),
        result([step(ONE, rank) for rank in after], profile={"parallel": new or {}}),
    )
    return [(own[1], other[1]) for own, other in found.pairs], found.unmatched


def test_ranks_go_by_number() -> None:
    assert pairs([0, 1, 2], [1, 2, 3]) == ([(1, 1), (2, 2)], ([(None, 0)], [(None, 3)]))


def test_one_rank_on_each_side_is_compared() -> None:
    assert pairs([3], [1])[0] == [(3, 1)]
    assert pairs([3], [1, 2])[0] == []


def test_ranks_of_other_layouts_go_by_their_place() -> None:
    """Pipelines of two stages; with two, then four data-parallel ranks: the second stage begins at rank 2, then 4."""
    told, left = pairs([0, 1, 2, 3], [*range(8)], {"dp": 2, "pp": 2}, {"dp": 4, "pp": 2})
    assert told == [(0, 0), (1, 1), (2, 4), (3, 5)]
    assert left == ([], [(None, 2), (None, 3), (None, 6), (None, 7)])


def test_only_matched_ranks_are_in_the_mean() -> None:
    before = result([step({"compute/matmul": 10}, 0), step({"compute/matmul": 30}, 1)])
    after = result([step({"compute/matmul": 20}, 0)])
    found = matched(before, after)
    assert (found.before.mean.wall_ns, found.after.mean.wall_ns) == (10, 20)


def test_steps_go_by_id_where_both_have_the_same() -> None:
    def steps(*numbers: int | None):  # type: ignore[no-untyped-def]
        return result([step({"compute/matmul": 10 + (number or 0)}, 0, number) for number in numbers])

    told = [(row.step, row.step_after, row.after_ns) for row in matched(steps(5, 6), steps(6, 5)).steps()]
    assert told == [(5, 5, 15), (6, 6, 16)]
    told = [(row.step, row.step_after, row.after_ns) for row in matched(steps(5, 6), steps(7, 8, 9)).steps()]
    assert told == [(5, 7, 17), (6, 8, 18)]
    assert len(matched(steps(None, None), steps(None, None)).steps()) == 2


def test_a_step_is_the_mean_of_the_ranks_that_all_have_it() -> None:
    ledger = [step({"idle/sync": ns}, rank, number) for rank, number, ns in ((0, 1, 10), (0, 2, 20), (1, 2, 40))]
    assert matched(result(ledger), result(ledger)).before.steps == [(2, 30.0)]


def test_steps_of_roles_are_an_iteration() -> None:
    ledger = [
        step({"idle/sync": ns}, 0, n, role) for role, n, ns in (("a", 1, 10), ("b", 1, 5), ("a", 2, 20), ("b", 2, 7))
    ]
    side = matched(result(ledger), result(ledger)).before
    assert side.steps == [(1, 15.0), (2, 27.0)]
    assert side.mean.wall_ns == 21
    uneven = result(ledger[:3])
    assert matched(uneven, uneven).before.steps == []
