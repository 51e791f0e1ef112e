"""NS010 to NS018, NS030 to NS038, NS041 to NS044, NS054, NS055: chains of a pattern, and what fusing them saves."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.fusion.chains import (
    ADAM,
    ATTENTION,
    ENTROPY,
    ERF_GELU,
    ERF_GELU_BACK,
    GEGLU,
    GEGLU_BACK,
    GROUP_NORM_SILU,
    GROUP_NORM_SILU_BACK,
    HALF,
    LAYER_NORM,
    LOG_PROBS,
    LOG_PROBS_BACK,
    PERMUTE,
    PERMUTE_BACK,
    QUICK_GELU,
    QUICK_GELU_BACK,
    RMS,
    RMS_BACK,
    ROTARY,
    ROUTER,
    ROUTER_BACK,
    ROW,
    SGD,
    SPREAD,
    SPREAD_BACK,
    SWIGLU,
    SWIGLU_BACK,
    TANH_GELU,
    TANH_GELU_BACK,
    UNPERMUTE,
    UNPERMUTE_BACK,
    Kernel,
    Q,
    X,
    found_in,
    scene_of,
)

LAYER: list[Kernel] = [
    ("Add", 15, (X, X), (X,)),
    ("LayerNormV3", 25, (X, "500 BF16", "500 BF16"), (X, ROW, ROW)),
]


# Pattern -> rule, its kernels, us of the chains, us of the fused kernels.
CHAINS: dict[str, tuple[str, list[list[Kernel]], float, float]] = {
    # x and weight once, y once; backward: three times x, as narrow as it comes.
    "rms_norm": ("NS010", [RMS, RMS_BACK], 80 + 70, 4.001 + 6),
    # x once, y once.
    "layer_norm": ("NS038", [LAYER_NORM], 90, 2 * 2),
    # 4 MB in, 2 MB out; backward: 2 MB and 4 MB in, 4 MB out.
    "swiglu": ("NS011", [SWIGLU, SWIGLU_BACK], 40 + 80, 6 + 10),
    # 2 MB in and out, one table of 0.2 MB seen as cos and as sin.
    "rotary": ("NS012", [ROTARY], 70, 4.2),
    # The products stay.
    "attention": ("NS013", [ATTENTION], 150, 100),
    # Over the vocabulary twice in each pass, in 16 bits.
    "cross_entropy_written_out": ("NS014", [ENTROPY], 135, 4 * 1),
    "optimizer_adam": ("NS015", [ADAM], 70, 7 * 1),
    "optimizer_sgd": ("NS016", [SGD], 70, 5 * 1.001),
    # Twice in, twice out, each 2 MB.
    "add_layer_norm": ("NS017", [LAYER], 40, 4 * 2),
    # 4 MB in, the result and the GELU of 2 MB each out; backward: 2, 4 and 2 MB in, 4 MB out.
    "geglu": ("NS030", [GEGLU, GEGLU_BACK], 40 + 60, 8 + 12),
    "geglu_of_two_products": ("NS031", [[GEGLU[1], GEGLU[3]], GEGLU_BACK[1:3] + GEGLU_BACK[4:5]], 20 + 30, 8 + 12),
    # Once in, once out; backward: twice in, once out.
    "tanh_gelu": ("NS032", [TANH_GELU, TANH_GELU_BACK], 80 + 110, 2 * 2 + 3 * 2),
    "erf_gelu": ("NS054", [ERF_GELU, ERF_GELU_BACK], 50 + 100, 2 * 2 + 3 * 2),
    "quick_gelu": ("NS055", [QUICK_GELU, QUICK_GELU_BACK], 30 + 50, 2 * 2 + 3 * 2),
    # Read and written, in each pass.
    "log_probs": ("NS037", [LOG_PROBS, LOG_PROBS_BACK], 30 + 60, 2 * 2 + 2 * 2),
    # The rows and their weights in, the sums out; backward: rows and their gradient read, one of them written.
    "moe_token_unpermute": ("NS041", [UNPERMUTE, UNPERMUTE_BACK], 30 + 60, 2 + 0.01 + 0.5 + 3 * 2),
    # The logits in, a number for each row out; backward: once in, once out.
    "entropy": ("NS042", [SPREAD, SPREAD_BACK], 55 + 60, 2.004 + 2 * 2),
    # The scores in, the weights out; backward: once in, once out.
    "moe_routing": ("NS043", [ROUTER, ROUTER_BACK], 40 + 110, 2.016 + 2 * 2),
    # The choices of 8 kB and the tokens in, the rows out; backward the same the other way round.
    "moe_token_permute": ("NS044", [PERMUTE, PERMUTE_BACK], 30 + 20, 2 * (0.008 + 0.5 + 2)),
    "group_norm_silu": ("NS033", [GROUP_NORM_SILU, GROUP_NORM_SILU_BACK], 30 + 40, 2 * 2 + 3 * 2),
}

RULES = {rule: name for name, (rule, *_) in CHAINS.items()}


@pytest.mark.parametrize("rule", RULES)
def test_chain_fires_with_what_fusing_saves(rule: str) -> None:
    name = RULES[rule]
    _, chains, chain_us, fused_us = CHAINS[name]
    found = judge_rule(rule, scene_of(*chains).store())
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


def test_a_rotary_embedding_needs_the_copy_of_a_permuted_input() -> None:
    permuted: Kernel = ("Transpose", 9, ("1,1000,10,100 BF16",), (Q,))
    seen = judge_rule("NS012", scene_of([permuted, *ROTARY]).store()).first.observation
    assert seen["kept_ns"] == 9_000 and seen["fused_ns"] == pytest.approx(13_200)
    assert seen["saving_ns"] == pytest.approx(79_000 - 13_200) and seen["saved_launches"] == 6


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("part", "state"), [(1.0001, "pass"), (0.9999, "fail")])
def test_chain_needs_one_percent_of_the_step(rule: str, part: float, state: str) -> None:
    _, chains, chain_us, fused_us = CHAINS[RULES[rule]]
    scene = scene_of(*chains, wall=(chain_us - fused_us) * 100 * part)
    assert judge_rule(rule, scene.store()).state == state


@pytest.mark.parametrize(
    "rule",
    [pytest.param(rule, marks=() if number % 4 == 0 else pytest.mark.search) for number, rule in enumerate(RULES)],
)
def test_chain_may_be_a_tenth_of_the_kernel_time_instead(rule: str) -> None:
    _, chains, chain_us, fused_us = CHAINS[RULES[rule]]
    saving = chain_us - fused_us
    for kernels, state in ((saving * 9.99, "fail"), (saving * 10.01, "pass")):
        # That much kernel time, in a step a thousand times as long as what is saved.
        scene = scene_of(*chains, wall=kernels - 1).tensors(saving * 1000 - 1, 1, "Sign", ("3 FLOAT",), ("3 FLOAT",))
        assert judge_rule(rule, scene.store()).state == state


FUSED = {
    "NS010": "RmsNorm",
    "NS011": "SwiGlu",
    "NS012": "RotaryPositionEmbedding",
    "NS013": "FlashAttentionScore",
    "NS014": "CrossEntropyLoss",
    "NS015": "ApplyAdamWV2",
    "NS016": "ApplyMomentum",
    "NS017": "AddLayerNorm",
    "NS030": "GeGluV2",
    "NS031": "GeGluV2",
    "NS032": "Gelu",
    "NS033": "GroupNormSwish",
    "NS037": "CrossEntropyLoss",
    "NS038": "LayerNormV4",
    "NS041": "MoeTokenUnpermute",
    "NS043": "MoeGatingTopK",
    "NS044": "MoeTokenPermute",
    "NS054": "Gelu",
    "NS055": "FastGelu",
}


@pytest.mark.parametrize("rule", FUSED)
def test_fused_kernel_is_in_order(rule: str) -> None:
    found = judge_rule(rule, scene_of([(FUSED[rule], 300, (X, X), (X,))]).store())
    assert found.state == "pass" and found.observed is not None
    seen = found.observed.frame.set_index("pattern").loc[RULES[rule]]
    assert seen["fused_kernels"] == 1 and seen["chains"] == 0 and seen["chain"] is None


def test_chain_beside_fused_kernels_is_still_to_be_fused() -> None:
    """Norms of the layers are fused; those of query and key, on equally many elements, are not."""
    seen = judge_rule("NS010", scene_of(RMS, [("RmsNorm", 5, (X, "500 BF16"), (X,))] * 3).store()).first.observation
    assert (seen["chains"], seen["fused_kernels"]) == (1, 3) and seen["saving_ns"] == pytest.approx(75_999)


@pytest.mark.parametrize("rule", RULES)
def test_without_shapes_no_chain_is_claimed(rule: str) -> None:
    scene = scene_of(*CHAINS[RULES[rule]][1])
    for row in scene.rows["kernels"]:
        row |= {"input_shapes": "", "output_shapes": ""}
    assert judge_rule(rule, scene.store()).state == "cannot_answer"
    assert found_in(scene) == []


def test_bytes_of_unknown_dtype_are_not_guessed() -> None:
    strange = [(kernel[0], kernel[1], ("1000,2000 INT4",), (HALF,)) for kernel in SWIGLU[:1]]
    chain = [*strange, *SWIGLU[1:]]
    unknown = scene_of(chain)
    assert found_in(unknown) == [("swiglu", False, 4)]
    assert judge_rule("NS011", unknown.store()).state == "cannot_answer"
    # Beside a known chain it counts as time of chains, and saves nothing.
    seen = judge_rule("NS011", scene_of(chain, SWIGLU).store()).first.observation
    assert (seen["chains"], seen["chain_ns"]) == (2, 80_000) and seen["saving_ns"] == pytest.approx(34_000)


def test_an_optional_input_that_is_not_given_moves_nothing() -> None:
    chain = [*RMS[:7], ("Mul", 10, (X, "500 BF16", " UNDEFINED"), (X,))]
    seen = judge_rule("NS010", scene_of(chain).store()).first.observation
    assert seen["fused_ns"] == pytest.approx(4_001)


def test_bandwidth_without_large_kernels_is_that_of_the_best_kernel_of_the_chain() -> None:
    scene = Scene().step(1, -10, 1100)
    for number, (type_, duration, reads, writes) in enumerate([*SWIGLU, ("TopKV2", 960, ("3 FLOAT",), ("3 FLOAT",))]):
        scene.tensors(10 * number, duration, type_, reads, writes)
    seen = judge_rule("NS011", scene.store()).first.observation
    # A slice moves at most the 6 MB of its tensors, the product 6 MB, in 10 us: 0.6 TB/s. 6 MB take 10 us.
    assert seen["bandwidth"] == pytest.approx(0.6e12) and seen["fused_ns"] == pytest.approx(10_000)


def test_a_fused_kernel_takes_no_less_than_a_kernel_that_moves_nothing() -> None:
    scene = scene_of(SWIGLU, [])
    alone = judge_rule("NS011", scene.store()).first.observation["fused_ns"]
    for row in scene.rows["kernels"]:
        row["core"] = "AI_CORE" if row["type"] == "MatMulV3" else "AI_VECTOR_CORE"
    # The kernels on three numbers take 1 us each, but for the one that fills the step.
    assert judge_rule("NS011", scene.store()).first.observation["fused_ns"] == pytest.approx(float(str(alone)) + 1_000)


def test_where_the_host_is_slow_fusing_saves_its_launches() -> None:
    """The host launches a kernel every 30 us; the chain of 40 us becomes one kernel of 6 us and three launches less."""
    found = judge_rule("NS011", scene_of(SWIGLU, wall=300, interval=30).store())
    seen = found.first.observation
    assert seen["kernel_saving_ns"] == 34_000
    assert seen["saving_ns"] == 90_000 and seen["launch_saving_ns"] == 56_000
    assert (found.first.impact_ns, found.first.idle_ns) == (90_000, 56_000)


def test_without_launches_the_kernels_are_all_that_is_told() -> None:
    scene = scene_of(SWIGLU, interval=30)
    del scene.rows["flows"]
    seen = judge_rule("NS011", scene.store()).first.observation
    assert seen["saving_ns"] == seen["kernel_saving_ns"] == pytest.approx(34_000) and seen["launch_saving_ns"] == 0


def test_fusing_never_takes_longer_than_the_chain() -> None:
    quick = [(type_, 0.5, reads, writes) for type_, _, reads, writes in SWIGLU]
    found = judge_rule("NS011", scene_of(quick).store())
    assert found.observed is not None
    seen = found.observed.frame.set_index("pattern").loc["swiglu"]
    assert seen["fused_ns"] == seen["chain_ns"] == 2_000 and seen["saving_ns"] == 0 and found.state == "pass"
