"""NS001: the share of attention and matrix products."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.network_structure.scenes import FILLER, Kernel, scene_of


def model(hot: float, rest: float, *, optimizer: float = 500, attention: str = "FlashAttentionScore") -> Scene:
    """``hot`` us of matrix products and attention, ``rest`` us of others, and an optimizer that does not count."""
    x = ("64,32 BF16",)
    kernels: list[Kernel] = [(attention, 100, x, x), (FILLER, hot - 100, x, x), ("Mul", rest * 0.6, x, x)]
    kernels += [("Cast", rest * 0.4, x, x)]
    if optimizer:
        kernels += [("ApplyAdamWV2", optimizer, x, x)]
    return scene_of(*kernels, wall=0)


def test_low_share_counts_what_the_phase_does_not_need() -> None:
    found = judge_rule("NS001", model(600, 500).store())
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
    assert judge_rule("NS001", model(hot, rest).store()).state == "pass"


def test_low_share_leaves_an_unfused_optimizer_to_its_own_finding() -> None:
    scene = model(700, 300, optimizer=0)
    w = "50,40 FLOAT"
    chain = [("Lerp", (w, w)), ("Mul", (w,)), ("Addcmul", (w, w, w)), ("Sqrt", (w,)), ("RealDiv", (w,)), ("Add", (w,))]
    for number, (type_, reads) in enumerate([*chain, ("Addcdiv", (w, w, w))]):
        scene.tensors(1000 + 100 * number, 100, type_, reads, (w,))
    scene.tensors(1700, 1, "SoftmaxGrad", ("9,9 BF16",), ("9,9 BF16",))
    found = judge_rule("NS001", scene.store())
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
    found = judge_rule("NS001", scene.store())
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
    assert judge_rule("NS001", scene_of(*kernels, wall=0).store()).state == "not_applicable"
