"""NS022: work in FP32."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import GPU, Scene, judge_rule
from advisor_core.vocabulary.vocabulary import read_vocabulary
from advisors.half_precision import reads_fp32, reads_half
from tests.advisors.network_structure.scenes import kinds, scene_of


def mixed(fp32: float, *, fast: float = 0, total: float = 100, wall: float = 1000) -> Scene:
    """``fp32`` us of ``total`` us on the cube read FP32, ``fast`` of them in kernels that may use HF32."""
    scene = Scene().step(1, -10, wall + 20)
    wide, narrow = ("8,8 FLOAT", "8,8 FLOAT"), ("8,8 BF16", "8,8 BF16")
    if fast:
        scene.tensors(0, fast, "Conv2D", wide, wide[:1], hf32="YES", launched=-9)
    scene.tensors(fast, fp32 - fast, "MatMulV3", wide, wide[:1], hf32="NO", launched=-8)
    scene.tensors(fp32, total - fp32, "MatMulV3", narrow, narrow[:1], launched=-7)
    return scene.tensors(total, wall - total, "Mul", narrow, narrow[:1], launched=-6)


def test_fp32_on_the_cube_halves_where_its_arithmetic_is_not_known() -> None:
    found = judge_rule("NS022", mixed(80, fast=20).store())
    seen = found.first.observation
    assert (seen["dense_ns"], seen["fp32_ns"], seen["fp32_share"]) == (100_000, 80_000, 0.8)
    assert seen["shortened_share"] == 0.25 and seen["share_of_step"] == pytest.approx(0.04)
    assert (seen["dense_saving_ns"], seen["other_saving_ns"]) == (40_000, 0), "the filler moves next to nothing"
    assert found.first.impact_ns == 40_000 and found.first.severity == "medium"
    assert kinds(found) == ["investigate", "code", "config"] and found.evidence()[0].rows.tolist() == [1, 0]
    assert [advice.hazards for advice in found.first.advice] == [[], ["accuracy"], ["accuracy"]]
    assert "on 910A and 310P, which lack it, in FP16" in found.first.advice[1].text.en, "what a chip computes in"


def test_fp32_gives_no_hf32_advice_where_it_is_on() -> None:
    assert kinds(judge_rule("NS022", mixed(80, fast=80).store())) == ["investigate", "code"]


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (mixed(50), "fail"),
        (mixed(49.9), "pass"),
        (mixed(20, total=21), "fail"),
        (mixed(19.9, total=21), "pass"),
    ],
    ids=["half of it", "less than half", "one percent", "less than one percent"],
)
def test_fp32_thresholds(scene: Scene, state: str) -> None:
    assert judge_rule("NS022", scene.store()).state == state


CHIP = {"ai_core_num": 20, "aiv_num": 40, "aic_frequency": 1000}
"""20 cube cores at 1000 MHz: 163.84 TFLOP/s in 16 bits."""


def test_products_take_their_arithmetic_in_16_bits_or_half_the_bytes() -> None:
    """2 x 1024 x 1024 x 4096 operations take 52.4 us at the peak, 65.5 us at 80 % of it, and 104.9 us at 50 %. The
    yardstick moves 160 MB in 100 us: 1.6 TB/s."""
    left, right, out = "1024,4096 FLOAT", "4096,1024 FLOAT", "1024,1024 FLOAT"
    for mac, expected in ((360.0, 65.536), (200.0, 104.858)):
        scene = Scene().step(1, -10, 1200).tensors(0, 400, "MatMulV3", (left, right), (out,), launched=-9)
        scene.busy(20, aic_mac=mac)
        scene.tensors(400, 100, "Cast", ("40000,1000 BF16",), ("40000,1000 BF16",), launched=-8)
        seen = judge_rule("NS022", scene.store(chip=CHIP)).first.observation
        assert seen["dense_saving_ns"] == pytest.approx((400 - expected) * 1000, rel=1e-4)
        assert seen["saving_ns"] == pytest.approx(seen["dense_saving_ns"], abs=1)
    # Few rows: 134 MB of weights and little else are half of the bytes, 42 us, and hardly any arithmetic.
    scene = Scene().step(1, -10, 1200)
    scene.tensors(0, 400, "MatMulV3", ("8,4096 FLOAT", "4096,8192 FLOAT"), ("8,8192 FLOAT",), launched=-9)
    scene.busy(20, aic_mac=50)
    scene.tensors(400, 100, "Cast", ("40000,1000 BF16",), ("40000,1000 BF16",), launched=-8)
    seen = judge_rule("NS022", scene.store(chip=CHIP)).first.observation
    moved = (8 * 4096 + 4096 * 8192 + 8 * 8192) * 2 / 1.6e12 * 1e9
    assert seen["dense_saving_ns"] == pytest.approx(400_000 - moved, rel=1e-4)


def test_other_kernels_move_half_the_bytes_but_those_of_the_optimizer() -> None:
    wide = "20000,1000 FLOAT"
    scene = Scene().step(1, -10, 1200).tensors(0, 400, "MatMulV3", ("8,8 FLOAT",) * 2, ("8,8 FLOAT",), launched=-9)
    # 160 MB in 100 us; in 16 bits 80 MB.
    scene.tensors(400, 100, "Relu", (wide,), (wide,), launched=-8)
    scene.tensors(500, 300, "ApplyAdamWV2", (wide,) * 4, (wide,) * 3, launched=-7)
    seen = judge_rule("NS022", scene.store()).first.observation
    assert seen["other_saving_ns"] == pytest.approx(50_000)
    assert seen["saving_ns"] == pytest.approx(200_000 + 50_000)


def test_a_slow_host_gains_less_from_16_bits() -> None:
    """A product of 40 us every 50 us: the device waits for the host already, and its last kernel ends 20 us sooner."""
    scene = Scene().step(1, -10, 600)
    for number in range(10):
        at = 50.0 * number
        scene.tensors(at, 40, "MatMulV3", ("8,8 FLOAT",) * 2, ("8,8 FLOAT",), launched=at - 5)
    found = judge_rule("NS022", scene.store())
    assert found.observed is not None
    seen = found.observed.frame.iloc[0]
    assert seen["dense_saving_ns"] == 200_000 and seen["saving_ns"] == 20_000


def test_fp32_without_work_on_the_cube_is_not_applicable() -> None:
    assert judge_rule("NS022", scene_of(filler="Mul").store()).state == "not_applicable"


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [("FLOAT;FLOAT", True), ("BF16;BF16;FLOAT", False), ("FLOAT;INT64", True), ("INT8;INT8;FLOAT", False), ("", False)],
)
def test_reads_fp32(dtypes: str, expected: bool) -> None:
    assert reads_fp32(dtypes) is expected


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ("BF16;BF16", True),
        ("FLOAT16;FLOAT", True),
        ("BF16;INT8", False),
        ("INT8;INT8;FLOAT", False),
        ("FLOAT;FLOAT", False),
        ("", False),
    ],
)
def test_operands_that_are_quantised_already_do_not_count_as_16_bits(dtypes: str, expected: bool) -> None:
    assert reads_half(dtypes) is expected


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("volta_sgemm_64x64_nt", "fp32"),
        ("cutlass_80_simt_sgemm_128x32_8x5_nt_align1", "fp32"),
        ("cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", "fp32"),
        ("void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, float const*)", "fp32"),
        ("void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int)", "fp32"),
        ("void implicit_convolve_sgemm<__half, __half, 128, 5, 5, 3, 3, 3, 1, false, true, true>(int)", None),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_stage3", "fp32"),
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16", "tf32"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>(Params)", "tf32"),
        ("void cutlass::Kernel<cutlass_75_tensorop_s1688gemm_f16_256x64_16x4_nn_align4>(Params)", None),
        ("cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2", None),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", None),
        ("ampere_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", None),
        ("ampere_gcgemm_64x64_nt", None),
        ("Cijk_Ailk_Bljk_SB_MT64x64x16_MI32x32x2x1_SN", "fp32"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_MT256x240x64_MI16x16x16x1", None),
    ],
)
def test_names_of_kernels_tell_fp32(name: str, precision: str | None) -> None:
    words = read_vocabulary("gpu", "advisor_core.gpu", "vocabulary.yaml", "operator_classes.yaml")
    found = [kind for kind in ("tf32", "fp32") if getattr(words, f"{kind}_kernels").search(name)]
    assert found[:1] == ([precision] if precision else [])


def on_a_gpu(*products: tuple[str, float], dtypes: str = "") -> Scene:
    """Products by name and duration, one after the other, without shapes."""
    scene, start = Scene(words=GPU).step(1, -10, 1020), 0.0
    for name, took in products:
        scene.tensors(start, took, "aten::mm", name=name, launched=-8)
        start += took
    return scene


def test_what_no_name_tells_is_not_fp32() -> None:
    found = judge_rule("GNS004", on_a_gpu(("volta_sgemm_64x64_nt", 600), ("some_gemm", 400)).store())
    seen = found.first.observation
    assert (seen["dense_ns"], seen["fp32_ns"], seen["by_name_share"]) == (1_000_000, 600_000, 1)
    assert seen["shortened_product_share"] == 0
    assert judge_rule("GNS004", on_a_gpu(("volta_sgemm_64x64_nt", 400), ("some_gemm", 600)).store()).state == "pass"
    assert judge_rule("GNS004", on_a_gpu(("some_gemm", 600)).store()).state == "cannot_answer"


@pytest.mark.parametrize(("capability", "text"), [(6.1, None), (7.0, "float16"), (8.0, "bfloat16")])
def test_a_gpu_gets_the_16_bits_that_its_tensor_cores_take(capability: float, text: str | None) -> None:
    chip = {"compute_capability": capability}
    scene = on_a_gpu(("volta_sgemm_64x64_nt", 1000)).event("cpu_op", "Optimizer.step#SGD.step", 900, 50)
    advice = judge_rule("GNS004", scene.store(chip=chip, vendor="gpu", maker="NVIDIA")).first.advice
    given = [one.text.en for one in advice if one.kind == "code" and not one.only_if and "autocast" in one.text.en]
    assert [bool(text and text in one) for one in given] == ([] if text is None else [True]), given


def iteration(ref: float, update: float, *, update_dtype: str = "BF16") -> Scene:
    """A reference model in FP32 (``ref`` us of products), and an update (``update`` us), each marked."""
    scene = Scene().step(1, -10, ref + update + 100)
    wide, other = ("8,8 FLOAT", "8,8 FLOAT"), (f"8,8 {update_dtype}", f"8,8 {update_dtype}")
    scene.event("mstx", "compute_ref_log_prob", -5, ref + 10).event("mstx", "update_actor", ref + 10, update + 20)
    scene.tensors(0, ref, "MatMulV3", wide, wide[:1], launched=-4)
    scene.tensors(ref + 20, update, "MatMulV3", other, other[:1], launched=-3)
    return scene


def test_a_part_that_computes_in_fp32_is_judged_by_itself() -> None:
    """A quarter of all products read FP32, and all of those of the reference model do."""
    found = judge_rule("NS022", iteration(100, 300).store())
    seen = found.first.observation
    assert found.state == "fail" and seen["phases"] == "log_probs"
    assert (seen["dense_ns"], seen["fp32_ns"], seen["fp32_share"]) == (100_000, 100_000, 1.0)
    assert found.first.impact_ns == 50_000, "of its kernels alone"
    assert found.evidence()[0].rows.tolist() == [0]


def test_parts_that_compute_alike_are_one_finding() -> None:
    found = judge_rule("NS022", iteration(100, 300, update_dtype="FLOAT").store())
    assert found.first.observation["phases"] == "log_probs, training"
    assert found.first.observation["fp32_ns"] == 400_000 and found.observed is not None
    assert len(found.observed.frame) == 1
