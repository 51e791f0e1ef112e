"""Advice about fused kernels."""

from __future__ import annotations

import pytest

from tests.advisors.build import outcome
from tests.advisors.fusion.chains import ADAM, ATTENTION, ENTROPY, RMS, SGD, Kernel, scene_of


def test_attention_advice_follows_the_kind_of_run() -> None:
    """First the setting of the framework, then the mask of the call that is there, then other calls."""
    inference = outcome("NS013", scene_of(ATTENTION).store()).first
    training = outcome("NS013", scene_of(ATTENTION, end="SoftmaxGrad").store()).first
    for found, call in ((inference, "npu_fused_infer_attention_score("), (training, "npu_fusion_attention(")):
        words = ("attn_implementation", "is_causal", call)
        assert [[word in advice.text.en for word in words] for advice in found.advice] == [
            [True, False, False],
            [False, True, False],
            [False, False, True],
        ]
        assert [advice.hazards for advice in found.advice] == [[], ["accuracy", "crash"], ["accuracy", "crash"]]
    assert inference.confidence == "medium"


def test_attention_advice_says_of_each_call_what_a_true_mask_means() -> None:
    """True takes part in the one and is masked in the others: a mask that is handed over as it is computes silently
    wrong results."""
    meanings = {
        "torch.nn.functional.scaled_dot_product_attention": ("takes part", "参与计算"),
        "torch_npu.npu_fusion_attention(": ("is masked", "被屏蔽"),
        "torch_npu.npu_fused_infer_attention_score(": ("is masked", "被屏蔽"),
    }
    seen = set()
    for end in ("TopKV2", "SoftmaxGrad"):
        for advice in outcome("NS013", scene_of(ATTENTION, end=end).store()).first.advice:
            for call, (en, zh) in meanings.items():
                if call in advice.text.en and advice.kind == "code":
                    others = {one for one, _ in meanings.values()} - {en}
                    assert en in advice.risk.en and zh in advice.risk.zh
                    assert call.rstrip("(") in advice.risk.en and not any(one in advice.risk.en for one in others)
                    seen.add(call)
    assert seen == set(meanings)


def test_the_fused_loss_comes_after_what_keeps_ignored_labels() -> None:
    """It does not ignore labels of -100: they are out of its range."""
    training = outcome("NS014", scene_of(ENTROPY, end="SoftmaxGrad").store()).first.advice
    fused = next(one for one in training if "npu_cross_entropy_loss" in one.text.en)
    first = training[0]
    assert "torch.nn.functional.cross_entropy" in first.text.en and "npu_" not in first.text.en and not first.hazards
    assert training.index(fused) > 1 and set(fused.hazards) == {"accuracy", "crash"}
    assert "labels >= 0" in fused.text.en and "labels >= 0" in fused.text.zh
    for said in (fused.risk.en, fused.risk.zh):
        assert "-100" in said and "`ignore_index`" in said and "200,000" in said
    inference = outcome("NS014", scene_of(ENTROPY).store()).first.advice
    assert not any("npu_cross_entropy_loss" in one.text.en for one in inference), "it is for training only"


@pytest.mark.parametrize(("rule", "chain", "native", "place"), [("NS015", ADAM, "AdamW", 0), ("NS016", SGD, "SGD", 1)])
def test_the_optimizers_of_torch_come_before_those_that_join_parameters(
    rule: str, chain: list[Kernel], native: str, place: int
) -> None:
    """The fused SGD of torch has a kernel in new releases only, so that the default comes before it."""
    advice = outcome(rule, scene_of(chain, end="SoftmaxGrad").store()).first.advice
    fused = advice[place]
    assert f"torch.optim.{native}(params, fused=True)" in fused.text.en and not advice[0].hazards
    assert "GradScaler" in fused.risk.en and "GradScaler" in fused.risk.zh
    assert "torch.amp.GradScaler" in fused.excludes and "GradScaler" in fused.only_if.en
    assert ("26.2.0" in fused.only_if.en) is (native == "SGD")
    joined = [one for one in advice if "NpuFused" in one.text.en]
    assert joined == [advice[-1]] and set(advice[-1].hazards) == {"crash", "accuracy"}
    assert {"parameter-offload", "zero3"} <= set(advice[-1].excludes)
    for said in (advice[-1].text.en + advice[-1].risk.en, advice[-1].text.zh + advice[-1].risk.zh):
        assert all(word in said for word in ("FP32", "FP16", "BF16", "set_to_none=True"))


def test_fused_adam_is_not_promised_for_adam_with_weight_decay() -> None:
    """There is no fused kernel for it; a fused AdamW computes the same only without weight decay."""
    text = outcome("NS015", scene_of(ADAM, end="SoftmaxGrad").store()).first.advice[0].text.en
    assert "have no fused kernel for `torch.optim.Adam`" in text and "weight_decay=0" in text
    assert "torch.optim.Adam(" not in text


def test_fusion_with_the_residual_is_for_inference_only() -> None:
    inference = outcome("NS010", scene_of(RMS).store()).first
    training = outcome("NS010", scene_of(RMS, end="SoftmaxGrad").store()).first
    assert [any("npu_add_rms_norm" in a.text.en for a in one.advice) for one in (inference, training)] == [True, False]
