"""Network structure: shares, slices, conversions, FP32 and AI CPU; unfused chains are in `test_fusion.py`."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from advisors.half_precision import reads_fp32
from advisors.network_structure.conversions import _undone
from advisors.step_kernels import StepKernels
from tests.advisors.build import Scene, outcome

Kernel = tuple[str, float, Sequence[str], Sequence[str]]
FILLER = "MatMulV3"


def scene_of(*kernels: Kernel, wall: float = 1000, filler: str = FILLER) -> Scene:
    """The kernels back to back from 0, and one more that fills the step up to ``wall`` us."""
    scene = Scene().step(1, -10, wall + 20)
    at = 0.0
    for type_, duration, reads, writes in kernels:
        scene.tensors(at, duration, type_, reads, writes)
        at += duration
    if at < wall:
        scene.tensors(at, wall - at, filler, ("7,3 BF16", "3,5 BF16"), ("7,5 BF16",))
    return scene


def kinds(found: object) -> list[str]:
    return [advice.kind for advice in found.first.advice]  # type: ignore[attr-defined]


# --- NS001


def model(hot: float, rest: float, *, optimizer: float = 500, attention: str = "FlashAttentionScore") -> Scene:
    """``hot`` us of matrix products and attention, ``rest`` us of others, and an optimizer that does not count."""
    x = ("64,32 BF16",)
    kernels: list[Kernel] = [(attention, 100, x, x), (FILLER, hot - 100, x, x), ("Mul", rest * 0.6, x, x)]
    kernels += [("Cast", rest * 0.4, x, x)]
    if optimizer:
        kernels += [("ApplyAdamWV2", optimizer, x, x)]
    return scene_of(*kernels, wall=0)


def test_low_share_counts_what_the_phase_does_not_need() -> None:
    found = outcome("NS001", model(600, 500).store())
    seen = found.first.observation
    # 600 us would be 70 % of 857.143 us; the layers take 1100. The step has 1600.
    assert seen["phase"] == "training" and seen["expected_share"] == 0.70
    assert (seen["hot_ns"], seen["kernel_ns"]) == (600_000, 1_100_000)
    assert seen["hot_share"] == pytest.approx(600 / 1100)
    assert found.first.impact_ns == round(1_100_000 - 600_000 / 0.7) == 242_857
    assert seen["share_of_step"] == pytest.approx(242_857 / 1_600_000, rel=1e-5)
    assert seen["largest_other"] == "elementwise" and seen["largest_other_share"] == pytest.approx(300 / 1100)
    # A share alone is never worse than medium, and its time cannot be more.
    assert found.first.severity == "medium" and found.first.confidence == "medium"
    classes = [row["operator_class"] for row in found.evidence()[0].rows]
    assert classes[:4] == ["matmul", "elementwise", "cast", "attention"] and "optimizer" not in classes[:4]


@pytest.mark.parametrize(("hot", "rest"), [(700, 300), (690, 310)])
def test_low_share_is_silent_at_the_expected_share_and_for_a_trifle(hot: float, rest: float) -> None:
    # 690 of 1000 us: 14.3 us too many of 1500, below one percent.
    assert outcome("NS001", model(hot, rest).store()).state == "pass"


def test_low_share_leaves_an_unfused_optimizer_to_its_own_finding() -> None:
    scene = model(700, 300, optimizer=0)
    w = "50,40 FLOAT"
    chain = [("Lerp", (w, w)), ("Mul", (w,)), ("Addcmul", (w, w, w)), ("Sqrt", (w,)), ("RealDiv", (w,)), ("Add", (w,))]
    for number, (type_, reads) in enumerate([*chain, ("Addcdiv", (w, w, w))]):
        scene.tensors(1000 + 100 * number, 100, type_, reads, (w,))
    scene.tensors(1700, 1, "SoftmaxGrad", ("9,9 BF16",), ("9,9 BF16",))
    found = outcome("NS001", scene.store())
    assert found.observed is not None
    assert found.observed.frame["kernel_ns"][0] == 1_001_000


@pytest.mark.parametrize(
    ("attention", "phase", "expected", "state"),
    [
        ("IncreFlashAttention", "decode", 0.5, "pass"),
        ("PromptFlashAttention", "prefill", 0.7, "fail"),
        ("SoftmaxV2", "unknown", 0.5, "pass"),
    ],
)
def test_low_share_expects_less_of_decode_and_of_what_it_does_not_know(
    attention: str, phase: str, expected: float, state: str
) -> None:
    scene = model(650, 450, optimizer=0, attention=attention)
    if phase == "unknown":
        for row in scene.rows["kernels"]:
            row["input_shapes"] = ""
    found = outcome("NS001", scene.store())
    assert found.state == state and found.observed is not None
    seen = found.observed.frame.iloc[0]
    assert (seen["phase"], seen["expected_share"]) == (phase, expected)


@pytest.mark.parametrize(
    "kernels",
    [
        [(FILLER, 100, (), ()), ("LogSoftmaxV2", 10, (), ()), ("Mul", 500, (), ())],
        [(FILLER, 100, (), ()), ("SoftmaxV2", 10, (), ()), ("Conv2D", 101, (), ())],
        [("SoftmaxV2", 10, (), ()), ("Mul", 500, (), ())],
    ],
    ids=["a classifier", "convolutions", "no products"],
)
def test_low_share_is_about_language_models_only(kernels: list[Kernel]) -> None:
    assert outcome("NS001", scene_of(*kernels, wall=0).store()).state == "not_applicable"


# --- NS002

QKV = ("64,96 BF16",)


def cut(*slices: Kernel, wall: float = 1000) -> Scene:
    product: Kernel = ("MatMulV3", 100, ("64,16 BF16", "16,96 BF16"), QKV)
    return scene_of(product, *slices, wall=wall)


def test_slices_of_a_product_are_found_and_halved() -> None:
    scene = cut(("Slice", 10, QKV, ("64,32 BF16",)), ("StridedSlice", 20, ("4,16,96 BF16",), ("4,16,64 BF16",)))
    found = outcome("NS002", scene.store())
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
    found = outcome("NS002", cut(*halves).store())
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
    assert outcome("NS002", cut(*slices).store()).state == "not_applicable"


def test_slices_are_silent_below_the_threshold() -> None:
    halves: list[Kernel] = [("Slice", 0.9, QKV, ("64,48 BF16",))] * 2
    assert outcome("NS002", cut(*halves).store()).state == "pass"
    halves = [("Slice", 1, QKV, ("64,48 BF16",))] * 2
    assert outcome("NS002", cut(*halves).store()).state == "fail"


def test_slices_inside_a_swiglu_are_counted_there() -> None:
    half = ("64,48 BF16",)
    swiglu: list[Kernel] = [("Slice", 30, QKV, half), ("Swish", 5, half, half), ("Slice", 30, QKV, half)]
    found = outcome("NS002", cut(*swiglu, ("Mul", 5, (*half, *half), half)).store())
    seen = found.first.observation
    assert (seen["slice_ns"], seen["in_chain_ns"], seen["loose_ns"]) == (60_000, 60_000, 0)
    assert found.first.impact_ns == 0 and found.first.severity == "low"


# --- NS003


def converted(duration: float, *, name: str = "trans_TransData_0", training: bool = True, wall: float = 1000) -> Scene:
    """One tensor converted, used and converted back, ``duration`` us each; then another that is not undone."""
    plain, tiled = ("8,3,32,32 FLOAT NCHW",), ("8,1,32,32,8 FLOAT NC1HWC0",)
    scene = Scene().step(1, -10, wall + 20)
    scene.tensors(0, duration, "TransData", plain, tiled, name=name)
    scene.tensors(duration, 100, "Conv2D", tiled, tiled)
    scene.tensors(100 + duration, duration, "TransData", tiled, plain, name=name)
    scene.tensors(100 + 2 * duration, duration, "TransData", ("4,4 FLOAT ND",), ("4,4 FLOAT FRACTAL_NZ",), name=name)
    used = 100 + 3 * duration
    return scene.tensors(used, wall - used, "ReluGrad" if training else "Relu", plain, plain)


def test_format_conversions_fire_with_what_is_undone() -> None:
    found = outcome("NS003", converted(10).store())
    seen = found.first.observation
    assert (seen["kernels"], seen["total_ns"], seen["back_and_forth_ns"]) == (3, 30_000, 20_000)
    assert seen["largest_input"] == "8,3,32,32 FLOAT NCHW" and seen["largest_output"] == "8,1,32,32,8 FLOAT NC1HWC0"
    assert (seen["before"], seen["after"]) == (None, "Conv2D") and seen["inside_ns"] == 0
    assert found.first.impact_ns == 30_000 and found.first.severity == "medium"
    assert seen["share_of_step"] == pytest.approx(0.03)
    assert kinds(found) == ["config", "investigate", "investigate", "config"]
    assert found.evidence()[1].rows.tolist() == [0, 2, 3]


@pytest.mark.parametrize("training", [True, False])
def test_private_formats_are_advised_last_and_with_their_hazard(training: bool) -> None:
    """Operators compute differently on NZ: what turns it on never comes first, and says so."""
    advice = outcome("NS003", converted(10, training=training).store()).first.advice
    turned_on = [one for one in advice if "allow_internal_format = True" in one.text.en]
    assert turned_on == [advice[-1]] and advice[-1].hazards == ["accuracy"]
    assert ("npu_format_cast" in advice[-1].text.en) == (not training)
    assert not any(one.hazards for one in advice[:-1])


def test_format_conversions_beyond_the_reach_are_not_paired() -> None:
    assert outcome("NS003", converted(10).store(), reach=0).first.observation["back_and_forth_ns"] == 0


@pytest.mark.parametrize(
    ("name", "training", "advice"),
    [
        ("aclnnMm_TransData_TransData", True, ["investigate"]),
        ("aclnnMm_TransData_TransData", False, ["investigate"]),
        ("trans_TransData_3", False, ["investigate", "investigate", "code"]),
    ],
)
def test_no_setting_reaches_what_an_operator_converts_for_itself(name: str, training: bool, advice: list[str]) -> None:
    found = outcome("NS003", converted(10, name=name, training=training).store())
    assert kinds(found) == advice
    assert found.first.observation["inside_ns"] == (30_000 if name.startswith("aclnn") else 0)


@pytest.mark.parametrize(("duration", "wall", "state"), [(5, 3000, "fail"), (4.99, 3000, "pass")])
def test_format_conversions_need_half_a_percent_of_the_step(duration: float, wall: float, state: str) -> None:
    scene = converted(duration, wall=1000)
    # The rest of the step is another rank's turn: idle here, so it is a percent of the kernel time.
    scene.tensors(wall - 1, 1, "Relu", ("4,4 FLOAT",), ("4,4 FLOAT",))
    assert outcome("NS003", scene.store()).state == state


def test_undone_agrees_with_looking_at_all_pairs() -> None:
    chance = random.Random(7)
    for _ in range(300):
        count, reach = chance.randint(1, 12), chance.randint(0, 4)
        places = sorted(chance.sample(range(30), count))
        reads = [chance.choice("abc") for _ in places]
        writes = [chance.choice("abc") for _ in places]
        breaks = np.array([chance.random() < 0.15 for _ in range(30)])
        groups = np.cumsum(breaks)
        expected = set()
        for number, at in enumerate(places):
            for other in range(number + 1, count):
                opposite = (reads[other], writes[other]) == (writes[number], reads[number])
                if opposite and groups[places[other]] == groups[at]:
                    if places[other] - at <= reach + 1:
                        expected |= {number, other}
                    break
        part = pd.DataFrame({"reads": reads, "writes": writes}, index=places)
        own = StepKernels(pd.DataFrame(), breaks, 1, 1.0)
        assert set(np.flatnonzero(_undone(part, own, reach))) == expected


# --- NS004, NS005, NS006

TENSOR = ("64,96 FLOAT ND",)
MOVES = {
    "NS004": ("ConcatD", ("64,48 FLOAT ND", "64,48 FLOAT ND"), TENSOR),
    "NS005": ("Cast", TENSOR, ("64,96 BF16 ND",)),
    "NS006": ("Transpose", TENSOR, ("96,64 FLOAT ND",)),
}


@pytest.mark.parametrize("rule", MOVES)
@pytest.mark.parametrize(
    ("duration", "state", "severity"),
    [(9.9, "pass", ""), (10, "fail", "low"), (30, "fail", "medium"), (50, "fail", "high")],
)
def test_kernels_that_only_move_data(rule: str, duration: float, state: str, severity: str) -> None:
    type_, reads, writes = MOVES[rule]
    scene = scene_of(("Relu", 50, TENSOR, TENSOR), (type_, duration, reads, writes), ("Abs", 50, writes, writes))
    found = outcome(rule, scene.store())
    assert found.state == state
    if state == "fail":
        assert found.first.severity == severity and found.first.impact_ns == duration * 1000
        seen = found.first.observation
        assert (seen["kernels"], seen["largest_type"]) == (1, type_)
        assert (seen["before"], seen["after"]) == ("Relu", "Abs")
        assert (seen["largest_input"], seen["largest_output"]) == (reads[0], writes[0])
        assert found.evidence()[1].rows.tolist() == [1]


@pytest.mark.parametrize("rule", MOVES)
@pytest.mark.parametrize(("duration", "state"), [(55.6, "fail"), (55.5, "pass")])
def test_a_tenth_of_the_kernel_time_counts_in_a_step_that_waits(rule: str, duration: float, state: str) -> None:
    type_, reads, writes = MOVES[rule]
    scene = scene_of((type_, duration, reads, writes), wall=555)
    # 55.6 of 556 us of kernels; the step lasts 10,000.
    scene.tensors(9999, 1, "Relu", TENSOR, TENSOR)
    found = outcome(rule, scene.store())
    assert found.state == state
    if state == "fail":
        assert found.first.severity == "low"


def test_conversions_that_nobody_makes_are_in_order() -> None:
    scene = scene_of(("Relu", 500, TENSOR, TENSOR))
    assert {rule: outcome(rule, scene.store()).state for rule in ("NS003", *MOVES)} == dict.fromkeys(
        ("NS003", *MOVES), "pass"
    )


def test_quantising_is_no_needless_cast() -> None:
    scene = scene_of(("DynamicQuant", 300, TENSOR, ("64,96 INT8",)), ("AscendQuantV2", 300, TENSOR, ("64,96 INT8",)))
    assert outcome("NS005", scene.store()).state == "pass"


def test_casts_of_a_chain_are_left_to_its_finding() -> None:
    x, wide, narrow = "20,50 BF16", "20,50 FLOAT", "20,1 FLOAT"
    norm: list[Kernel] = [
        ("Cast", 40, (x,), (wide,)),
        ("Pows", 5, (wide,), (wide,)),
        ("ReduceMean", 5, (wide,), (narrow,)),
        ("Add", 5, (narrow,), (narrow,)),
        ("Rsqrt", 5, (narrow,), (narrow,)),
        ("Mul", 5, (wide, narrow), (wide,)),
        ("Cast", 30, (wide,), (x,)),
        ("Mul", 5, (x, "50 BF16"), (x,)),
    ]
    found = outcome("NS005", scene_of(*norm, ("Cast", 20, ("9,9 INT64",), ("9,9 INT32",))).store())
    seen = found.first.observation
    assert (seen["kernels"], seen["total_ns"], seen["in_chain_ns"], seen["loose_ns"]) == (3, 90_000, 70_000, 20_000)
    assert found.first.impact_ns == 20_000


def test_conversions_without_shapes_are_counted_all_the_same() -> None:
    scene = scene_of(("Cast", 20, (), ()), filler="Relu")
    for row in scene.rows["kernels"]:
        row |= dict.fromkeys(("input_shapes", "input_dtypes", "output_shapes", "output_dtypes"), "")
        row |= {"input_formats": "", "output_formats": ""}
    seen = outcome("NS005", scene.store()).first.observation
    assert seen["total_ns"] == 20_000 and seen["largest_input"] is None


# --- NS020


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
    found = outcome("NS020", normed(*middle).store())
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
    assert outcome("NS020", scene.store()).state == "pass"


def test_norm_cast_product_does_not_reach_over_a_collective() -> None:
    scene = Scene().step(1, -10, 1200)
    scene.tensors(0, 5, "RmsNorm", ("64,32 BF16",), ("64,32 BF16",)).tensors(5, *UP[1:2], *UP[:1], *UP[2:])
    scene.collective(16, 20)
    scene.tensors(40, 40, "MatMulV3", ("64,32 FLOAT", "32,8 FLOAT"), ("64,8 FLOAT",))
    assert outcome("NS020", scene.store()).state == "pass"


def test_norm_cast_product_needs_a_norm() -> None:
    assert outcome("NS020", scene_of(UP).store()).state == "not_applicable"


# --- NS021


def on_ai_cpu(duration: float, dtype: str = "INT64", *, out: str = "INT64", count: int = 1) -> Scene:
    scene = Scene().step(1, -10, 1020)
    for number in range(count):
        scene.tensors(number * duration, duration, "Unique", (f"64 {dtype}",), (f"64 {out}",), core="AI_CPU")
    return scene.tensors(count * duration, 1000 - count * duration, "Mul", TENSOR, TENSOR)


def test_ai_cpu_operator_is_named_with_its_dtypes() -> None:
    found = outcome("NS021", on_ai_cpu(25, count=2).store())
    seen = found.first.observation
    assert (seen["operator"], seen["dtypes"], seen["kernels"]) == ("Unique", "INT64", 2)
    assert (seen["total_ns"], seen["longest_ns"]) == (50_000, 25_000)
    assert found.first.impact_ns == 50_000 and found.first.severity == "high"
    assert kinds(found) == ["code", "collect"] and found.evidence()[0].rows.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("dtype", "out", "double", "narrow"),
    [("DOUBLE", "INT64", True, False), ("INT64", "COMPLEX128", True, False), ("UINT8", "INT64", False, True)],
)
def test_ai_cpu_advice_follows_the_dtype(dtype: str, out: str, double: bool, narrow: bool) -> None:
    found = outcome("NS021", on_ai_cpu(25, dtype, out=out).store())
    assert (found.first.observation["double"], found.first.observation["narrow_integer"]) == (double, narrow)
    assert kinds(found) == ["code", "code", "collect"]


@pytest.mark.parametrize(("duration", "count"), [(20, 3), (9.9, 1)])
def test_ai_cpu_is_silent_for_short_kernels(duration: float, count: int) -> None:
    assert outcome("NS021", on_ai_cpu(duration, count=count).store()).state == "pass"


def test_ai_cpu_needs_one_percent_of_the_step() -> None:
    scene = on_ai_cpu(25).tensors(2600, 1, "Mul", TENSOR, TENSOR)
    assert outcome("NS021", scene.store()).state == "pass"


def test_no_ai_cpu_is_not_applicable() -> None:
    assert outcome("NS021", scene_of().store()).state == "not_applicable"


# --- NS022


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
    found = outcome("NS022", mixed(80, fast=20).store())
    seen = found.first.observation
    assert (seen["cube_ns"], seen["fp32_ns"], seen["fp32_share"]) == (100_000, 80_000, 0.8)
    assert seen["hf32_share"] == 0.25 and seen["share_of_step"] == pytest.approx(0.04)
    assert (seen["cube_saving_ns"], seen["vector_saving_ns"]) == (40_000, 0), "the filler moves next to nothing"
    assert found.first.impact_ns == 40_000 and found.first.severity == "medium"
    assert kinds(found) == ["investigate", "code", "config"] and found.evidence()[0].rows.tolist() == [1, 0]
    assert [advice.hazards for advice in found.first.advice] == [[], ["accuracy"], ["accuracy"]]


def test_fp32_gives_no_hf32_advice_where_it_is_on() -> None:
    assert kinds(outcome("NS022", mixed(80, fast=80).store())) == ["investigate", "code"]


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
    assert outcome("NS022", scene.store()).state == state


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
        seen = outcome("NS022", scene.store(chip=CHIP)).first.observation
        assert seen["cube_saving_ns"] == pytest.approx((400 - expected) * 1000, rel=1e-4)
        assert seen["saving_ns"] == pytest.approx(seen["cube_saving_ns"], abs=1)
    # Few rows: 134 MB of weights and little else are half of the bytes, 42 us, and hardly any arithmetic.
    scene = Scene().step(1, -10, 1200)
    scene.tensors(0, 400, "MatMulV3", ("8,4096 FLOAT", "4096,8192 FLOAT"), ("8,8192 FLOAT",), launched=-9)
    scene.busy(20, aic_mac=50)
    scene.tensors(400, 100, "Cast", ("40000,1000 BF16",), ("40000,1000 BF16",), launched=-8)
    seen = outcome("NS022", scene.store(chip=CHIP)).first.observation
    moved = (8 * 4096 + 4096 * 8192 + 8 * 8192) * 2 / 1.6e12 * 1e9
    assert seen["cube_saving_ns"] == pytest.approx(400_000 - moved, rel=1e-4)


def test_other_kernels_move_half_the_bytes_but_those_of_the_optimizer() -> None:
    wide = "20000,1000 FLOAT"
    scene = Scene().step(1, -10, 1200).tensors(0, 400, "MatMulV3", ("8,8 FLOAT",) * 2, ("8,8 FLOAT",), launched=-9)
    # 160 MB in 100 us; in 16 bits 80 MB.
    scene.tensors(400, 100, "Relu", (wide,), (wide,), launched=-8)
    scene.tensors(500, 300, "ApplyAdamWV2", (wide,) * 4, (wide,) * 3, launched=-7)
    seen = outcome("NS022", scene.store()).first.observation
    assert seen["vector_saving_ns"] == pytest.approx(50_000)
    assert seen["saving_ns"] == pytest.approx(200_000 + 50_000)


def test_a_slow_host_gains_less_from_16_bits() -> None:
    """A product of 40 us every 50 us: the device waits for the host already, and its last kernel ends 20 us sooner."""
    scene = Scene().step(1, -10, 600)
    for number in range(10):
        at = 50.0 * number
        scene.tensors(at, 40, "MatMulV3", ("8,8 FLOAT",) * 2, ("8,8 FLOAT",), launched=at - 5)
    found = outcome("NS022", scene.store())
    assert found.observed is not None
    seen = found.observed.frame.iloc[0]
    assert seen["cube_saving_ns"] == 200_000 and seen["saving_ns"] == 20_000


def test_fp32_without_work_on_the_cube_is_not_applicable() -> None:
    assert outcome("NS022", scene_of(filler="Mul").store()).state == "not_applicable"


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [("FLOAT;FLOAT", True), ("BF16;BF16;FLOAT", False), ("FLOAT;INT64", True), ("INT8;INT8", False), ("", False)],
)
def test_reads_fp32(dtypes: str, expected: bool) -> None:
    assert reads_fp32(dtypes) is expected
