"""NS047: adapters of low rank."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisors.fusion.adapters import BASE, BESIDE, THIN, Adapters, adapters
from advisors.fusion.regions import fusion_regions
from tests.advisors.fusion.chains import YARDSTICK, Kernel

ROWS, DEPTH, COLUMNS, RANK = 1000, 500, 2000, 16
X, Y = f"{ROWS},{DEPTH}", f"{ROWS},{COLUMNS}"
NARROW = f"{ROWS},{RANK}"


def product(rows: int, columns: int, depth: int, dtype: str = "BF16", us: float = 20) -> Kernel:
    return (
        "MatMulV3",
        us,
        (f"{rows},{depth} {dtype}", f"{depth},{columns} {dtype}"),
        (f"{rows},{columns} {dtype}",),
    )


BASE_PRODUCT = product(ROWS, COLUMNS, DEPTH, us=100)
DOWN, UP = product(ROWS, RANK, DEPTH), product(ROWS, COLUMNS, RANK)
SCALE: Kernel = ("Muls", 12, (f"{Y} BF16",), (f"{Y} BF16",))
SUM: Kernel = ("Add", 20, (f"{Y} BF16", f"{Y} BF16"), (f"{Y} BF16",))
ADAPTER = [BASE_PRODUCT, DOWN, UP, SCALE, SUM]

WIDE: list[Kernel] = [
    BASE_PRODUCT,
    ("Cast", 5, (f"{X} BF16",), (f"{X} FLOAT",)),
    product(ROWS, RANK, DEPTH, "FLOAT"),
    product(ROWS, COLUMNS, RANK, "FLOAT"),
    ("Mul", 20, (f"{Y} FLOAT",), (f"{Y} FLOAT",)),
    ("Cast", 15, (f"{Y} BF16",), (f"{Y} FLOAT",)),
    ("Add", 20, (f"{Y} FLOAT", f"{Y} FLOAT"), (f"{Y} FLOAT",)),
    ("Cast", 15, (f"{Y} FLOAT",), (f"{Y} BF16",)),
]

GRADIENTS = [
    product(ROWS, RANK, COLUMNS),
    product(COLUMNS, RANK, ROWS),
    product(RANK, DEPTH, ROWS),
    product(ROWS, DEPTH, RANK),
]


def scene_of(kernels: Sequence[Kernel]) -> Scene:
    scene, at = Scene().step(1, -10, 10_000), 0.0
    for type_, duration, reads, writes in kernels:
        scene.tensors(at, duration, type_, reads, writes)
        at += duration
    return scene


def found_in(*kernels: Kernel) -> Adapters:
    return scene_of([YARDSTICK, *kernels]).store()[adapters]


def roles(found: Adapters) -> list[int]:
    return [int((found.role == role).sum()) for role in (BASE, THIN, BESIDE)]


@pytest.mark.parametrize(
    "kernels",
    [
        ADAPTER,
        # The adapter first, with its scale between the two products.
        [DOWN, ("Muls", 2, (f"{NARROW} BF16",), (f"{NARROW} BF16",)), UP, BASE_PRODUCT, SUM],
    ],
)
def test_two_thin_products_and_a_sum_beside_a_product(kernels: list[Kernel]) -> None:
    found = found_in(*kernels)
    assert found.rank.tolist() == [RANK] and roles(found) == [1, 2, 2] and not found.wide.any()


def test_casts_of_input_and_results_serve_the_adapter() -> None:
    found = found_in(*WIDE)
    assert roles(found) == [1, 2, 5] and found.wide.all()
    # The norm that reads the sum casts it for itself.
    norm: Kernel = ("Cast", 5, (f"{Y} BF16",), (f"{Y} FLOAT",))
    assert roles(found_in(*ADAPTER, norm)) == [1, 2, 2]


@pytest.mark.parametrize(
    "kernels",
    [
        [BASE_PRODUCT, DOWN, UP, SCALE],
        [BASE_PRODUCT, DOWN, UP, ("Mul", 20, (f"{Y} BF16", f"{Y} BF16"), (f"{Y} BF16",))],
        [product(ROWS, COLUMNS, DEPTH + 4), DOWN, UP, SUM],
        [BASE_PRODUCT, product(ROWS, DEPTH // 2, DEPTH), product(ROWS, COLUMNS, DEPTH // 2), SUM],
        [BASE_PRODUCT, DOWN, *[("Sigmoid", 2, (f"{NARROW} BF16",), (f"{NARROW} BF16",))] * 4, UP, SUM],
    ],
)
def test_other_thin_products_are_no_adapter(kernels: list[Kernel]) -> None:
    assert not len(found_in(*kernels).rank)


def test_autograd_runs_products_of_the_same_sizes() -> None:
    found = found_in(*ADAPTER, *GRADIENTS, product(ROWS, DEPTH, COLUMNS))
    assert int((found.adapter_of < 0).sum()) == 4


def test_what_prepares_the_gradient_of_an_adapter_is_no_part_of_a_gate() -> None:
    gate: Kernel = ("Mul", 12, (f"{Y} BF16", f"{Y} BF16"), (f"{Y} BF16",))
    found = found_in(*ADAPTER, gate, ("Cast", 9, (f"{Y} BF16",), (f"{Y} FLOAT",)), SCALE, *GRADIENTS)
    assert ((found.role == BESIDE) & (found.adapter_of < 0)).sum() == 2


def test_what_serves_an_adapter_is_in_no_region() -> None:
    store = scene_of([YARDSTICK, *WIDE]).store()
    assert not set(store[adapters].members.tolist()) & set(store[fusion_regions].members.tolist())


def test_trained_one_kernel_can_scale_cast_and_add() -> None:
    # 4 MB and 8 MB are read and 4 MB written: 16 us at 1 TB/s, of 70 us.
    seen = judge_rule("NS047", scene_of([YARDSTICK, *WIDE, *GRADIENTS]).store()).first.observation
    assert seen["trained"] and seen["wide"] and seen["adapter_ns"] == 40_000 and seen["backward_ns"] == 80_000
    assert seen["sums_ns"] == 75_000 and seen["over_base"] == pytest.approx(1.15)
    assert seen["saving_ns"] == pytest.approx(70_000 - 16_000) and seen["kernels"] == 3


def test_a_merged_weight_needs_no_adapter() -> None:
    seen = judge_rule("NS047", scene_of([YARDSTICK, *ADAPTER]).store()).first.observation
    assert not seen["trained"] and seen["fused_ns"] == 0 and seen["kernels"] == 4
    assert seen["saving_ns"] == pytest.approx(20_000 + 20_000 + 12_000 + 20_000)


def test_without_adapters_there_is_nothing_to_judge() -> None:
    assert judge_rule("NS047", scene_of([YARDSTICK, BASE_PRODUCT]).store()).state == "not_applicable"


def test_without_a_backward_pass_no_adapter_is_trained() -> None:
    """Of the second adapter the sum is not seen: its products have the sizes of those of the first."""
    seen = judge_rule("NS047", scene_of([YARDSTICK, *ADAPTER, BASE_PRODUCT, DOWN, UP, SCALE]).store()).first.observation
    assert not seen["trained"] and seen["backward_ns"] == 0
