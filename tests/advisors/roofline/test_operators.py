"""Rooflines of operators, and convolutions that are matrix products."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.contracts.missing import NotApplicable
from advisor_core.run.rank import fact_store as rank_facts
from advisor_core.testing import measure
from advisors.pipeline_bound.roofline import roofline
from advisors.pipeline_bound.roofline_by_phase import roofline_by_phase
from advisors.roofline.convolutions import convolution_of
from advisors.shape_affinity.patches import patches
from tests.advisors.build import host
from tests.advisors.cures import cure_of, shorter
from tests.once import ResultOf

CHIP = {"ai_core_num": 24, "aiv_num": 48, "aic_frequency": 1800}
PEAK = 24 * 1800e6 * 2 * 4096


@pytest.mark.parametrize(
    ("image", "weight", "result", "form", "window"),
    [
        ("8,3,224,224", "1024,3,14,14", "8,1024,16,16", "NCHW", (14, 14)),
        ("1024,3,2,14,14", "1280,3,2,14,14", "1024,1280,1,1,1", "NCDHW", (2, 14, 14)),
        ("8,224,224,3", "64,4,4,3", "8,56,56,64", "NHWC", (4, 4)),
        ("8,3,224,224", "64,3,7,7", "8,64,112,112", "NCHW", ()),  # overlaps
        ("8,64,56,56", "64,64,1,1", "8,64,56,56", "NCHW", ()),  # of one place: no patch
        ("8,64,56,56", "64,64,3,3", "8,64,28,28", "NCHW", ()),  # fits by its lengths, not by its weights
    ],
)
def test_a_window_that_moves_by_its_own_length(
    image: str, weight: str, result: str, form: str, window: tuple[int, ...]
) -> None:
    found = convolution_of(f"{image};{weight}", f"{form};{form}", result, form)
    assert found is not None and found.window == window


def test_tiled_weights_tell_a_window_by_how_many_they_are() -> None:
    patch = convolution_of("8,1,224,224,16;196,64,16,16;1024", "NC1HWC0;FRACTAL_Z;NCHW", "8,64,16,16,16", "NC1HWC0")
    assert patch is not None and patch.window == (14, 14)
    alexnet = convolution_of("32,1,224,224,8;121,4,16,8;64", "NC1HWC0;FRACTAL_Z;NCHW", "32,8,55,55,8", "NC1HWC0")
    assert alexnet is not None and alexnet.window == ()


def test_depthwise_convolutions_are_not_told() -> None:
    assert convolution_of("8,64,56,56;64,1,7,7", "NCHW;NCHW", "8,64,50,50", "NCHW") is None


def embedding(duration: float, type_: str = "Conv3D") -> Scene:
    """A patch embedding of Qwen2-VL and little else."""
    scene = Scene()
    image, weight = "16384,3,2,14,14 BF16 NCDHW", "1280,3,2,14,14 BF16 NCDHW"
    scene.tensors(0, duration, type_, [image, weight], ["16384,1280,1,1,1 BF16 NCDHW"]).busy(
        24, aic_mte1=duration * 0.9
    )
    matrix = "8192,1024 BF16"
    return scene.tensors(duration + 10, 40, "Add", [matrix, matrix], [matrix], core="AI_VECTOR_CORE")


def test_a_patch_embedding_is_told_with_what_the_product_takes() -> None:
    found = measure(patches, embedding(100_000).store(chip=CHIP)).frame.iloc[0]
    flops = 2 * 16_384 * 1_176 * 1_280
    assert (found["rows"], found["inputs"], found["outputs"]) == (16_384, 1_176, 1_280)
    assert found["efficiency"] == pytest.approx(flops / 0.1 / PEAK, rel=1e-3)
    assert found["product_ns"] == pytest.approx(flops / PEAK * 1e9, rel=1e-3)


@pytest.mark.parametrize(("duration", "state"), [(100_000, "fail"), (400, "pass")])
def test_a_patch_embedding_as_a_convolution_is_found_where_it_is_slow(duration: float, state: str) -> None:
    assert judge_rule("SA008", embedding(duration).store(chip=CHIP)).state == state


def test_a_convolution_that_overlaps_is_none_of_it() -> None:
    image, weight = "8,3,224,224 BF16 NCHW", "64,3,7,7 BF16 NCHW"
    scene = Scene().tensors(0, 1_000, "Conv2D", [image, weight], ["8,64,112,112 BF16 NCHW"])
    with pytest.raises(NotApplicable):
        measure(patches, scene.store(chip=CHIP))


def test_one_kernel_of_nearly_the_whole_step_is_never_without_a_finding() -> None:
    """Whatever its name: here one that nothing is known of but its bytes, and one of which nothing is known at all."""
    sort = Scene().tensors(0, 96_000, "Whatever", ["8192,1024 FLOAT"], ["8192,1024 FLOAT"], core="AI_VECTOR_CORE")
    sort.tensors(96_010, 4_000, "Add", ["8192,1024 FLOAT"], ["8192,1024 FLOAT"], core="AI_VECTOR_CORE")
    assert judge_rule("PB016", sort.store()).state == "fail"
    unknown = Scene().kernel(0, 96_000, "Whatever").kernel(96_010, 4_000, "Other")
    assert judge_rule("PB016", unknown.store()).state == "cannot_answer"
    assert judge_rule("PB017", unknown.store()).state == "fail"


def test_bounds_by_what_is_computed_by_bytes_and_by_pipes() -> None:
    scene = Scene()
    scene.tensors(0, 100, "MatMulV2", ["4096,1024 BF16", "1024,4096 BF16"], ["4096,4096 BF16"]).busy(24, aic_mac=50)
    scene.tensors(200, 40, "Add", ["8192,1024 BF16", "8192,1024 BF16"], ["8192,1024 BF16"], core="AI_VECTOR_CORE")
    scene.tensors(300, 100, "FlashAttentionScore", ["8,8,512,64 BF16"], ["8,8,512,64 BF16"], core="MIX_AIC")
    scene.busy(24, aic_mac=70)
    frame = measure(roofline, scene.store(chip=CHIP), bandwidth=8e11).frame.set_index("operator")
    assert frame["reached"]["MatMulV2"] == pytest.approx(2 * 4096 * 4096 * 1024 / 100e-6 / PEAK, rel=1e-3)
    assert frame["reached"]["Add"] == pytest.approx(3 * 2 * 8192 * 1024 / 1.6e12 / 40e-6)
    assert frame["bound"].to_dict() == {"MatMulV2": "computing", "Add": "memory", "FlashAttentionScore": ""}
    assert frame["reached"]["FlashAttentionScore"] == pytest.approx(0.7)
    assert frame["by_pipes"].to_dict() == {"MatMulV2": False, "Add": False, "FlashAttentionScore": True}


def test_an_operator_is_held_against_the_bound_of_each_part() -> None:
    """The same product on many rows and on few: at the peak there, at a twentieth of the bytes of its weight here."""
    wide, weight, few = "8192,4096 BF16", "4096,4096 BF16", "8,4096 BF16"
    at_peak = 2 * 8192 * 4096 * 4096 / PEAK * 1e6
    slow = 20 * (4096 * 4096 + 2 * 8 * 4096) * 2 / 1.6e12 * 1e6
    scene = Scene().step(1, -10, at_peak + slow + 200)
    scene.event("mstx", "update_actor", -5, at_peak + 10)
    scene.event("mstx", "generate_sequences", at_peak + 10, slow + 100)
    scene.tensors(0, at_peak, "MatMulV3", [wide, weight], [wide], launched=-4)
    query, cached = "8,1,32,128 BF16", "8,2048,32,128 BF16"
    scene.tensors(at_peak + 20, 5, "IncreFlashAttention", [query, cached, cached], [query], launched=at_peak + 12)
    scene.tensors(at_peak + 40, slow, "MatMulV3", [few, weight], [few], launched=at_peak + 30)
    store = scene.store(chip=CHIP)
    whole = measure(roofline, store, bandwidth=8e11).frame.set_index("operator")
    assert whole["bound"]["MatMulV3"] == "computing" and whole["reached"]["MatMulV3"] > 0.5
    parts = measure(roofline_by_phase, store, bandwidth=8e11).frame
    parts = parts[parts["operator"] == "MatMulV3"].set_index("phase")
    assert parts["bound"].to_dict() == {"training": "computing", "decode": "memory"}
    assert parts["reached"].to_dict() == {"training": pytest.approx(1.0), "decode": pytest.approx(0.05, rel=0.01)}
    found = judge_rule("PB016", store)
    assert found.first.observation["phase"] == "decode"
    assert found.first.impact_ns == pytest.approx(slow * 1000 * (1 - 0.05 / 0.2), rel=0.02)


def test_operators_of_real_steps_reach_what_they_should(result_of: ResultOf, profiles: Path) -> None:
    """Nothing reaches more than its bound; products and optimizers come near it, and no rule of these fires."""
    for name in ("alexnet-ddp-text-level1", "gpt3-kernel-details-only_ascend_pt"):
        result = result_of(profiles / "ascend" / name)
        assert not {"PB016", "PB017", "SA008"} & {finding.rule for finding in result.findings}
    loader = host().loaders["ascend_pytorch"]
    (source,) = loader.discover(profiles / "ascend" / "gpt3-kernel-details-only_ascend_pt")
    frame = measure(roofline, rank_facts(host(), loader.load(source)), bandwidth=8e11).frame.set_index("operator")
    assert frame["reached"]["MatMul"] == pytest.approx(0.851, abs=0.01)
    assert frame["reached"]["ApplyAdamW"] == pytest.approx(0.74, abs=0.01)
    assert frame["reached"].max() <= 1.0


@pytest.mark.parametrize("rule", ["SA008", "PB016"])
def test_the_cure_makes_the_convolution_take_what_the_rule_promises(rule: str) -> None:
    store = embedding(100_000).store(chip=CHIP)
    found = judge_rule(rule, store)
    assert 50_000_000 < found.first.impact_ns < 100_000_000
    assert shorter(store, cure_of(found)) == {0: pytest.approx(found.first.impact_ns, abs=1)}
