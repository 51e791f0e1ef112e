"""Calls of the host that two runs differ in."""

from __future__ import annotations

from advisor_core.compare.apis import api_differences
from advisor_core.compare.match import matched
from advisor_core.result.run import RunResult
from advisor_core.result.work import ApiTime, Work
from tests.compare.results import result, step


def calling(steps: int, *apis: tuple[str, int, int]) -> RunResult:
    listed = [ApiTime(level="acl", name=name, calls=calls, ns=ns) for name, calls, ns in apis]
    work = Work(rank_steps=9, operators=[], collectives=[], api_steps=steps, apis=listed)
    return result([step({"idle": 100})], work=[work])


def test_totals_are_compared_per_recorded_step() -> None:
    before = calling(2, ("aclnnAdd", 4, 400), ("aclrtMalloc", 2, 1000), ("same", 2, 20))
    after = calling(4, ("aclnnAdd", 8, 1600), ("opCompile", 4, 800), ("same", 4, 40))
    rows = api_differences(matched(before, after))
    assert [(row.name, row.difference_ns) for row in rows] == [
        ("aclrtMalloc", -500),
        ("aclnnAdd", 200),
        ("opCompile", 200),
    ]
    assert (rows[1].calls_before, rows[1].calls_after) == (2, 2)
    assert (rows[2].calls_before, rows[2].calls_after) == (0, 1)


def test_a_side_without_totals_is_not_compared() -> None:
    assert not api_differences(matched(calling(2, ("aclnnAdd", 4, 400)), calling(0)))
