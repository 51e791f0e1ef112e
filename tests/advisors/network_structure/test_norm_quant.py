"""NS024: RMSNorm, and a kernel of its own that quantises the result."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.cures import cure_of, shorter
from tests.advisors.network_structure.scenes import Kernel, scene_of

X, Q, SCALE, GAMMA = "16,512 BF16", "16,512 INT8", "16 FLOAT", "512 BF16"
NORM: Kernel = ("AddRmsNorm", 12, (X, X, GAMMA), (X, "16,1 FLOAT", X))
PLAIN: Kernel = ("RmsNorm", 12, (X, GAMMA), (X, "16,1 FLOAT"))
DYNAMIC: Kernel = ("DynamicQuant", 11, (X,), (Q, SCALE))
STATIC: Kernel = ("AscendQuantV2", 11, (X, GAMMA, GAMMA), (Q,))
PRODUCT: Kernel = ("QuantBatchMatmulV3", 40, (Q, "512,512 INT8"), (X,))


def test_a_norm_that_only_quantisation_reads() -> None:
    found = judge_rule("NS024", scene_of(NORM, DYNAMIC, PRODUCT, NORM, DYNAMIC, PRODUCT).store())
    seen = found.first.observation
    assert (seen["norm"], seen["quant"], seen["adds"], seen["scales"]) == (
        "AddRmsNorm",
        "DynamicQuant",
        True,
        "dynamic",
    )
    assert (seen["pairs"], seen["norm_ns"], seen["quant_ns"], seen["shared"]) == (2, 24_000, 22_000, 0)
    assert found.first.impact_ns == 22_000 and found.first.severity == "low"
    assert sorted(found.evidence()[0].rows.tolist()) == [0, 1, 3, 4]


def test_an_addition_in_front_counts_as_one_with_the_norm() -> None:
    add: Kernel = ("Add", 5, (X, X), (X,))
    assert judge_rule("NS024", scene_of(add, PLAIN, DYNAMIC).store()).first.observation["adds"] is True
    assert judge_rule("NS024", scene_of(PLAIN, DYNAMIC).store()).first.observation["adds"] is False


def test_a_norm_that_is_quantised_twice_is_one_pair() -> None:
    seen = judge_rule("NS024", scene_of(NORM, DYNAMIC, DYNAMIC).store()).first.observation
    assert (seen["pairs"], seen["norm_ns"], seen["quant_ns"]) == (1, 12_000, 22_000)


@pytest.mark.parametrize(
    "scene",
    [
        scene_of(NORM, DYNAMIC, ("MatMulV3", 9, (X, "512,8 BF16"), ("16,8 BF16",))),
        scene_of(NORM, STATIC, STATIC),
    ],
    ids=["a router reads it too", "two sets of scales"],
)
def test_a_result_that_the_fused_kernel_cannot_give_is_only_counted(scene: Scene) -> None:
    judged = judge_rule("NS024", scene.store())
    assert judged.state == "pass" and judged.observed is not None
    row = judged.observed.frame.iloc[0]
    assert (row["pairs"], row["shared"], row["quant_ns"]) == (0, 1, 0)


def test_a_residual_that_is_read_after_the_next_product_does_not_count_as_a_reader() -> None:
    assert judge_rule("NS024", scene_of(NORM, DYNAMIC, PRODUCT, NORM).store()).first.observation["shared"] == 0


@pytest.mark.parametrize(
    "kernels",
    [
        (PRODUCT, DYNAMIC),
        (NORM, PRODUCT, DYNAMIC),
        (NORM, ("SwiGluQuant", 9, (X,), (Q, SCALE))),
    ],
    ids=["no norm", "of what a product wrote", "fused with something else"],
)
def test_nothing_to_fuse(kernels: tuple[Kernel, ...]) -> None:
    assert judge_rule("NS024", scene_of(*kernels).store()).state == "not_applicable"


def test_the_cure_takes_the_quantising_kernels_away() -> None:
    store = scene_of(NORM, DYNAMIC, PRODUCT, NORM, DYNAMIC, PRODUCT).store()
    assert shorter(store, cure_of(judge_rule("NS024", store))) == {1: 11_000, 4: 11_000}
