"""NS020 and NS025: normalisation, cast to FP32, product or something else."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.cures import cure_of, shorter
from tests.advisors.network_structure.scenes import Kernel, scene_of


def normed(*middle: Kernel, dtype: str = "FLOAT", product: float = 40, wall: float = 1000) -> Scene:
    x = "64,32 BF16"
    return scene_of(
        ("RmsNorm", 5, (x, "32 BF16"), (x, "64,1 FLOAT")),
        *middle,
        ("MatMulV3", product, (f"64,32 {dtype}", f"32,8 {dtype}"), (f"64,8 {dtype}",)),
        wall=wall,
    )


UP: Kernel = ("Cast", 10, ("64,32 BF16",), ("64,32 FLOAT",))
WEIGHT: Kernel = ("Cast", 3, ("32,8 BF16",), ("32,8 FLOAT",))


@pytest.mark.parametrize("middle", [[UP], [UP, WEIGHT]], ids=["weight in FP32", "weight is cast too"])
def test_norm_cast_product_claims_the_cast_only(middle: list[Kernel]) -> None:
    found = judge_rule("NS020", normed(*middle).store())
    seen = found.first.observation
    assert (seen["norm"], seen["dtype"], seen["chains"]) == ("RmsNorm", "BF16", 1)
    assert (seen["cast_ns"], seen["product_ns"], seen["total_ns"]) == (10_000, 40_000, 50_000)
    assert found.first.impact_ns == 10_000 and found.first.severity == "low"
    assert sorted(found.evidence()[0].rows.tolist()) == [0, 1, len(middle) + 1]


@pytest.mark.parametrize(
    "scene",
    [
        normed(),
        normed(UP, dtype="BF16"),
        normed(("Cast", 10, ("8,8 BF16",), ("8,8 FLOAT",))),
        normed(UP, ("Mul", 3, ("64,32 FLOAT",), ("64,32 FLOAT",))),
        normed(UP, product=1, wall=1200),
    ],
    ids=["no cast", "product in BF16", "cast of another tensor", "more between", "under one percent"],
)
def test_norm_cast_product_is_silent(scene: Scene) -> None:
    assert judge_rule("NS020", scene.store()).state == "pass"


def test_norm_cast_product_does_not_reach_over_a_collective() -> None:
    scene = Scene().step(1, -10, 1200)
    scene.tensors(0, 5, "RmsNorm", ("64,32 BF16",), ("64,32 BF16",)).tensors(5, *UP[1:2], *UP[:1], *UP[2:])
    scene.collective(16, 20)
    scene.tensors(40, 40, "MatMulV3", ("64,32 FLOAT", "32,8 FLOAT"), ("64,8 FLOAT",))
    assert judge_rule("NS020", scene.store()).state == "pass"


def test_norm_cast_product_needs_a_norm() -> None:
    assert judge_rule("NS020", scene_of(UP).store()).state == "not_applicable"


def test_a_kernel_between_that_reads_neither_changes_nothing() -> None:
    other: Kernel = ("Mul", 3, ("9,9 BF16",), ("9,9 BF16",))
    assert judge_rule("NS020", normed(other, UP, other).store()).first.observation["chains"] == 1


def test_a_cast_that_two_products_read_counts_once() -> None:
    scene = normed(UP, ("MatMulV3", 40, ("64,32 FLOAT", "32,4 FLOAT"), ("64,4 FLOAT",)))
    seen = judge_rule("NS020", scene.store()).first.observation
    assert (seen["chains"], seen["cast_ns"], seen["product_ns"]) == (1, 10_000, 80_000)


def test_a_cast_that_no_product_reads_is_for_the_other_rule() -> None:
    scene = normed(UP, ("Mul", 3, ("64,32 FLOAT",), ("64,32 FLOAT",)))
    found = judge_rule("NS025", scene.store())
    seen = found.first.observation
    assert (seen["chains"], seen["others"], seen["other_ns"]) == (0, 1, 10_000)
    assert found.first.impact_ns == 10_000 and sorted(found.evidence()[0].rows.tolist()) == [0, 1]
    assert judge_rule("NS025", normed(UP).store()).state == "pass"


@pytest.mark.parametrize(
    ("rule", "scene"),
    [("NS020", normed(UP, WEIGHT)), ("NS025", normed(UP, ("Mul", 3, ("64,32 FLOAT",), ("64,32 FLOAT",))))],
)
def test_the_cure_takes_the_cast_of_the_norm_away(rule: str, scene: Scene) -> None:
    store = scene.store()
    assert shorter(store, cure_of(judge_rule(rule, store))) == {1: 10_000}
