"""NS035: kernels that pass tensors on to each other and have no name, and what one kernel for them would save."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from advisor_core.api.testing import ASCEND, GPU, Scene, SceneWords, judge_rule
from advisors.fusion.chains import fusion_chains
from advisors.fusion.regions import fusion_regions
from tests.advisors.fusion.chains import RMS, YARDSTICK, Kernel, scene_of

X, W, ROW = "1000,1000 BF16", "1000,1000 FLOAT", "1000,1 FLOAT"  # 2 MB, 4 MB, 4 kB
PRODUCT: Kernel = ("MatMulV3", 50, (X, X), (X,))
HEAVY: Kernel = ("MatMulV3", 50, ("7,3 BF16", "3,5 BF16"), ("7,5 BF16",))


def regions_of(*kernels: Kernel, words: SceneWords = ASCEND) -> list[tuple[list[int], object]]:
    """Numbers of the kernels of each region, and the MB that one kernel would move."""
    scene = Scene(words=words).step(1, -10, 10_000)
    for number, (type_, duration, reads, writes) in enumerate(kernels):
        scene.tensors(100 * number, duration, type_, reads, writes)
    found = scene.store()[fusion_regions]
    return [
        (found.members[found.region_of == number].tolist(), pytest.approx(size / 1e6))
        for number, size in enumerate(found.moved)
    ]


def kernel(operator: str, reads: Sequence[str], writes: str, us: float = 10) -> Kernel:
    return (operator, us, reads, (writes,))


def test_what_the_kernels_of_a_region_hand_on_is_not_moved() -> None:
    """A product, then absolute values and their sign, in FP32 in between: 2 MB are read and 2 MB are written."""
    found = regions_of(PRODUCT, kernel("Cast", (X,), W), kernel("Abs", (W,), W), kernel("Cast", (W,), X), PRODUCT)
    assert found == [([1, 2, 3], 2 + 2)]


def test_a_result_that_a_kernel_outside_reads_is_written() -> None:
    """The sum of the residual connection is read by the region and, behind the products, by the next sum."""
    add, norm = kernel("Add", (X, X), X), kernel("Abs", (X,), X)
    found = regions_of(PRODUCT, add, norm, PRODUCT, ("MatMulV3", 50, (X, "7,3 BF16"), (X,)), add, HEAVY)
    assert found == [([1, 2], 2 * 2 + 2 * 2)]


@pytest.mark.parametrize("between", [PRODUCT, kernel("Conv2D", (X, X), X), kernel("FlashAttentionScore", (X, X), X)])
def test_a_heavy_kernel_ends_a_region(between: Kernel) -> None:
    assert not regions_of(kernel("Abs", (X,), X), between, kernel("Neg", (X,), X))


@pytest.mark.parametrize("operator", ["RotaryPositionEmbedding", "RotaryPositionEmbeddingGrad", "SwiGlu", "SwiGluGrad"])
def test_a_fused_kernel_and_the_copy_that_serves_it_are_no_region(operator: str) -> None:
    """Nobody writes a fused kernel anew; a copy beside it is told by the rules on copies."""
    assert not regions_of(HEAVY, kernel("Transpose", (X,), X), kernel(operator, (X,), X), HEAVY)
    assert regions_of(HEAVY, kernel("Transpose", (X,), X), kernel("Gelu", (X,), X), HEAVY)


def test_kernels_that_pass_nothing_on_are_no_region() -> None:
    assert not regions_of(HEAVY, kernel("Abs", (X,), X), kernel("Neg", (W,), W))


def test_a_copy_of_a_copy_is_a_copy_of_what_that_was_a_view_of() -> None:
    assert not regions_of(PRODUCT, PRODUCT, kernel("Transpose", (X,), X), kernel("Transpose", (X,), X))


def test_two_regions_stay_two_where_a_kernel_between_them_cannot_join() -> None:
    """The gather reads what the first two make, and the last two read what it takes."""
    small = "10,1000 BF16"
    kernels = (kernel("Abs", (X,), X), kernel("Exp", (X,), X), kernel("GatherV2", (X, "10 INT64"), small))
    found = regions_of(*kernels, kernel("Neg", (small,), small), kernel("Exp", (small,), small))
    assert [numbers for numbers, _ in found] == [[0, 1], [3, 4]]


def test_sums_over_rows_join_and_sums_over_columns_do_not() -> None:
    """A core has whole rows; a sum over columns needs those of all cores."""
    squares = kernel("Square", ("500,1000 FLOAT",), "500,1000 FLOAT")
    rows, columns = (kernel("ReduceSum", ("500,1000 FLOAT",), sums) for sums in ("500,1 FLOAT", "1000 FLOAT"))
    assert regions_of(HEAVY, squares, rows) == [([1, 2], 2 + 0.002)]
    assert not regions_of(HEAVY, squares, columns, HEAVY)


def test_zeros_that_are_written_into_count_once() -> None:
    """The gradient of a part: zeros, the part written into them, and the sum with what is there already."""
    part = "10,1000 BF16"
    kernels = (kernel("ZerosLike", (X,), X), kernel("ViewCopy", (part,), X), kernel("Add", (X, X), X))
    assert regions_of(HEAVY, *kernels, HEAVY) == [([1, 2, 3], 0.02 + 2 + 2)]


def test_of_a_tensor_that_is_cut_only_the_part_is_read() -> None:
    half = "1000,500 BF16"
    found = regions_of(PRODUCT, kernel("Slice", (X,), half), kernel("Abs", (half,), half), HEAVY)
    assert found == [([1, 2], 1 + 1)]


def test_a_kernel_of_a_named_computation_is_in_no_region() -> None:
    store = scene_of(RMS).store()
    assert not set(store[fusion_chains].members) & set(store[fusion_regions].members)
    alone = Scene().step(1, -10, 1020).tensors(0, 10, "Abs", (X,), (X,))
    assert judge_rule("NS035", alone.store()).state == "not_applicable"


def one_after_the_other(*kernels: Kernel, wall: float) -> Scene:
    """The kernels back to back, launched long before, and a product that fills the step."""
    scene = Scene().step(1, -10, wall + 20)
    at = 0.0
    before = (YARDSTICK, HEAVY, *kernels)
    filler: Kernel = ("MatMulV3", wall - sum(duration for _, duration, _, _ in before), HEAVY[2], HEAVY[3])
    for number, (type_, duration, reads, writes) in enumerate((*before, filler)):
        core = "AI_CORE" if type_ == "MatMulV3" else "AI_VECTOR_CORE"
        scene.tensors(at, duration, type_, reads, writes, core=core, launched=number / 100 - 9)
        at += duration
    return scene


def region(wall: float) -> Scene:
    """50 MB in 100 us, and a region of 40 us that one kernel does in 4 us: 2 MB in, 2 MB out."""
    kernels = (kernel("Cast", (X,), W), kernel("Abs", (W,), W, 20), kernel("Cast", (W,), X))
    return one_after_the_other(*kernels, wall=wall)


@pytest.mark.parametrize(("wall", "severity"), [(1000, "medium"), (3500, "low")])
def test_a_region_fires_with_what_one_kernel_saves(wall: float, severity: str) -> None:
    found = judge_rule("NS035", region(wall).store())
    assert (found.state, found.first.severity) == ("fail", severity)
    seen = found.first.observation
    assert (seen["chain"], seen["shape"]) == ("Cast + Abs + Cast", "1000,1000")
    assert (seen["regions"], seen["kernels"], seen["saved_launches"]) == (1, 3, 2)
    assert (seen["moved_bytes"], seen["fused_bytes"]) == (6e6 + 8e6 + 6e6, 4e6)
    assert seen["region_ns"] == 40_000 and seen["fused_ns"] == pytest.approx(4_000)
    assert seen["saving_ns"] == pytest.approx(36_000) and found.first.impact_ns == 36_000
    assert not seen["zero_filled"]
    example = found.evidence()[0]
    assert example.rows.tolist() == [2, 3, 4]  # type: ignore[union-attr]


def test_a_small_region_passes() -> None:
    assert judge_rule("NS035", region(4000).store()).state == "pass"


def test_what_strides_cost_a_copy_stays() -> None:
    """A transpose of 4 MB takes 30 us where its bytes take 4: the 26 us are of the strides."""
    scene = one_after_the_other(kernel("Transpose", (X,), X, 30), kernel("Abs", (X,), X), wall=300)
    found = judge_rule("NS035", scene.store()).first.observation
    assert found["fused_ns"] == pytest.approx(4_000 + 26_000, rel=0.01) and found["region_ns"] == 40_000


def test_advice_is_fused_by_setting_only_where_nothing_bars_it() -> None:
    found = judge_rule("NS035", region(1000).store()).first
    lazy = next(one for one in found.advice if one.set)
    assert lazy.set == {"TORCH_NPU_LAZY_FUSION": "True"} and lazy.hazards == ["accuracy"]
    assert {"graph-capture", "TASK_QUEUE_ENABLE=0", "ASCEND_LAUNCH_BLOCKING=1"} <= set(lazy.excludes)


@pytest.mark.parametrize(("first", "is_told"), [("Cast", True), ("Abs", False)])
def test_sums_of_gradients_are_told_of_their_fused_product(first: str, is_told: bool) -> None:
    kernels = (kernel(first, (X,), W), kernel("Add", (W, W), W, 20), kernel("RmsNormGrad", ("3 BF16",), "3 BF16"))
    found = judge_rule("NS035", one_after_the_other(*kernels, wall=400).store()).first
    assert any("ATB" in one.text.en for one in found.advice) == is_told


def on_gpu(operator: str, reads: Sequence[str], writes: str) -> Kernel:
    return kernel(f"aten::{operator}", reads, writes)


def regions_on_gpu(*kernels: Kernel) -> list[tuple[list[int], object]]:
    return regions_of(GPU_HEAVY, *kernels, GPU_HEAVY, words=GPU)


GPU_HEAVY: Kernel = ("aten::mm", 50, HEAVY[2], HEAVY[3])


@pytest.mark.parametrize("operator", ["clamp", "clamp_", "mul_"])
def test_what_is_done_twice_in_a_row_is_done_to_two_tensors(operator: str) -> None:
    """A loop over tensors of one size: no one passes its result on to the next."""
    assert not regions_on_gpu(*[on_gpu(operator, (X,), X)] * 4)
    two = regions_on_gpu(on_gpu(operator, (X,), X), on_gpu("exp", (X,), X))
    assert [numbers for numbers, _ in two] == [[1, 2]]


def test_a_block_of_operators_in_place_that_comes_again_has_another_tensor() -> None:
    block = [on_gpu("mul_", (X,), X), on_gpu("add_", (X,), X)]
    found = regions_on_gpu(*block, *block)
    assert [numbers for numbers, _ in found] == [[1, 2], [3, 4]]


def test_a_half_of_a_tensor_is_read_where_it_lies() -> None:
    """A gate on a GPU: no copy cuts the halves out, and both are one tensor that is read once."""
    whole, half = "1000,2000 BF16", "1000,1000 BF16"
    gate = (on_gpu("abs", (whole,), whole), on_gpu("silu", (half,), half), on_gpu("mul", (half, half), half))
    assert regions_on_gpu(*gate) == [([1, 2, 3], 4 + 2)]


def test_the_gradient_of_a_slice_is_written_into_the_tensor_that_was_created() -> None:
    """Only the part is listed; what reads the whole reads what was created and written into."""
    part = "10,1000 BF16"
    kernels = (on_gpu("fill_", (), X), on_gpu("copy_", (part,), part), on_gpu("add", (X, X), X))
    assert [numbers for numbers, _ in regions_on_gpu(*kernels)] == [[1, 2, 3]]
