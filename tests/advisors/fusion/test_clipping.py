"""NS046: the norms of gradients, and what multiplies gradients by one number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisors.fusion.chains import fusion_chains
from advisors.fusion.clipping import NORM, NUMBER, SCALE, Clipping, gradient_clipping
from tests.advisors.fusion.chains import YARDSTICK, Kernel

ONE = " FLOAT"
SIZES = [1000, 500, 2000, 500, 1000, 500, 2000, 500, 700]
PRODUCT: Kernel = ("MatMulV3", 50, ("64,64 BF16", "64,64 BF16"), ("64,64 BF16",))
UPDATE: Kernel = ("ApplyAdamWV2", 50, ("64,64 FLOAT",), ("64,64 FLOAT",))


def norm(size: int) -> Kernel:
    return ("LpNormV2", 2, (f"{size} FLOAT",), (ONE,))


def scale(size: int) -> Kernel:
    return ("Mul", 2, (f"{size} FLOAT", ONE), (f"{size} FLOAT",))


def number(type_: str) -> Kernel:
    return (type_, 1, (ONE,), (ONE,))


def one_by_one(sizes: Sequence[int]) -> list[Kernel]:
    """Norm, square and sum for each gradient."""
    return [kernel for size in sizes for kernel in (norm(size), number("Square"), number("Add"))]


def of_all_norms(count: int) -> list[Kernel]:
    """The norm of norms side by side, and the factor."""
    packed = f"{count} FLOAT"
    return [
        ("Pack", 2, (ONE,) * count, (packed,)),
        ("LpNormV2", 2, (packed,), (ONE,)),
        *map(number, ("Add", "Reciprocal", "Muls", "ClipByValueV2")),
    ]


def scene_of(kernels: Sequence[Kernel], gap: float = 0.0) -> Scene:
    scene, at = Scene().step(1, -10, 10_000), 0.0
    for type_, duration, reads, writes in kernels:
        scene.tensors(at, duration, type_, reads, writes)
        at += duration + gap
    return scene


def clipping_in(*kernels: Kernel) -> Clipping:
    return scene_of([PRODUCT, *kernels, UPDATE]).store()[gradient_clipping]


def roles(found: Clipping) -> list[int]:
    return [int((found.role == role).sum()) for role in (NORM, NUMBER, SCALE)]


def test_norms_and_the_factor_and_the_products() -> None:
    found = clipping_in(*map(norm, SIZES), *of_all_norms(len(SIZES)), *map(scale, SIZES))
    assert found.gradients.tolist() == [9] and roles(found) == [9, 6, 9]


def test_the_scale_of_the_loss_is_taken_off_in_front() -> None:
    found = clipping_in(*map(scale, SIZES), *one_by_one(SIZES), *map(scale, SIZES))
    assert roles(found) == [9, 18, 18] and (np.diff(found.members) == 1).all()


def test_lists_are_read_as_lists() -> None:
    lists = tuple(f"{size} FLOAT" for size in SIZES)
    norms: Kernel = ("ForeachNorm", 9, lists, (ONE,) * len(SIZES))
    product: Kernel = ("ForeachMulScalar", 9, lists, lists)
    found = clipping_in(norms, *of_all_norms(len(SIZES)), product)
    assert roles(found) == [1, 6, 1] and found.tensors[found.role == SCALE].tolist() == [9]
    # The decay of the weights is of the optimizer, which goes on with the list.
    lerp: Kernel = ("ForeachLerpScalar", 9, (*lists, *lists), lists)
    assert roles(clipping_in(norms, *of_all_norms(len(SIZES)), product, lerp)) == [1, 6, 0]
    assert roles(clipping_in(norms, *of_all_norms(len(SIZES)), product, product, lerp)) == [1, 6, 1]


def test_the_decay_of_the_first_weight_is_of_the_optimizer() -> None:
    decay, size = scale(SIZES[0]), f"{SIZES[0]} FLOAT"
    lerp: Kernel = ("Lerp", 2, (size, size), (size,))
    assert roles(clipping_in(*map(norm, SIZES), *map(scale, SIZES), decay, lerp)) == [9, 0, 9]
    assert roles(clipping_in(*map(norm, SIZES), decay, lerp)) == [9, 0, 0]


@pytest.mark.parametrize(
    "kernels",
    [
        [*map(norm, SIZES[:7])],
        # Norms of rows are tensors, and products stand between.
        [("LpNormV2", 2, ("1000,50 FLOAT",), ("1000,1 FLOAT",))] * 9,
        [kernel for size in SIZES for kernel in (norm(size), PRODUCT)],
        # The norm of a weight and of its update, beside what an optimizer computes for each weight.
        [kernel for size in SIZES for kernel in (norm(size), norm(size), scale(size))],
    ],
)
def test_other_norms_are_none_of_gradients(kernels: list[Kernel]) -> None:
    assert not len(clipping_in(*kernels).members)


def test_a_product_of_a_gradient_belongs_to_no_computation() -> None:
    size = "500 FLOAT"
    added: Kernel = ("Add", 2, (size, size), (size,))
    update: list[Kernel] = [("Mul", 2, (size,), (size,)), added, added]
    kernels = [PRODUCT, *map(norm, [500] * 8), *map(scale, [500] * 8), *update * 8]
    store = scene_of(kernels).store()
    assert not set(store[gradient_clipping].members.tolist()) & set(store[fusion_chains].members.tolist())


@pytest.mark.parametrize(("count", "lists"), [(8, 1), (24, 1), (25, 2), (49, 3)])
def test_a_list_takes_24_norms(count: int, lists: int) -> None:
    store = scene_of([YARDSTICK, *one_by_one([5000] * count)], 30).store()
    observed = judge_rule("NS046", store).observed
    assert observed is not None
    seen, kernels = observed.frame.iloc[0], 3 * count - 2
    assert seen["list_kernels"] == lists and seen["saved_launches"] == kernels - lists
    assert seen["idle_ns"] == pytest.approx((kernels - lists) * 30_000)


def test_what_lists_save() -> None:
    # 25 norms of 40 kB take 2 us each, and with square and sum 4 us; 20 us lie between two kernels. At 1 TB/s a list of
    # 24 reads for 1 us, and the last gradient has a list of its own.
    kernels = [YARDSTICK, *one_by_one([10_000] * 25), *map(scale, [10_000] * 25)]
    finding = judge_rule("NS046", scene_of(kernels, 20).store()).first
    seen = finding.observation
    assert seen["gradients"] == 25 and seen["scale_kernels"] == 25 and seen["scale_ns"] == 50_000
    assert seen["norm_time_ns"] == 24 * 4_000 + 2_000
    assert seen["saving_ns"] == pytest.approx(seen["kernel_saving_ns"] + 71 * 20_000, abs=100)


def test_without_norms_there_is_nothing_to_judge() -> None:
    assert judge_rule("NS046", scene_of([YARDSTICK, PRODUCT]).store()).state == "not_applicable"


@pytest.mark.parametrize(("every", "state"), [(1, "pass"), (8, "fail")])
def test_norms_that_the_host_reads_one_by_one_are_a_matter_of_reading(every: int, state: str) -> None:
    """The host waits for the device before each kernel of the norms, or before every eighth."""
    scene = scene_of([YARDSTICK, *one_by_one([5000] * 8)], 30)
    for kernel in scene.rows["kernels"][1::every]:
        scene.event("runtime", "aclrtSynchronizeStream", kernel["start_us"] - 20, 4)
    found = judge_rule("NS046", scene.store())
    assert found.state == state
    if state == "fail":
        assert 0 < found.first.observation["read_backs"] < 1


def test_a_gradient_that_is_cast_for_its_norm_is_read_once() -> None:
    cast: Kernel = ("Cast", 2, ("5000 BF16",), ("5000 FLOAT",))
    observed = judge_rule("NS046", scene_of([YARDSTICK, *[cast, norm(5000)] * 25], 30).store()).observed
    assert observed is not None
    seen = observed.frame.iloc[0]
    assert (seen["gradients"], seen["norm_kernels"], seen["list_kernels"]) == (25, 50, 2)
    # The casts move 24 times 10 kB and 20 kB: 720 ns at 1 TB/s; the last gradient has a list of its own.
    assert seen["fused_ns"] == pytest.approx(720 + 30)


def test_a_number_that_is_cast_between_norms_is_no_gradient() -> None:
    found = clipping_in(*[kernel for size in SIZES for kernel in (number("Cast"), norm(size))])
    assert roles(found) == [9, 9, 0] and found.tensors[found.role == NORM].tolist() == [1] * 9
