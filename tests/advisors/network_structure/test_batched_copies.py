"""NS023: copies beside batched products."""

from __future__ import annotations

from typing import Any

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.cures import cure_of, shorter
from tests.advisors.network_structure.scenes import Kernel, scene_of

HEADS, ROWS = 8, 4
QUERY = f"{ROWS},{HEADS},192 BF16"
NOPE = f"{HEADS},{ROWS},128 BF16"
WEIGHT = f"{HEADS},128,512 BF16"
UP = f"{HEADS},{ROWS},512 BF16"
LATENT = f"{ROWS},{HEADS},512 BF16"

PROJECTION: Kernel = ("QuantBatchMatmulV3", 20, (f"{ROWS},64 INT8", f"64,{HEADS * 192} INT8"), (QUERY,))
CUT: Kernel = ("AsStrided", 10, (QUERY,), (NOPE,))
PRODUCT: Kernel = ("BatchMatMulV2", 30, (NOPE, WEIGHT), (UP,))
BACK: Kernel = ("Transpose", 6, (UP,), (LATENT,))
READER: Kernel = ("SparseFlashAttention", 40, (LATENT,), (LATENT,))


def up_projection(*, cut: Kernel = CUT, back: Kernel = BACK, between: tuple[Kernel, ...] = ()) -> Scene:
    """The query of one layer of latent attention: its part without positions is cut out, multiplied, and transposed."""
    return scene_of(PROJECTION, cut, *between, PRODUCT, back, READER)


def measured(scene: Scene) -> dict[str, Any]:
    """The row of the batched product, whether it is at fault or not."""
    observed = judge_rule("NS023", scene.store()).observed
    assert observed is not None
    return dict(observed.frame.set_index("product").loc["BatchMatMulV2"])


def test_copies_on_both_sides_of_the_product_are_found() -> None:
    found = judge_rule("NS023", up_projection().store())
    seen = found.first.observation
    assert (seen["product"], seen["copies"], seen["kinds"]) == ("BatchMatMulV2", 2, "AsStrided, Transpose")
    assert (seen["operand_ns"], seen["result_ns"], seen["cut_ns"]) == (10_000, 6_000, 10_000)
    assert (seen["loose_ns"], seen["product_ns"], seen["largest_type"]) == (16_000, 30_000, "AsStrided")
    assert found.first.impact_ns == 16_000 and found.first.severity == "low"
    assert sorted(found.evidence()[1].rows.tolist()) == [1, 3]
    assert found.evidence()[2].rows.tolist() == [2]


def test_kernels_that_do_not_read_the_copy_may_lie_between() -> None:
    other: Kernel = ("MatMulV3", 9, ("5,7 BF16", "7,9 BF16"), ("5,9 BF16",))
    assert judge_rule("NS023", up_projection(between=(other,)).store()).first.observation["operand_ns"] == 10_000


@pytest.mark.parametrize(
    ("scene", "left"),
    [
        (up_projection(between=(("Mul", 3, (NOPE, NOPE), ("3,3 BF16",)),)), 6_000),
        (up_projection(cut=("Mul", 10, (QUERY,), (NOPE,))), 6_000),
        (up_projection(back=("Mul", 6, (UP,), (LATENT,))), 10_000),
        (up_projection(back=("Transpose", 6, ("9,9,9 BF16",), ("9,9,9 BF16",))), 10_000),
    ],
    ids=["another kernel reads the operand", "it is computed", "the result is computed with", "of another tensor"],
)
def test_what_others_need_is_no_copy_for_the_product(scene: Scene, left: int) -> None:
    assert measured(scene)["loose_ns"] == left


def test_a_result_that_others_read_too_is_not_only_laid_out_anew() -> None:
    again: Kernel = ("Mul", 5, (UP, UP), ("3,3 BF16",))
    scene = scene_of(PROJECTION, CUT, PRODUCT, again, BACK, READER)
    assert measured(scene)["result_ns"] == 0


def test_a_written_out_attention_is_left_to_its_own_rule() -> None:
    scores = "8,64,64 BF16"
    query, key = "8,64,32 BF16", "8,32,64 BF16"
    scene = scene_of(
        ("Transpose", 20, ("64,8,32 BF16",), (key,)),
        ("BatchMatMulV2", 30, (query, key), (scores,)),
        ("SoftmaxV2", 10, (scores,), (scores,)),
        ("AsStrided", 20, (scores,), (scores,)),
        ("BatchMatMulV2", 30, (scores, query), (query,)),
    )
    seen = measured(scene)
    assert seen["total_ns"] == 40_000 and seen["in_chain_ns"] > 0
    assert seen["loose_ns"] == seen["total_ns"] - seen["in_chain_ns"]


def test_copies_beside_fused_attention_are_told_as_such() -> None:
    bnsd, bsnd = "2,8,64,32 BF16", "2,64,8,32 BF16"
    query, key, value = ("Transpose", 20, (bsnd,), (bnsd,)), ("Mul", 9, (bnsd,), (bnsd,)), ("Mul", 9, (bnsd,), (bnsd,))
    attention = ("FlashAttentionScore", 50, (bnsd, bnsd, bnsd), (bnsd,))
    seen = judge_rule("NS023", scene_of(key, value, query, attention).store()).first.observation
    assert seen["attention"] is True and seen["operand_ns"] == 20_000


def test_copies_of_operands_of_one_size_count_all() -> None:
    bnsd = "2,8,64,32 BF16"
    project: Kernel = ("MatMulV3", 9, ("128,256 BF16", "256,256 BF16"), ("128,256 BF16",))
    copy: Kernel = ("Transpose", 10, (bnsd,), (bnsd,))
    attention: Kernel = ("FlashAttentionScore", 50, (bnsd, bnsd, bnsd), (bnsd,))
    scene = scene_of(project, project, project, copy, copy, copy, attention, copy, project)
    seen = judge_rule("NS023", scene.store()).first.observation
    assert (seen["copies"], seen["operand_ns"], seen["result_ns"]) == (4, 30_000, 10_000)


def test_without_batched_products_the_rule_does_not_apply() -> None:
    assert judge_rule("NS023", scene_of(PROJECTION, CUT).store()).state == "not_applicable"


def test_the_cure_takes_the_copies_away_and_leaves_the_product() -> None:
    store = up_projection().store()
    assert shorter(store, cure_of(judge_rule("NS023", store))) == {1: 10_000, 3: 6_000}
