"""NS002: results that are cut by slices."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.cures import cure_of, shorter
from tests.advisors.network_structure.scenes import Kernel, kinds, scene_of
from tests.advisors.shape_affinity.scenes import CHIP

QKV = ("64,96 BF16",)


def cut(*slices: Kernel, wall: float = 1000) -> Scene:
    product: Kernel = ("MatMulV3", 100, ("64,16 BF16", "16,96 BF16"), QKV)
    return scene_of(product, *slices, wall=wall)


def test_slices_of_a_product_are_found_and_halved() -> None:
    scene = cut(("Slice", 10, QKV, ("64,32 BF16",)), ("StridedSlice", 20, ("4,16,96 BF16",), ("4,16,64 BF16",)))
    found = judge_rule("NS002", scene.store())
    seen = found.first.observation
    assert (seen["slices"], seen["tensors"], seen["product"]) == (2, 1, "MatMulV3")
    assert seen["input_shape"] == "64,96" and seen["dtype"] == "BF16" and seen["parts"] == "64,32; 4,16,64"
    assert (seen["slice_ns"], seen["loose_ns"], seen["product_ns"]) == (30_000, 30_000, 100_000)
    assert found.first.impact_ns == 15_000 and found.first.severity == "low"
    assert [reference.rows.tolist() for reference in found.evidence()[:2]] == [[2, 1], [0]]


@pytest.mark.parametrize(("duration", "severity"), [(30, "medium"), (49.9, "medium"), (50, "high"), (29.9, "low")])
def test_slices_are_as_severe_as_what_a_split_saves(duration: float, severity: str) -> None:
    # Two slices of ``duration`` us in a step of 1000: a split saves one of them.
    halves: list[Kernel] = [("Slice", duration, QKV, ("64,48 BF16",))] * 2
    found = judge_rule("NS002", cut(*halves).store())
    assert found.first.severity == severity and found.first.impact_ns == duration * 1000


@pytest.mark.parametrize(
    "slices",
    [
        [("Slice", 30, QKV, ("64,32 BF16",))],
        [("Slice", 30, QKV, ("64,64 BF16",))] * 2,
        [("Slice", 30, ("96,64 BF16",), ("48,64 BF16",))] * 2,
        [("MatMulV3", 10, QKV, ("64,8 BF16",)), *[("Slice", 30, QKV, ("64,48 BF16",))] * 2],
    ],
    ids=["one slice", "overlapping", "another tensor", "after another product"],
)
def test_slices_that_are_no_split_of_a_product_do_not_count(slices: list[Kernel]) -> None:
    assert judge_rule("NS002", cut(*slices).store()).state == "not_applicable"


def test_slices_are_silent_below_the_threshold() -> None:
    halves: list[Kernel] = [("Slice", 0.9, QKV, ("64,48 BF16",))] * 2
    assert judge_rule("NS002", cut(*halves).store()).state == "pass"
    halves = [("Slice", 1, QKV, ("64,48 BF16",))] * 2
    assert judge_rule("NS002", cut(*halves).store()).state == "fail"


def test_slices_inside_a_swiglu_are_counted_there() -> None:
    half = ("64,48 BF16",)
    swiglu: list[Kernel] = [("Slice", 30, QKV, half), ("Swish", 5, half, half), ("Slice", 30, QKV, half)]
    found = judge_rule("NS002", cut(*swiglu, ("Mul", 5, (*half, *half), half)).store())
    seen = found.first.observation
    assert (seen["slice_ns"], seen["in_chain_ns"], seen["loose_ns"]) == (60_000, 60_000, 0)
    assert found.first.impact_ns == 0 and found.first.severity == "low"


def test_the_cure_halves_the_slices_and_leaves_the_product() -> None:
    halves: list[Kernel] = [("Slice", 30, QKV, ("64,48 BF16",))] * 2
    store = cut(*halves, ("Slice", 30, ("7,7 BF16",), ("7,3 BF16",))).store()
    assert shorter(store, cure_of(judge_rule("NS002", store))) == {1: 15_000, 2: 15_000}


@pytest.mark.parametrize(
    ("rows", "columns", "duration", "least", "divided", "advice"),
    [
        # 4 blocks of 128 x 128 take one of 24 cores each: both halves take a round of their own, twice as long.
        (128, 512, 40, 2, 200_000, ["investigate"]),
        # The slices take longer than that.
        (128, 512, 60, 2, 200_000, ["investigate", "code"]),
        # 64 x 22 blocks of 128 x 256 take 59 rounds, and as many of 128 x 128 for each of the halves.
        (8192, 5632, 40, 64 * 22, 100_000, ["investigate", "code"]),
    ],
)
def test_dividing_the_weight_must_not_cost_more_than_the_slices(
    rows: int, columns: int, duration: float, least: int, divided: float, advice: list[str]
) -> None:
    whole, half = f"{rows},{columns} BF16", f"{rows},{columns // 2} BF16"
    product: Kernel = ("MatMulV3", 100, (f"{rows},4096 BF16", f"4096,{columns} BF16"), (whole,))
    found = judge_rule("NS002", scene_of(product, *[("Slice", duration, (whole,), (half,))] * 2).store(chip=CHIP))
    seen = found.first.observation
    assert (seen["cores"], seen["least_blocks"]) == (24, least) and seen["divided_ns"] == pytest.approx(divided)
    assert kinds(found) == advice


def test_what_dividing_the_weight_takes_is_not_told_of_slices_of_rows_or_without_a_chip() -> None:
    across: list[Kernel] = [("Slice", 30, QKV, ("64,48 BF16",)), ("Slice", 30, QKV, ("1,7 BF16",))]
    for slices, about in ((across, {"chip": CHIP}), ([across[0]] * 2, {})):
        found = judge_rule("NS002", cut(*slices).store(**about))
        assert found.first.observation["divided_ns"] is None and kinds(found) == ["investigate", "code"]
