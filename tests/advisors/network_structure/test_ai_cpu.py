"""NS021: operators on the AI CPU."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.cures import cure_of, shorter
from tests.advisors.network_structure.scenes import TENSOR, kinds, scene_of


def on_ai_cpu(duration: float, dtype: str = "INT64", *, out: str = "INT64", count: int = 1) -> Scene:
    scene = Scene().step(1, -10, 1020)
    for number in range(count):
        scene.tensors(number * duration, duration, "Unique", (f"64 {dtype}",), (f"64 {out}",), core="AI_CPU")
    return scene.tensors(count * duration, 1000 - count * duration, "Mul", TENSOR, TENSOR)


def test_ai_cpu_operator_is_named_with_its_dtypes() -> None:
    found = judge_rule("NS021", on_ai_cpu(25, count=2).store())
    seen = found.first.observation
    assert (seen["operator"], seen["dtypes"], seen["kernels"]) == ("Unique", "INT64", 2)
    assert (seen["total_ns"], seen["longest_ns"]) == (50_000, 25_000)
    assert found.first.impact_ns == 50_000 and found.first.severity == "high"
    assert kinds(found) == ["investigate", "code"] and found.evidence()[0].rows.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("dtype", "out", "double", "narrow"),
    [("DOUBLE", "INT64", True, False), ("INT64", "COMPLEX128", True, False), ("UINT8", "INT64", False, True)],
)
def test_ai_cpu_advice_follows_the_dtype(dtype: str, out: str, double: bool, narrow: bool) -> None:
    found = judge_rule("NS021", on_ai_cpu(25, dtype, out=out).store())
    assert (found.first.observation["double"], found.first.observation["narrow_integer"]) == (double, narrow)
    wide = dtype == "INT64" and not double
    assert kinds(found) == ["investigate", *["code"] * (double + (narrow or wide))]
    assert any("64-bit floating-point" in advice.text.en for advice in found.first.advice) == double
    assert any("32 bits" in advice.text.en for advice in found.first.advice) == (narrow or wide)


def test_the_type_is_named_as_the_cause_with_those_that_run_on_the_ai_core() -> None:
    made = (
        on_ai_cpu(25)
        .tensors(2000, 5, "Unique", ("64 INT32",), ("64 INT32",))
        .tensors(2010, 5, "Unique", ("64 FLOAT",), ("64 FLOAT",), core="AI_VECTOR_CORE")
    )
    seen = judge_rule("NS021", made.store()).first
    assert seen.observation["long_integer"] and seen.observation["on_ai_core"] == "FLOAT, INT32"
    (wide,) = [one for one in seen.advice if "than 32 bits" in one.text.en]
    assert wide.risk is not None and "overflow" in wide.risk.en and not seen.advice[0].hazards
    assert judge_rule("NS021", on_ai_cpu(25).store()).first.observation["on_ai_core"] == ""


@pytest.mark.parametrize(("duration", "count"), [(20, 3), (9.9, 1)])
def test_ai_cpu_is_silent_for_short_kernels(duration: float, count: int) -> None:
    assert judge_rule("NS021", on_ai_cpu(duration, count=count).store()).state == "pass"


def test_ai_cpu_needs_one_percent_of_the_step() -> None:
    scene = on_ai_cpu(25).tensors(2600, 1, "Mul", TENSOR, TENSOR)
    assert judge_rule("NS021", scene.store()).state == "pass"


def test_no_ai_cpu_is_not_applicable() -> None:
    assert judge_rule("NS021", scene_of().store()).state == "not_applicable"


def test_the_cure_takes_the_time_on_the_ai_cpu_away() -> None:
    store = on_ai_cpu(25, count=2).store()
    assert shorter(store, cure_of(judge_rule("NS021", store))) == {0: 25_000, 1: 25_000}
