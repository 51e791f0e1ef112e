"""Verdicts, and what forbids them."""

from __future__ import annotations

from typing import Any

import pytest

from advisor_core.compare.compare import CompareError, compare, compare_all
from advisor_core.result.comparison import Comparison
from advisor_core.result.run import RunResult
from tests.compare.results import finding, result, step, work

STEPS = (1000, 1010, 990, 1005, 995)


def run(*walls: int, **fields: Any) -> RunResult:
    return result([step({"compute/matmul": ns}, 0, number) for number, ns in enumerate(walls)], **fields)


def about(told: Comparison) -> dict[str, list[str]]:
    return {obstacle.about: list(obstacle.spoils) for obstacle in told.obstacles}


def test_slower_faster_and_within_the_noise() -> None:
    before, longer = run(*STEPS), run(*(ns + 100 for ns in STEPS))
    assert compare(before, longer).verdict.outcome == "slower"
    told = compare(longer, before).verdict
    assert (told.outcome, told.difference_ns, told.steps) == ("faster", -100, (5, 5))
    assert told.interval is not None and told.interval[0] < told.ratio < told.interval[1] < 0
    assert compare(before, run(*(ns + 3 for ns in STEPS))).verdict.outcome == "within_noise"


@pytest.mark.parametrize(("walls", "said"), [((1000,), "single step"), ((1000, 1010, 990), "10.0 %")])
def test_few_steps_cannot_tell(walls: tuple[int, ...], said: str) -> None:
    told = compare(run(*walls), run(*(ns + 300 for ns in walls))).verdict
    assert told.outcome == "cannot_tell" and told.reason is not None and said in told.reason.en
    assert (told.difference_ns, told.interval) == (300, None)


def test_the_same_is_the_same() -> None:
    one = run(*STEPS, work=[work(("Mul", "8", 1, 5))])
    told = compare(one, one)
    assert told.verdict.difference_ns == 0 and told.verdict.outcome == "within_noise"
    assert "same_recording" in about(told) and not told.withheld
    assert told.causes == [] and told.promises is None


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any], set[str]]] = [
    ("vendor", {}, {"source": {"vendor": "gpu"}}, {"verdict", "operators", "findings", "promises"}),
    ("kind", {}, {"profile": {"kind": "inference"}}, {"verdict", "causes", "findings"}),
    ("level", {}, {"source": {"level": "level0"}}, {"verdict", "operators", "communication", "host", "promises"}),
    ("format", {}, {"source": {"kind": "other"}}, set()),
    ("versions", {"source": {"versions": {"torch": "2.6"}}}, {"source": {"versions": {"torch": "2.7"}}}, {"promises"}),
    ("world_size", {"profile": {"world_size": 8}}, {"profile": {"world_size": 16}}, {"verdict", "communication"}),
    ("parallel", {"profile": {"parallel": {"tp": 2}}}, {"profile": {"parallel": {"tp": 4}}}, {"verdict", "operators"}),
    (
        "chip",
        {"environment": {"chip": {"name": "A"}}},
        {"environment": {"chip": {"name": "B"}}},
        {"verdict", "promises"},
    ),
    ("clock", {"environment": {"chip": {"mhz": 1800.0}}}, {"environment": {"chip": {"mhz": 1500.0}}}, set()),
    (
        "slowing_options",
        {"environment": {"profiler": {"with_stack": False}}},
        {"environment": {"profiler": {"with_stack": True}}},
        {"verdict", "host", "promises"},
    ),
    (
        "options",
        {"environment": {"profiler": {"l2_cache": False, "schedule.active": 1}}},
        {"environment": {"profiler": {"l2_cache": True, "schedule.active": 3}}},
        set(),
    ),
    ("shapes", {"work": [work(("Mul", "8", 1, 5))]}, {"work": [work(("Mul", "9", 1, 5))]}, {"verdict", "operators"}),
    ("counts", {"work": [work(("Mul", "8", 1, 5))]}, {"work": [work(("Mul", "8", 2, 9))]}, {"verdict", "operators"}),
]


@pytest.mark.parametrize(("name", "old", "new", "spoils"), CHANGES, ids=[change[0] for change in CHANGES])
def test_what_is_not_the_same_stands_on_top(
    name: str, old: dict[str, Any], new: dict[str, Any], spoils: set[str]
) -> None:
    told = compare(run(*STEPS, **old), run(*(ns + 100 for ns in STEPS), **new))
    assert name in about(told) and spoils <= {*about(told)[name]}
    assert bool(spoils) is bool(about(told)[name])
    withheld = "across_vendors" if name == "vendor" else "not_comparable"
    assert (told.verdict.outcome == withheld) is ("verdict" in told.withheld)
    for conclusion, empty in (("causes", told.ledger), ("operators", told.operators), ("findings", told.findings)):
        assert not (conclusion in told.withheld and empty)
    text = next(obstacle.text for obstacle in told.obstacles if obstacle.about == name)
    assert text.en and text.zh and "{" not in text.en + text.zh


@pytest.mark.parametrize(("name", "old", "new", "spoils"), CHANGES, ids=[change[0] for change in CHANGES])
def test_what_one_side_does_not_record_is_no_difference(
    name: str, old: dict[str, Any], new: dict[str, Any], spoils: set[str]
) -> None:
    nothing = {"vendor": "", "level": None, "kind": "simulated"}
    kind = {"profile": {"kind": "unknown"}} if name == "kind" else {}
    silent = run(*STEPS, source=nothing, **kind)
    other = run(*STEPS, **(new if name not in ("format",) else {}))
    assert name not in about(compare(silent, other))


def test_causes_below_an_unequal_trunk_are_not_compared() -> None:
    before = result([step({"idle/sync": 100, "idle/host/python": 50})], source={"level": "level1"})
    after = result([step({"idle/sync": 10, "idle/unknown": 190})], source={"level": "level0"})
    told = compare(before, after)
    assert [(row.path, row.difference_ns) for row in told.ledger] == [("idle", 50)]


def test_ranks_without_a_partner() -> None:
    both = [step({"compute/matmul": 100}, rank) for rank in (0, 1)]
    told = compare(result(both), result(both[:1]))
    assert about(told)["unmatched_ranks"] == ["operators", "communication"]
    assert told.verdict.before_ns == 100 and [row.rank for row in told.ranks] == [0]
    none = compare(result(both[:1]), result([step({"compute/matmul": 50}, rank) for rank in (5, 6)]))
    assert "no_ranks" in about(none) and none.verdict.outcome == "not_comparable"
    assert (none.verdict.before_ns, none.verdict.after_ns, none.ledger) == (100, 50, [])


def test_several_are_compared_with_the_first() -> None:
    told = compare_all(
        ["a", "b", "c"], [run(*STEPS), run(*(ns + 100 for ns in STEPS)), run(*(ns - 200 for ns in STEPS))]
    )
    assert [(one.before, one.after, one.verdict.outcome) for one in told.comparisons] == [
        (0, 1, "slower"),
        (0, 2, "faster"),
    ]
    assert [(one.name, one.step_ns, one.steps) for one in told.runs] == [("a", 1000, 5), ("b", 1100, 5), ("c", 800, 5)]


def test_a_result_without_steps_is_an_error_that_names_it() -> None:
    with pytest.raises(CompareError, match="nothing"):
        compare_all(["one.json", "nothing.json"], [run(*STEPS), result([], [finding("A")])])
