"""Unfused chains: what is found, what fusing them would save, and what is none."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.facts.device.shapes import elements
from advisors.fusion.chains import Chains, fusion_chains
from advisors.fusion.patterns import Step, matches, patterns
from advisors.fusion.tensors import Tensors, connected, tensors_of, traffic
from tests.advisors.build import Scene, outcome

Kernel = tuple[str, float, Sequence[str], Sequence[str]]

# A kernel that reads and writes 50 MB in 100 us: large kernels of these scenes reach 1 TB/s, so that a fused kernel
# takes 1 us for every MB it moves. No chain has a kernel of more than 20 us that only streams.
YARDSTICK: Kernel = ("TensorMove", 100, ("5000,5000 BF16",), ("5000,5000 BF16",))

X, XW, ROW = "2000,500 BF16", "2000,500 FLOAT", "2000,1 FLOAT"  # 2 MB, 4 MB, 8 kB
RMS: list[Kernel] = [
    ("Cast", 10, (X,), (XW,)),
    ("Pows", 10, (XW,), (XW,)),
    ("ReduceMean", 10, (XW,), (ROW,)),
    ("Add", 10, (ROW,), (ROW,)),
    ("Rsqrt", 10, (ROW,), (ROW,)),
    ("Mul", 10, (XW, ROW), (XW,)),
    ("Cast", 10, (XW,), (X,)),
    ("Mul", 10, (X, "500 BF16"), (X,)),
]
RMS_BACK: list[Kernel] = [
    ("Mul", 5, (X, X), (X,)),
    ("ReduceSum", 5, (X,), ("500 BF16",)),
    ("Mul", 5, (X, "500 BF16"), (X,)),
    ("Cast", 5, (X,), (XW,)),
    ("Mul", 5, (XW, ROW), (XW,)),
    ("Mul", 5, (XW, XW), (XW,)),
    ("ReduceSum", 5, (XW,), (ROW,)),
    ("Pows", 5, (ROW,), (ROW,)),
    ("Mul", 5, (ROW, ROW), (ROW,)),
    ("RealDiv", 5, (ROW,), (ROW,)),
    ("Mul", 5, (XW,), (XW,)),
    ("Mul", 5, (XW, ROW), (XW,)),
    ("Add", 5, (XW, XW), (XW,)),
    ("Cast", 5, (XW,), (X,)),
]
GU, HALF = "1000,2000 BF16", "1000,1000 BF16"  # 4 MB, 2 MB
SWIGLU: list[Kernel] = [
    ("Slice", 10, (GU,), (HALF,)),
    ("Swish", 10, (HALF,), (HALF,)),
    ("Slice", 10, (GU,), (HALF,)),
    ("Mul", 10, (HALF, HALF), (HALF,)),
]
SWIGLU_BACK: list[Kernel] = [
    ("Mul", 10, (HALF, HALF), (HALF,)),
    ("Mul", 10, (HALF, HALF), (HALF,)),
    ("SiluGrad", 10, (HALF, HALF), (HALF,)),
    ("ZerosLike", 10, (GU,), (GU,)),
    ("TensorMove", 10, (HALF, GU), (GU,)),
    ("ZerosLike", 10, (GU,), (GU,)),
    ("TensorMove", 10, (HALF, GU), (GU,)),
    ("Add", 10, (GU, GU), (GU,)),
]
Q, TABLE, QH = "1,10,1000,100 BF16", "1,1,1000,100 BF16", "1,10,1000,50 BF16"  # 2 MB, 0.2 MB, 1 MB
ROTARY: list[Kernel] = [
    ("Mul", 10, (Q, TABLE), (Q,)),
    ("Slice", 10, (Q,), (QH,)),
    ("Neg", 10, (QH,), (QH,)),
    ("Slice", 10, (Q,), (QH,)),
    ("ConcatD", 10, (QH, QH), (Q,)),
    ("Mul", 10, (Q, TABLE), (Q,)),
    ("Add", 10, (Q, Q), (Q,)),
]
SCORES, HEADS = "1,8,500,500 BF16", "1,8,500,64 BF16"
ATTENTION: list[Kernel] = [
    ("BatchMatMul", 60, (HEADS, HEADS), (SCORES,)),
    ("Muls", 15, (SCORES,), (SCORES,)),
    ("Add", 15, (SCORES, "1,1,500,500 BF16"), (SCORES,)),
    ("SoftmaxV2", 20, (SCORES,), (SCORES,)),
    ("BatchMatMulV2", 40, (SCORES, HEADS), (HEADS,)),
]
LOGITS, LOGITSW, LOSS = "1000,500 BF16", "1000,500 FLOAT", "1000,1 FLOAT"  # 1 MB, 2 MB
ENTROPY: list[Kernel] = [
    ("Cast", 15, (LOGITS,), (LOGITSW,)),
    ("ArgMaxWithValue", 15, (LOGITSW,), (LOSS,)),
    ("Sub", 15, (LOGITSW, LOSS), (LOGITSW,)),
    ("Exp", 15, (LOGITSW,), (LOGITSW,)),
    ("ReduceSum", 15, (LOGITSW,), (LOSS,)),
    ("RealDiv", 15, (LOGITSW, LOSS), (LOGITSW,)),
    ("Mul", 15, (LOGITSW,), (LOGITSW,)),
    ("Cast", 15, (LOGITSW,), (LOGITS,)),
]
P = "500,500 FLOAT"  # 1 MB
ADAM: list[Kernel] = [
    ("Lerp", 10, (P, P), (P,)),
    ("Mul", 10, (P,), (P,)),
    ("Addcmul", 10, (P, P, P), (P,)),
    ("Sqrt", 10, (P,), (P,)),
    ("RealDiv", 10, (P,), (P,)),
    ("Add", 10, (P,), (P,)),
    ("Addcdiv", 10, (P, P, P), (P,)),
]
LIST = ("500,500 FLOAT", "250 FLOAT")
SGD: list[Kernel] = [
    ("ForeachAddList", 20, (*LIST, *LIST), LIST),
    ("ForeachMulScalar", 10, LIST, LIST),
    ("ForeachAddList", 20, (*LIST, *LIST), LIST),
    ("ForeachAddList", 20, (*LIST, *LIST), LIST),
]
LAYER: list[Kernel] = [
    ("Add", 15, (X, X), (X,)),
    ("LayerNormV3", 25, (X, "500 BF16", "500 BF16"), (X, ROW, ROW)),
]

# Pattern -> rule, its kernels, us of the chains, us of the fused kernels.
CHAINS: dict[str, tuple[str, list[list[Kernel]], float, float]] = {
    # x and weight once, y once; backward: three times x, as narrow as it comes.
    "rms_norm": ("NS010", [RMS, RMS_BACK], 80 + 70, 4.001 + 6),
    # 4 MB in, 2 MB out; backward: 2 MB and 4 MB in, 4 MB out.
    "swiglu": ("NS011", [SWIGLU, SWIGLU_BACK], 40 + 80, 6 + 10),
    # 2 MB in and out, one table of 0.2 MB seen as cos and as sin.
    "rotary": ("NS012", [ROTARY], 70, 4.2),
    # The products stay.
    "attention": ("NS013", [ATTENTION], 150, 100),
    # The logits twice, their gradient once, in 16 bits.
    "cross_entropy": ("NS014", [ENTROPY], 120, 3 * 1),
    "optimizer_adam": ("NS015", [ADAM], 70, 7 * 1),
    "optimizer_sgd": ("NS016", [SGD], 70, 5 * 1.001),
    # Twice in, twice out, each 2 MB.
    "add_layer_norm": ("NS017", [LAYER], 40, 4 * 2),
}
RULES = {rule: name for name, (rule, *_) in CHAINS.items()}


SMALL = (("3 FLOAT",), ("3 FLOAT",))


def scene_of(*chains: Sequence[Kernel], wall: float = 1000, end: str = "TopKV2", interval: float = 0.01) -> Scene:
    """The yardstick, the chains with an unrelated kernel after each, and a kernel that fills the step. The host
    launches one every ``interval`` us: long before the device gets to it."""
    scene = Scene().step(1, -10, wall + 20)
    kernels = [kernel for chain in ([YARDSTICK], *chains) for kernel in (*chain, ("Sign", 1, *SMALL))]
    at = 0.0
    for number, (type_, duration, reads, writes) in enumerate([*kernels, (end, 0, *SMALL)]):
        length = duration or wall - at
        scene.tensors(at, length, type_, reads, writes, launched=number * interval - 9)
        at += length
    return scene


def found_in(scene: Scene) -> list[tuple[str, bool, int]]:
    chains: Chains = scene.store()[fusion_chains]
    frame = chains.frame
    return list(zip(frame["pattern"], frame["backward"], frame["kernels"], strict=True))


# --- each pattern


@pytest.mark.parametrize("rule", RULES)
def test_chain_fires_with_what_fusing_saves(rule: str) -> None:
    name = RULES[rule]
    _, chains, chain_us, fused_us = CHAINS[name]
    found = outcome(rule, scene_of(*chains).store())
    seen = found.first.observation
    assert seen["pattern"] == name and seen["chains"] == 1
    assert seen["kernels"] == sum(map(len, chains)) and seen["saved_launches"] == seen["kernels"] - len(chains)
    assert seen["chain_ns"] == chain_us * 1000
    assert seen["backward_ns"] == sum(1000 * kernel[1] for chain in chains[1:] for kernel in chain)
    assert seen["fused_ns"] == pytest.approx(fused_us * 1000)
    assert seen["saving_ns"] == pytest.approx((chain_us - fused_us) * 1000)
    assert found.first.impact_ns == round((chain_us - fused_us) * 1000)
    assert seen["bandwidth"] == pytest.approx(1e12) and seen["fused_kernels"] == 0
    assert seen["kept_ns"] == (100_000 if name == "attention" else 0)
    assert seen["chain"] == " + ".join(kernel[0] for kernel in chains[0])
    # Of 1000 us and of 1000 us of kernels: everything runs back to back.
    assert seen["share_of_step"] == pytest.approx((chain_us - fused_us) / 1000)
    severity = "high" if chain_us - fused_us >= 50 else "medium" if chain_us - fused_us >= 30 else "low"
    assert found.first.severity == severity
    # The example is one forward chain, in order; then all kernels of the chains.
    first, _, everything = found.evidence()[:3]
    assert first.rows.tolist() == list(range(2, 2 + len(chains[0])))
    assert len(everything.rows) == seen["kernels"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("part", "state"), [(1.0001, "pass"), (0.9999, "fail")])
def test_chain_needs_one_percent_of_the_step(rule: str, part: float, state: str) -> None:
    _, chains, chain_us, fused_us = CHAINS[RULES[rule]]
    scene = scene_of(*chains, wall=(chain_us - fused_us) * 100 * part)
    assert outcome(rule, scene.store()).state == state


@pytest.mark.parametrize("rule", RULES)
def test_chain_may_be_a_tenth_of_the_kernel_time_instead(rule: str) -> None:
    _, chains, chain_us, fused_us = CHAINS[RULES[rule]]
    saving = chain_us - fused_us
    for kernels, state in ((saving * 9.99, "fail"), (saving * 10.01, "pass")):
        # That much kernel time, in a step a thousand times as long as what is saved.
        scene = scene_of(*chains, wall=kernels - 1).tensors(saving * 1000 - 1, 1, "Sign", ("3 FLOAT",), ("3 FLOAT",))
        assert outcome(rule, scene.store()).state == state


FUSED = {
    "NS010": "RmsNorm",
    "NS011": "SwiGlu",
    "NS012": "RotaryPositionEmbedding",
    "NS013": "FlashAttentionScore",
    "NS014": "CrossEntropyLoss",
    "NS015": "ApplyAdamWV2",
    "NS016": "ApplyMomentum",
    "NS017": "AddLayerNorm",
}


@pytest.mark.parametrize("rule", RULES)
def test_fused_kernel_is_in_order(rule: str) -> None:
    found = outcome(rule, scene_of([(FUSED[rule], 300, (X, X), (X,))]).store())
    assert found.state == "pass" and found.observed is not None
    seen = found.observed.frame.set_index("pattern").loc[RULES[rule]]
    assert seen["fused_kernels"] == 1 and seen["chains"] == 0 and seen["chain"] is None


def test_chain_beside_fused_kernels_is_still_to_be_fused() -> None:
    """Norms of the layers are fused; those of query and key, on equally many elements, are not."""
    seen = outcome("NS010", scene_of(RMS, [("RmsNorm", 5, (X, "500 BF16"), (X,))] * 3).store()).first.observation
    assert (seen["chains"], seen["fused_kernels"]) == (1, 3) and seen["saving_ns"] == pytest.approx(75_999)


@pytest.mark.parametrize("rule", RULES)
def test_without_shapes_no_chain_is_claimed(rule: str) -> None:
    scene = scene_of(*CHAINS[RULES[rule]][1])
    for row in scene.rows["kernels"]:
        row |= {"input_shapes": "", "output_shapes": ""}
    assert outcome(rule, scene.store()).state == "cannot_answer"
    assert found_in(scene) == []


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


# --- variants of chains


@pytest.mark.parametrize(
    ("pattern", "chain"),
    [
        ("rms_norm", RMS[1:]),
        ("rms_norm", [*RMS[:6], RMS[7]]),
        ("swiglu", [SWIGLU[0], SWIGLU[2], SWIGLU[1], SWIGLU[3]]),
        ("swiglu", [SWIGLU[0], ("Sigmoid", 5, (HALF,), (HALF,)), SWIGLU[3], SWIGLU[2], SWIGLU[3]]),
        ("rotary", [("Transpose", 9, ("1,1000,10,100 BF16",), (Q,)), *ROTARY]),
        ("rotary", [ROTARY[1], ROTARY[2], ROTARY[3], ROTARY[4], ROTARY[5], ROTARY[0], ROTARY[6]]),
        ("cross_entropy", [("LogSoftmaxV2", 50, (LOGITSW,), (LOGITSW,)), ("NLLLoss", 50, (LOGITSW,), ("1 FLOAT",))]),
        ("optimizer_adam", [*ADAM, ("Cast", 5, (P,), ("500,500 BF16",))]),
        (
            "optimizer_adam",
            [
                (name, 10, LIST, LIST)
                for name in (
                    "ForeachMulScalar",
                    "ForeachLerpScalar",
                    "ForeachMulScalar",
                    "ForeachAddcmulScalar",
                    "ForeachSqrt",
                    "ForeachDivScalarList",
                    "ForeachAddScalar",
                    "ForeachAddcdivScalarList",
                )
            ],
        ),
    ],
)
def test_variants(pattern: str, chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == [(pattern, False, len(chain))]


def test_the_gradient_of_an_earlier_micro_batch_is_added_within_the_backward_chain() -> None:
    """It is no part of the chain: it runs with the fused kernel as well."""
    adds = ("Add", 7.0, ("500 BF16", "500 BF16"), ("500 BF16",))
    added = [*RMS_BACK[:3], adds, *RMS_BACK[3:]]
    scene = scene_of(RMS, added)
    assert found_in(scene) == [("rms_norm", False, 8), ("rms_norm", True, 14)]
    seen = outcome("NS010", scene.store()).first.observation
    assert seen["backward_ns"] == 70_000 and seen["kernels"] == 22


def test_layers_repeat_and_kernels_that_prepare_outputs_do_not_break_a_chain() -> None:
    prepared = [part for kernel in SWIGLU for part in (("MemSet", 1.0, ("7 INT8",), ()), kernel)]
    assert found_in(scene_of(SWIGLU, prepared, SWIGLU)) == [("swiglu", False, 4)] * 3


@pytest.mark.parametrize(
    "chain",
    [
        [*SWIGLU[:3], ("Mul", 10, ("77,77 BF16", "77,77 BF16"), ("77,77 BF16",))],
        [SWIGLU[0], ("Swish", 10, ("9,9 BF16",), ("9,9 BF16",)), *SWIGLU[2:]],
        [*SWIGLU[:2], ("Relu", 1, (HALF,), (HALF,)), *SWIGLU[2:]],
        [SWIGLU[1], SWIGLU[3]],
    ],
    ids=["ends elsewhere", "another tensor inside", "another operator inside", "two projections"],
)
def test_names_alone_never_match(chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == []


def test_backward_alone_claims_nothing() -> None:
    """SwiGLU of two projections runs the same backward; npu_swiglu cannot take it as it is."""
    scene = scene_of([SWIGLU[1], SWIGLU[3]], SWIGLU_BACK[:3])
    assert found_in(scene) == [("swiglu", True, 3)]
    assert outcome("NS011", scene.store()).state == "pass"


def test_chain_ends_at_a_collective_another_stream_and_the_border_of_a_step() -> None:
    def split(at: float, **more: object) -> Scene:
        scene = Scene().step(1, -10, 1000)
        for number, (type_, duration, reads, writes) in enumerate(SWIGLU):
            start = 10.0 * number + (at if number > 1 else 0)
            scene.tensors(start, duration, type_, reads, writes, **(more if number > 1 else {}))  # type: ignore[arg-type]
        return scene.tensors(900, 50, "TopKV2", ("3 FLOAT",), ("3 FLOAT",), **more)  # type: ignore[arg-type]

    assert found_in(split(30)) == [("swiglu", False, 4)]
    assert found_in(split(30).collective(22, 15)) == []
    assert found_in(split(30).collective(22, 35)) == [("swiglu", False, 4)], "it runs beside the chain"
    assert found_in(split(30, stream=3)) == []
    assert found_in(split(30, step=2)) == []


# --- what cannot be known


def test_bytes_of_unknown_dtype_are_not_guessed() -> None:
    strange = [(kernel[0], kernel[1], ("1000,2000 INT4",), ("1000,1000 INT4",)) for kernel in SWIGLU[:1]]
    chain = [*strange, *SWIGLU[1:]]
    unknown = scene_of(chain)
    assert found_in(unknown) == [("swiglu", False, 4)]
    assert outcome("NS011", unknown.store()).state == "cannot_answer"
    # Beside a known chain it counts as time of chains, and saves nothing.
    seen = outcome("NS011", scene_of(chain, SWIGLU).store()).first.observation
    assert (seen["chains"], seen["chain_ns"]) == (2, 80_000) and seen["saving_ns"] == pytest.approx(34_000)


def test_an_optional_input_that_is_not_given_moves_nothing() -> None:
    chain = [*RMS[:7], ("Mul", 10, (X, "500 BF16", " UNDEFINED"), (X,))]
    seen = outcome("NS010", scene_of(chain).store()).first.observation
    assert seen["fused_ns"] == pytest.approx(4_001)


def test_bandwidth_without_large_kernels_is_that_of_the_best_kernel_of_the_chain() -> None:
    scene = Scene().step(1, -10, 1100)
    for number, (type_, duration, reads, writes) in enumerate([*SWIGLU, ("TopKV2", 960, ("3 FLOAT",), ("3 FLOAT",))]):
        scene.tensors(10 * number, duration, type_, reads, writes)
    seen = outcome("NS011", scene.store()).first.observation
    # A slice moves at most the 6 MB of its tensors, the product 6 MB, in 10 us: 0.6 TB/s. 6 MB take 10 us.
    assert seen["bandwidth"] == pytest.approx(0.6e12) and seen["fused_ns"] == pytest.approx(10_000)


def test_a_fused_kernel_takes_no_less_than_a_kernel_that_moves_nothing() -> None:
    scene = scene_of(SWIGLU)
    alone = outcome("NS011", scene.store()).first.observation["fused_ns"]
    for row in scene.rows["kernels"]:
        row["core"] = "AI_VECTOR_CORE"
    # The kernels on three numbers take 1 us each, but for the one that fills the step.
    assert outcome("NS011", scene.store()).first.observation["fused_ns"] == pytest.approx(float(str(alone)) + 1_000)


def test_where_the_host_is_slow_fusing_saves_its_launches() -> None:
    """The host launches a kernel every 30 us; the chain of 40 us becomes one kernel of 6 us and three launches less."""
    found = outcome("NS011", scene_of(SWIGLU, wall=300, interval=30).store())
    seen = found.first.observation
    assert seen["kernel_saving_ns"] == 34_000
    assert seen["saving_ns"] == 90_000 and seen["launch_saving_ns"] == 56_000
    assert (found.first.impact_ns, found.first.idle_ns) == (90_000, 56_000)


def test_without_launches_the_kernels_are_all_that_is_told() -> None:
    scene = scene_of(SWIGLU, interval=30)
    del scene.rows["flows"]
    seen = outcome("NS011", scene.store()).first.observation
    assert seen["saving_ns"] == seen["kernel_saving_ns"] == pytest.approx(34_000) and seen["launch_saving_ns"] == 0


def test_fusing_never_takes_longer_than_the_chain() -> None:
    quick = [(type_, 0.5, reads, writes) for type_, _, reads, writes in SWIGLU]
    found = outcome("NS011", scene_of(quick).store())
    assert found.observed is not None
    seen = found.observed.frame.set_index("pattern").loc["swiglu"]
    assert seen["fused_ns"] == seen["chain_ns"] == 2_000 and seen["saving_ns"] == 0 and found.state == "pass"


# --- the search and the bytes, against plain references


def naive(steps: Sequence[Step], types: Sequence[str], at: int) -> int | None:
    """Where a chain that begins at ``at`` ends, taking what may be missing if it is there."""
    if not steps:
        return at
    step, rest = steps[0], steps[1:]
    if at < len(types) and matches(types[at], step.globs):
        end = naive(rest, types, at + 1)
        if end is not None:
            return end
    return naive(rest, types, at) if step.optional else None


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["Slice", "Swish", "Sigmoid", "Mul", "Tanh"]), max_size=24))
def test_search_agrees_with_trying_every_place(types: list[str]) -> None:
    chains = next(p for p in patterns() if p.name == "swiglu" and not p.backward).chains
    expected, at = [], 0
    while at < len(types):
        ends = [end for chain in chains if (end := naive(chain, types, at)) is not None]
        if ends:
            expected.append((at, ends[0]))
        at = ends[0] if ends else at + 1
    scene = Scene().step(1, -10, 2000)
    for number, type_ in enumerate(types):
        scene.tensors(number * 10, 10, type_, (HALF,), (HALF,))
    scene.tensors(len(types) * 10, 10, "Tanh", (HALF,), (HALF,))
    chains_found: Chains = scene.store()[fusion_chains]
    runs = [
        (members[0], members[-1] + 1)
        for n in range(len(chains_found.frame))
        if (members := chains_found.members[chains_found.chain_of == n].tolist())
    ]
    assert sorted(runs) == expected


def test_bytes_of_a_fused_kernel_agree_with_following_each_tensor() -> None:
    """A fused kernel reads every tensor that comes from outside once, and writes the last one."""
    chance = random.Random(3)
    for _ in range(200):
        # Every tensor has its own number of elements, so that its identity can be seen from the shape.
        sizes = iter(chance.sample(range(2, 500), 40))
        outside = [next(sizes) for _ in range(4)]
        written: list[int] = []
        read: set[int] = set()
        chain = []
        for _ in range(chance.randint(1, 6)):
            inputs = chance.sample(outside + written, chance.randint(1, 2))
            out = next(sizes)
            read |= set(inputs)
            chain.append(Tensors(tuple(((n,), 2 * n) for n in inputs), (((out,), 2 * out),)))
            written.append(out)
        assert traffic(chain, 0, wide=False) == sum(2 * n for n in read - set(written)) + 2 * written[-1]
        assert traffic(chain, 3, wide=True) == traffic(chain, 3, wide=False) == 3 * 2 * max(written)


def test_a_kernel_is_connected_by_what_was_written_or_read() -> None:
    def kernel(reads: str, writes: str) -> Tensors:
        dtypes = [";".join(["FLOAT"] * (side.count(";") + 1)) for side in (reads, writes)]
        names = ("type", "input_shapes", "input_dtypes", "output_shapes", "output_dtypes")
        return tensors_of(dict(zip(names, ("Mul", reads, dtypes[0], writes, dtypes[1]), strict=True)))

    first = kernel("8,4;3", "32")
    assert connected([first], kernel("4,8", "1")), "as many elements as were written"
    assert connected([first], kernel("3", "3")), "the same shape was read"
    assert not connected([first], kernel("3,1", "3")), "what was read may be another tensor of that size"
    assert not connected([kernel("1", "1")], kernel("1", "1")), "scalars say nothing"
    assert elements(first.outputs[0][0]) == 32 and first.inputs[0][1] == 128
