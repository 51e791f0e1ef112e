"""The clocks of the ranks, compared."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.store import FactStore
from tests.advisors.real import real_job


def rank(number: int, *mhz: float, cube: float = 600) -> Scene:
    """A step of 1 ms with two products, and a vector kernel; the clock changes before the second product."""
    scene = Scene(rank=number).step(1, -10, 1020)
    scene.kernel(0, cube / 2, "MatMulV3").kernel(500, cube / 2, "MatMulV3")
    scene.kernel(900, 100, "Add", core="AI_VECTOR_CORE")
    for place, clock in enumerate(mhz):
        scene.add("frequency", time_us=-5 + 500 * place, mhz=clock)
    return scene


def job(clocks: Mapping[int, tuple[float, ...]], cube: float = 600) -> dict[int, FactStore]:
    return {number: rank(number, *mhz, cube=cube).store() for number, mhz in clocks.items()}


def test_a_rank_with_a_lower_clock_is_named() -> None:
    found = judge_rule("PB015", job({0: (1800.0,), 1: (1200.0,), 2: (1800.0,), 3: (1790.0,)}))
    seen = found.first.observation
    assert (seen["slow"], seen["mhz"], seen["others_mhz"]) == (1, 1200, 1800)
    assert seen["behind"] == pytest.approx(1 / 3) and seen["cube_ns"] == 600_000
    assert found.first.impact_ns == 200_000 and found.first.severity == "high"
    assert found.observed is not None and found.observed.ranks is not None
    assert list(found.observed.ranks(found.first.row)) == [1, 0, 2, 3]
    (table,) = found.evidence()
    assert [(row["rank"], row["mhz"]) for row in table.rows] == [(0, 1800), (1, 1200), (2, 1800), (3, 1790)]


def test_a_clock_that_changes_counts_for_as_long_as_kernels_ran_at_it() -> None:
    seen = judge_rule("PB015", job({0: (1800.0,), 1: (1800.0, 1200.0)})).first.observation
    assert seen["mhz"] == 1500 and seen["behind"] == pytest.approx(1 / 6)


@pytest.mark.parametrize(("mhz", "state"), [(1711, "pass"), (1709, "fail"), (1900, "pass")])
def test_five_percent_are_too_much(mhz: float, state: str) -> None:
    found = judge_rule("PB015", job({0: (1800.0,), 1: (mhz,), 2: (1800.0,)}))
    assert found.state == state and found.verdict is not None
    assert {row.observation["slow"] for row in found.verdict.rows} <= {1}, "a faster rank makes no other one slow"


@pytest.mark.parametrize(("cube", "state"), [(19, "pass"), (22, "fail")])
def test_less_than_one_percent_of_the_step_is_left_out(cube: float, state: str) -> None:
    assert judge_rule("PB015", job({0: (1800.0,), 1: (900.0,), 2: (1800.0,)}, cube=cube)).state == state


def test_one_rank_has_nothing_to_compare_with() -> None:
    assert judge_rule("PB015", job({0: (1200.0,)})).state == "not_applicable"
    half = {**job({0: (1200.0,)}), 1: rank(1).store("frequency")}
    assert judge_rule("PB015", half).state == "not_applicable"
    assert judge_rule("PB015", {n: rank(n).store("frequency") for n in (0, 1)}).state == "cannot_answer"


def test_real_ranks_run_at_one_clock(profiles: Path) -> None:
    found = judge_rule("PB015", real_job(profiles, "alexnet-ddp-text-level1"))
    assert found.state == "pass" and found.observed is not None
    assert found.observed.frame["mhz"].tolist() == [1800.0, 1800.0]
