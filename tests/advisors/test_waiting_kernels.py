"""PB018: a kernel that holds the device for far longer than its cores work."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule


def kernel(duration: float, core: float, *, aiv: bool = True) -> Scene:
    """A kernel of ``duration`` us whose cores work for ``core``, between two of 500 us that work throughout."""
    made = Scene().step(1, -10, duration + 1_100)
    for start, length, works in ((0, 500, 500.0), (510, duration, core), (520 + duration, 500, 500.0)):
        made.tensors(
            start, length, "MoeTokenPermuteGrad" if length == duration else "Mul", ("64 FLOAT",), ("64 FLOAT",)
        )
        row = made.rows["kernels"][-1]
        row["aic_ns"] = float("nan") if aiv else 1000 * works
        row["aiv_ns"] = 1000 * works if aiv else 0.0
    return made


@pytest.mark.parametrize("aiv", [True, False])
def test_the_kernel_of_a_published_case(aiv: bool) -> None:
    found = judge_rule("PB018", kernel(2_117, 967, aiv=aiv).store())
    seen = found.first.observation
    assert found.state == "fail" and seen["operator"] == "MoeTokenPermuteGrad" and found.first.severity == "low"
    assert seen["core_work_share"] == pytest.approx(967 / 2117) and seen["stalled_ns"] == 1_150_000
    assert found.first.impact_ns == 1_150_000
    assert found.evidence()[0].rows.tolist() == [1]


@pytest.mark.parametrize(("duration", "core"), [(897, 887), (2_000, 1_100), (90, 20)])
def test_kernels_whose_cores_work_or_that_are_short_are_in_order(duration: float, core: float) -> None:
    assert judge_rule("PB018", kernel(duration, core).store()).state in ("pass", "not_applicable")


def test_without_counters_nothing_is_said() -> None:
    made = Scene().step(1, -10, 520).kernel(0, 500, core="AI_CPU")
    made.rows["kernels"][-1]["aic_ns"] = float("nan")
    assert judge_rule("PB018", made.store()).state != "fail"
