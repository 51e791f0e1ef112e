"""CO018: the same products with and without a transfer beside them."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule

SHAPE = ["512,512 BF16", "512,512 BF16"]


def products(*, beside: float, alone: int = 4, wide: bool = False) -> Scene:
    """``alone`` products of 100 us, then four of ``beside`` us, each with a transfer under all of it."""
    scene, now = Scene(), 0.0
    for _ in range(alone):
        scene.tensors(now, 100, "MatMulV3", SHAPE, ["512,512 BF16"])
        now += 110
    shapes = ["512,1024 BF16", "1024,512 BF16"] if wide else SHAPE
    for _ in range(4):
        scene.collective(now, beside, [(now, now + beside, None)], size=10_000_000)
        scene.tensors(now, beside, "MatMulV3", shapes, ["512,512 BF16"], stream=3)
        now += beside + 10
    return scene


def test_products_beside_transfers_are_held_against_those_without() -> None:
    found = judge_rule("CO018", products(beside=150).store())
    seen = found.first.observation
    assert found.state == "fail" and found.first.severity == "high"
    assert seen["kernels"] == 4 and seen["slowdown"] == pytest.approx(0.5)
    assert seen["excess_ns"] == 4 * 50_000 and seen["covered_ns"] == 4 * 150_000
    assert "start earlier or later" in found.first.advice[0].text.en
    pairs = found.evidence()[0]
    assert "'beside_transfers': 4" in str(pairs) and "'without_transfers': 4" in str(pairs)


def test_a_transfer_that_costs_more_than_it_hides_is_in_question() -> None:
    found = judge_rule("CO018", products(beside=250).store())
    assert found.first.observation["excess_ns"] == 600_000 < 4 * 250_000
    slow = products(beside=250)
    for row in slow.rows["communication_tasks"]:
        row["duration_us"] = min(row["duration_us"], 130)
    for row in slow.rows["kernels"]:
        if row["core"] == "COMMUNICATION":
            row["duration_us"] = 130
    again = judge_rule("CO018", slow.store())
    assert again.first.observation["covered_ns"] < again.first.observation["excess_ns"]
    assert "overlap off" in again.first.advice[0].text.en


@pytest.mark.parametrize("scene", [products(beside=150, alone=2), products(beside=150, wide=True)])
def test_without_enough_to_compare_nothing_is_said(scene: Scene) -> None:
    assert judge_rule("CO018", scene.store()).state == "not_applicable"


def test_products_that_are_as_quick_are_in_order() -> None:
    assert judge_rule("CO018", products(beside=100).store()).state == "pass"
