"""Advice about fused kernels."""

from __future__ import annotations

from advisor_core.api.testing import judge_rule
from tests.advisors.fusion.chains import ADAM, ATTENTION, ENTROPY, GEGLU, RMS, SGD, scene_of


def test_attention_advice_begins_with_the_call_stack() -> None:
    """Then the settings of the frameworks, then the call, whose mask can be read the wrong way round."""
    inference = judge_rule("NS013", scene_of(ATTENTION).store()).first
    training = judge_rule("NS013", scene_of(ATTENTION, end="SoftmaxGrad").store()).first
    words = ("call stack", "--use-flash-attn", "attn_implementation", "is_causal")
    for found, order in ((inference, (0, 2, 3)), (training, (0, 1, 2, 3))):
        for advice, word in zip(found.advice, order, strict=True):
            assert words[word] in advice.text.en
        assert [advice.hazards for advice in found.advice[-2:]] == [["accuracy"], ["accuracy", "crash"]]
        assert {"graph-capture", "torchair"} <= set(found.advice[-1].excludes), "the kernel of training is not captured"
    assert [advice.hazards for advice in training.advice[:-2]] == [[], ["accuracy", "crash"]]
    assert "causal attention" in training.advice[1].text.en and "--pre-tockens" in training.advice[1].risk.en
    assert inference.confidence == "medium"


def test_attention_advice_says_what_a_true_mask_means() -> None:
    """A mask of another call, handed over as it is, computes silently wrong results."""
    call = judge_rule("NS013", scene_of(ATTENTION).store()).first.advice[-1]
    assert "torch.nn.functional.scaled_dot_product_attention" in call.text.en
    assert "takes part" in call.risk.en and "参与计算" in call.risk.zh


def test_the_fused_loss_comes_after_what_keeps_ignored_labels() -> None:
    """It does not ignore labels of -100: they are out of its range."""
    training = judge_rule("NS014", scene_of(ENTROPY, end="SoftmaxGrad").store()).first.advice
    fused = next(one for one in training if "npu_cross_entropy_loss" in one.text.en)
    first = training[0]
    assert "cross-entropy" in first.text.en and "npu_" not in first.text.en and not first.hazards
    assert training.index(fused) > 0 and set(fused.hazards) == {"accuracy", "crash"}
    assert "labels != ignore_index" in fused.text.en and "labels != ignore_index" in fused.text.zh
    for said in (fused.risk.en, fused.risk.zh):
        assert "-100" in said and "`ignore_index`" in said and "200,000" in said
    assert "reduction='none'" in fused.risk.en, "added up in FP32, the loss keeps the divisor of the update"
    inference = judge_rule("NS014", scene_of(ENTROPY).store()).first.advice
    assert not any("npu_cross_entropy_loss" in one.text.en for one in inference), "it is for training only"


def test_the_adam_of_torch_is_the_one_that_is_advised() -> None:
    """It ignores the scale of the gradients. Those that join parameters keep the gradients of their first step: where a
    framework replaces these, they go on with old ones without an error."""
    advice = judge_rule("NS015", scene_of(ADAM, end="SoftmaxGrad").store()).first.advice
    first, fused = advice
    assert not first.hazards and "call stack" in first.text.en
    assert "torch.optim.AdamW(params, fused=True)" in fused.text.en and fused.hazards == ["crash", "accuracy"]
    assert "GradScaler" in fused.risk.en and "GradScaler" in fused.risk.zh
    assert "torch.amp.GradScaler" in fused.excludes and "GradScaler" in fused.only_if.en
    assert not any("NpuFused" in one.text.en for one in advice)


def test_fused_sgd_says_what_it_needs() -> None:
    """Its kernel is in new releases only, and stops where there is no momentum."""
    advice = judge_rule("NS016", scene_of(SGD, end="SoftmaxGrad").store()).first.advice
    assert [one.kind for one in advice] == ["investigate", "code"] and advice[1].hazards == ["crash"]
    assert "momentum" in advice[1].text.en and "26.2.0" in advice[1].only_if.en and "zero3" in advice[1].excludes
    assert not any("NpuFused" in one.text.en for one in advice), "it passes over the parameters as often"


def test_fused_adam_is_not_promised_for_adam_with_weight_decay() -> None:
    """A fused AdamW computes the same only without weight decay."""
    text = judge_rule("NS015", scene_of(ADAM, end="SoftmaxGrad").store()).first.advice[1].text.en
    assert "`torch.optim.Adam` without weight decay" in text and "weight_decay=0" in text
    assert "torch.optim.Adam(" not in text


def test_fusion_with_the_residual_is_for_inference_only() -> None:
    inference = judge_rule("NS010", scene_of(RMS).store()).first
    training = judge_rule("NS010", scene_of(RMS, end="SoftmaxGrad").store()).first
    assert [any("npu_add_rms_norm" in a.text.en for a in one.advice) for one in (inference, training)] == [True, False]


def test_geglu_says_which_half_and_which_gelu() -> None:
    """The defaults of the call take GELU with tanh of the second half: with another gate it is wrong in silence."""
    for rule, chain in (("NS030", GEGLU), ("NS031", [GEGLU[1], GEGLU[3]])):
        first, call = judge_rule(rule, scene_of(chain).store()).first.advice
        assert first.kind == "investigate" and not first.hazards and call.hazards == ["accuracy"]
        for text in (call.text.en, call.text.zh):
            assert "activate_left=True" in text and "approximate=0" in text
        assert "without an error: compare the outputs" in call.risk.en
