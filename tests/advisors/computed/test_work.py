"""What kernels compute, in words of no vendor: the same program on both, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from advisor_core.api.facts import COMPUTED_COLUMNS, ComputedWork
from advisor_core.api.testing import ASCEND, GPU, Scene
from advisors.computed.names import formula, fused_formula, operation
from advisors.computed.work import computed_work
from advisors.fusion.computations import computations
from reports.labels import catalogue
from tests.advisors.shape_affinity.scenes import CHIP, VECTOR

A100 = {"multiprocessors": 108, "compute_capability": 8.0, "memory_bytes": 79 << 30}
PEAK = 108 * 2048 * 1410e6


def told(scene: Scene, **about: Any) -> ComputedWork:
    found = scene.store(**about)[computed_work]
    assert list(found.rows.columns) == [column.name for column in COMPUTED_COLUMNS]
    return found


def by_what(found: ComputedWork) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Calls, kernels and ns by kind and what."""
    sums = found.rows.groupby(["kind", "what"])[["calls", "kernels", "ns"]].sum()
    return {key: tuple(row) for key, row in zip(sums.index, sums.to_numpy().tolist(), strict=True)}


def test_a_product_is_the_same_on_both_and_transposed() -> None:
    npu = Scene(words=ASCEND).step(1, 0, 1000)
    npu.tensors(0, 100, "MatMulV3", ["4096,512 BF16", "512,1024 BF16"], ["4096,1024 BF16"])
    gpu = Scene(words=GPU).step(1, 0, 1000)
    gpu.tensors(0, 100, "aten::mm", ["1024,512 BF16", "512,4096 BF16"], ["1024,4096 BF16"], name="gemm")
    expected = {("product", "1024 x 4096 x 512"): (1, 1, 100_000)}
    assert by_what(told(npu)) == by_what(told(gpu, chip=A100, vendor="gpu", maker="NVIDIA")) == expected


def test_the_bound_of_a_product_is_that_of_the_chip() -> None:
    gpu = Scene(words=GPU).step(1, 0, 1000)
    gpu.tensors(0, 900, "aten::mm", ["4096,4096 BF16", "4096,4096 BF16"], ["4096,4096 BF16"], name="gemm")
    found = told(gpu, chip=A100, vendor="gpu", maker="NVIDIA")
    (row,) = found.rows.to_dict("records")
    assert row["least_ns"] == row["computing_ns"] == round(2 * 4096**3 / PEAK * 1e9)
    assert row["flops"] == 2 * 4096**3 and row["bounded_ns"] == 900_000 and row["dtype"] == "BF16"
    assert found.peak_flops["BF16"] == PEAK and found.peak_bytes == 2.039e12


def test_an_unknown_chip_has_no_bound() -> None:
    gpu = Scene(words=GPU).step(1, 0, 1000)
    gpu.tensors(0, 900, "aten::mm", ["4096,4096 BF16", "4096,4096 BF16"], ["4096,4096 BF16"], name="gemm")
    found = told(gpu, vendor="gpu")
    (row,) = found.rows.to_dict("records")
    assert (row["bounded_ns"], row["least_ns"], row["flops"]) == (0, 0, 2 * 4096**3)
    assert found.peak_flops == {} and found.peak_bytes is None


def written_out(scene: Scene, bmm: str, softmax: str, mul: str, at: float = 0.0, **more: Any) -> Scene:
    scores, narrow, wide = "1,8,256,256 BF16", "8,256,64 BF16", "8,64,256 BF16"
    flat = "8,256,256 BF16"
    scene.tensors(at, 50, bmm, [narrow, wide], [flat], **more)
    scene.tensors(at + 50, 20, mul, [scores], [scores], core=VECTOR, **more)
    scene.tensors(at + 70, 20, softmax, [scores], [scores], core=VECTOR, **more)
    return scene.tensors(at + 90, 50, bmm, [flat, narrow], [narrow], **more)


def test_an_attention_is_the_same_fused_or_written_out() -> None:
    """1 x 8 heads of 64 channels over 256 tokens: 512 channels."""
    npu = written_out(Scene(words=ASCEND).step(1, 0, 1000), "BatchMatMulV2", "SoftmaxV2", "Muls")
    gpu = Scene(words=GPU).step(1, 0, 1000)
    heads = "1,256,8,64 BF16"
    gpu.tensors(0, 40, "aten::_flash_attention_forward", [heads] * 3, [heads], name="flash_fwd_kernel")
    assert by_what(told(npu)) == {("attention", "256 x 256 x 512"): (1, 4, 140_000)}
    assert by_what(told(gpu, vendor="gpu")) == {("attention", "256 x 256 x 512"): (1, 1, 40_000)}


def test_two_attentions_behind_one_another_are_two() -> None:
    scene = Scene(words=ASCEND).step(1, 0, 1000)
    for layer in range(2):
        written_out(scene, "BatchMatMulV2", "SoftmaxV2", "Muls", at=300.0 * layer)
        scene.tensors(300 * layer + 200, 50, "MatMulV3", ["256,512 BF16", "512,512 BF16"], ["256,512 BF16"])
    assert by_what(told(scene)) == {
        ("attention", "256 x 256 x 512"): (2, 8, 280_000),
        ("product", "256 x 512 x 512"): (2, 2, 100_000),
    }


def test_a_convolution_of_several_kernels_is_one() -> None:
    """Both kernels have the shapes of the operator: its operations count once."""
    gpu = Scene(words=GPU).step(1, 0, 1000)
    image, weight, result = "8,64,28,28 FLOAT16", "128,64,3,3 FLOAT16", "8,128,28,28 FLOAT16"
    gpu.event("cpu_op", "aten::cudnn_convolution", 0, 50)
    for at, us in ((60, 5), (70, 80)):
        gpu.tensors(at, us, "aten::cudnn_convolution", [image, weight], [result], name="conv", launched=at - 30)
    found = told(gpu, chip=A100, vendor="gpu", maker="NVIDIA")
    assert by_what(found) == {("convolution", "6272 x 128 x 576"): (1, 2, 85_000)}
    assert found.rows["flops"].sum() == 2 * 6272 * 128 * 576


@pytest.mark.parametrize("words", [ASCEND, GPU])
def test_every_kernel_is_in_one_row(words: Any) -> None:
    scene = written_out(Scene(words=words).step(1, 0, 1000), "BatchMatMulV2", "SoftmaxV2", "Muls")
    scene.tensors(200, 30, "Unheard", ["4 FLOAT"], ["4 FLOAT"], core=VECTOR)
    rows = told(scene, vendor="gpu" if words is GPU else "ascend", **({} if words is GPU else {"chip": CHIP})).rows
    assert rows["ns"].sum() == 170_000 and rows["kernels"].sum() == 5


def test_names_of_both_vendors_are_one() -> None:
    assert fused_formula("RmsNorm") == fused_formula("aten::_fused_rms_norm") == formula("rms_norm")
    assert fused_formula("SwiGlu") == formula("swiglu_of_two_products") == "swiglu"
    assert fused_formula("LayerNormV3") == fused_formula("aten::native_layer_norm_backward") == "layer_norm"
    assert operation("add", "elementwise") == "add" and operation("", "elementwise") == "elementwise"


def test_the_gradients_of_a_convolution_are_two_and_of_images_one() -> None:
    gpu = Scene(words=GPU).step(1, 0, 1000)
    for at, (image, weight) in ((0, ("8,64,28,28", "128,64,3,3")), (200, ("8,3,28,28", "128,3,3,3"))):
        gpu.event("cpu_op", "aten::convolution_backward", at, 50)
        inputs = ["8,128,28,28 FLOAT16", f"{image} FLOAT16", f"{weight} FLOAT16"]
        for later in (60, 100):
            gpu.tensors(at + later, 40, "aten::convolution_backward", inputs, [], name="conv", launched=at + later - 50)
    rows = told(gpu, vendor="gpu").rows.set_index("what")
    assert rows["calls"].to_dict() == {"6272 x 128 x 576": 2, "6272 x 128 x 27": 1}
    assert rows["flops"].to_dict() == {"6272 x 128 x 576": 4 * 6272 * 128 * 576, "6272 x 128 x 27": 2 * 6272 * 128 * 27}


def test_a_computation_is_in_one_row_whatever_its_kernels_lie_in() -> None:
    """The kernels of one attention may count for several parts of the model: the longest decides."""
    scene = Scene(words=ASCEND).step(1, 0, 10_000)
    for layer in range(4):
        written_out(scene, "BatchMatMulV2", "SoftmaxV2", "Muls", at=500.0 * layer)
        scene.tensors(500 * layer + 200, 50, "MatMulV3", ["256,512 BF16", "512,512 BF16"], ["256,512 BF16"])
    rows = told(scene).rows
    assert rows[rows["kind"] == "attention"]["calls"].sum() == 4


def test_every_formula_has_a_label() -> None:
    names = {formula(entry.name) for entry in computations()}
    assert {name for name in names if f"compare.formula.{name}" not in catalogue()} == set()
