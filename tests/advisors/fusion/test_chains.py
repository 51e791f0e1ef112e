"""Variants of chains: where they begin and end."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.fusion.chains import (
    ADAM,
    BIAS_ADD,
    ERF_GELU,
    GEGLU,
    GROUP_NORM_SILU,
    HALF,
    LAYER_NORM,
    LIST,
    LOGITSW,
    PUT_BACK,
    QUICK_GELU,
    RMS,
    RMS_BACK,
    ROTARY,
    ROW,
    SGD_OF_A_WEIGHT,
    SWIGLU,
    SWIGLU_BACK,
    TANH_GELU,
    TOP_K_TOP_P,
    UNPERMUTE,
    VOCABULARY,
    XW,
    Kernel,
    P,
    Q,
    X,
    found_in,
    scene_of,
)

R = "2000,1 BF16"


@pytest.mark.parametrize(
    ("pattern", "chain"),
    [
        ("rms_norm", RMS[1:]),
        ("rms_norm", [*RMS[:6], ("Mul", 10, (XW, "500 FLOAT"), (XW,))]),
        ("rms_norm", [*RMS[:4], ("Sqrt", 10, (ROW,), (ROW,)), ("RealDiv", 10, (XW, ROW), (XW,)), *RMS[6:]]),
        # x - mean once for both uses, and again for each; 1 / sqrt; the variance and its root in a kernel of their own
        ("layer_norm", [*LAYER_NORM[:4], LAYER_NORM[1], *LAYER_NORM[4:]]),
        ("layer_norm", [*LAYER_NORM[:5], ("Rsqrt", 10, (R,), (R,)), ("Mul", 10, (X, R), (X,)), *LAYER_NORM[7:]]),
        ("layer_norm", [LAYER_NORM[0], ("ReduceVar", 9, (X,), (R,)), LAYER_NORM[1], *LAYER_NORM[4:]]),
        ("layer_norm", [*LAYER_NORM[:2], ("ReduceStdWithMean", 9, (X,), (R,)), LAYER_NORM[4], *LAYER_NORM[6:7]]),
        ("swiglu", [SWIGLU[0], SWIGLU[2], SWIGLU[1], SWIGLU[3]]),
        ("swiglu", [SWIGLU[0], ("Sigmoid", 5, (HALF,), (HALF,)), SWIGLU[3], SWIGLU[2], SWIGLU[3]]),
        ("rotary", [("Transpose", 9, ("1,1000,10,100 BF16",), (Q,)), *ROTARY]),
        ("rotary", [ROTARY[1], ROTARY[2], ROTARY[3], ROTARY[4], ROTARY[5], ROTARY[0], ROTARY[6]]),
        ("cross_entropy", [("LogSoftmaxV2", 50, (LOGITSW,), (LOGITSW,)), ("NLLLoss", 50, (LOGITSW,), ("1 FLOAT",))]),
        ("optimizer_adam", [*ADAM, ("Cast", 5, (P,), ("500,500 BF16",))]),
        (
            "optimizer_adam",
            [
                (name, 10, LIST * lists, LIST)
                for name, lists in (
                    ("ForeachMulScalar", 1),
                    ("ForeachLerpScalar", 2),
                    ("ForeachMulScalar", 1),
                    ("ForeachAddcmulScalar", 3),
                    ("ForeachSqrt", 1),
                    ("ForeachDivScalarList", 1),
                    ("ForeachAddScalar", 1),
                    ("ForeachAddcdivScalarList", 3),
                )
            ],
        ),
    ],
)
def test_variants(pattern: str, chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == [(pattern, False, len(chain))]


def test_backward_chains_without_a_forward_one_name_nothing() -> None:
    """What autograd runs for a written-out LayerNorm contains what it runs for an RMSNorm."""
    assert found_in(scene_of(LAYER_NORM, RMS_BACK)) == [("layer_norm", False, len(LAYER_NORM))]
    assert found_in(scene_of(RMS, RMS_BACK)) == [("rms_norm", False, 8), ("rms_norm", True, 14)]
    assert found_in(scene_of(SWIGLU_BACK)) == []


def test_a_softmax_is_no_loss() -> None:
    """A written-out softmax, of a router or of attention, takes no logarithm of its sum."""
    softmax = [
        ("ReduceMax", 10, (XW,), (ROW,)),
        ("Sub", 10, (XW, ROW), (XW,)),
        ("Exp", 10, (XW,), (XW,)),
        ("ReduceSum", 10, (XW,), (ROW,)),
        ("RealDiv", 10, (XW, ROW), (XW,)),
    ]
    assert found_in(scene_of(softmax)) == []


def test_the_gradient_of_an_earlier_micro_batch_is_added_within_the_backward_chain() -> None:
    """It is no part of the chain: it runs with the fused kernel as well."""
    adds = ("Add", 7.0, ("500 BF16", "500 BF16"), ("500 BF16",))
    added = [*RMS_BACK[:3], adds, *RMS_BACK[3:]]
    scene = scene_of(RMS, added)
    assert found_in(scene) == [("rms_norm", False, 8), ("rms_norm", True, 14)]
    seen = judge_rule("NS010", scene.store()).first.observation
    assert seen["backward_ns"] == 70_000 and seen["kernels"] == 22


def test_layers_repeat_and_kernels_that_prepare_outputs_do_not_break_a_chain() -> None:
    prepared = [part for kernel in SWIGLU for part in (("MemSet", 1.0, ("7 INT8",), ()), kernel)]
    assert found_in(scene_of(SWIGLU, prepared, SWIGLU)) == [("swiglu", False, 4)] * 3


@pytest.mark.parametrize(
    "chain",
    [
        [*SWIGLU[:3], ("Mul", 10, ("77,77 BF16", "77,77 BF16"), ("77,77 BF16",))],
        [SWIGLU[0], ("Swish", 10, ("9,9 BF16",), ("9,9 BF16",)), *SWIGLU[2:]],
    ],
    ids=["ends elsewhere", "another tensor inside"],
)
def test_names_alone_never_match(chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == []


def test_swiglu_of_two_products_is_another_computation() -> None:
    """npu_swiglu cannot take it as it is: the weights of the two products have to be joined first."""
    scene = scene_of([SWIGLU[1], SWIGLU[3]], SWIGLU_BACK[:3])
    assert found_in(scene) == [("swiglu_of_two_products", False, 2), ("swiglu_of_two_products", True, 3)]
    assert judge_rule("NS011", scene.store()).state == "pass"


def test_a_geglu_needs_a_product_of_two_tensors() -> None:
    """A scale behind a GELU, such as that of dropout, is no gate."""
    assert found_in(scene_of([GEGLU[1], ("Mul", 10, (HALF,), (HALF,))])) == []
    assert found_in(scene_of([GEGLU[1], GEGLU[3]])) == [("geglu_of_two_products", False, 2)]


def test_of_a_filter_of_logits_the_sort_stays() -> None:
    scene = scene_of(TOP_K_TOP_P)
    assert found_in(scene) == [("top_k_top_p", False, 10)]
    seen = judge_rule("NS040", scene.store()).first.observation
    assert (seen["chain_ns"], seen["kept_ns"], seen["saving_ns"]) == (140_000, 50_000, 90_000)
    # In the other order the sorted logits are masked, and then put back; a softmax of sorted logits alone is no filter.
    assert found_in(scene_of([*TOP_K_TOP_P[4:8], TOP_K_TOP_P[9], ("ScatterElementsV2", 10, *PUT_BACK)])) == [
        ("top_k_top_p", False, 6)
    ]
    assert found_in(scene_of(TOP_K_TOP_P[4:7])) == []


def test_rows_that_no_product_wrote_are_no_results_of_experts() -> None:
    rows = ("Abs", 10, (HALF,), (HALF,))
    assert found_in(scene_of([rows, *UNPERMUTE])) == []


@pytest.mark.parametrize("missing", range(1, len(TANH_GELU)))
def test_a_tanh_gelu_needs_every_step(missing: int) -> None:
    assert found_in(scene_of([*TANH_GELU[:missing], *TANH_GELU[missing + 1 :]])) == []


@pytest.mark.parametrize(
    ("name", "chain"), [("erf_gelu", ERF_GELU[1:]), ("quick_gelu", QUICK_GELU)], ids=["erf", "quick"]
)
def test_other_gelus_need_every_step(name: str, chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == [(name, False, len(chain))]
    for missing in range(len(chain)):
        assert found_in(scene_of([*chain[:missing], *chain[missing + 1 :]])) == []


def test_a_gate_of_a_sigmoid_is_no_quick_gelu() -> None:
    """The sigmoid of a product of two tensors, or of one that nobody multiplied by a number, is a gate."""
    product = ("Mul", 10, (X, X), (X,))
    assert found_in(scene_of([product, *QUICK_GELU[1:]])) == []
    assert found_in(scene_of([("MatMulV3", 100, (X, X), (X,)), *QUICK_GELU[1:]])) == []
    row = [*QUICK_GELU[:2], ("Mul", 10, (X, "1000,1 BF16"), (X,))]
    assert found_in(scene_of(row)) == []


def test_an_erf_gelu_may_add_a_tensor_of_ones_and_halve_at_the_end() -> None:
    ones = [*ERF_GELU[:3], ("OnesLike", 10, (X,), (X,)), ("Add", 10, (X, X), (X,)), ERF_GELU[4]]
    assert found_in(scene_of(ones)) == [("erf_gelu", False, 6)]
    halved = [*ERF_GELU[1:4], ERF_GELU[0], ERF_GELU[4]]
    assert found_in(scene_of(halved)) == [("erf_gelu", False, 5)]


def test_a_quick_gelu_scales_what_its_sigmoid_reads() -> None:
    """Another kernel wrote that later."""
    between: Kernel = ("Exp", 10, (X,), (X,))
    assert found_in(scene_of([QUICK_GELU[0], between, *QUICK_GELU[1:]])) == []


def test_what_is_cut_into_heads_behind_a_silu_is_no_gate() -> None:
    """As linear attention does, which squares its queries for their length."""
    heads = "2000,10,25 BF16"
    cut: list[Kernel] = [("AsStrided", 10, (HALF,), (heads,)), ("Mul", 10, (heads, heads), (heads,))]
    assert found_in(scene_of([*SWIGLU[:3], *cut])) == []


def test_a_norm_takes_no_weight_of_another_one() -> None:
    """Queries are normalised by head, without a weight; what follows is a row of all heads."""
    heads, root = "2000,10,50 FLOAT", "2000,10,1 FLOAT"
    norm: list[Kernel] = [
        *((name, 10, (heads,), (heads,)) for name in ("Cast", "Pows")),
        ("ReduceMean", 10, (heads,), (root,)),
        ("Rsqrt", 10, (root,), (root,)),
        ("Mul", 10, (heads, root), (heads,)),
    ]
    assert [found[0] for found in found_in(scene_of([*norm[1:], ("Mul", 10, (XW, "500 FLOAT"), (XW,))]))] == [
        "rms_norm"
    ]
    assert found_in(scene_of([*norm[1:], ("Mul", 10, (XW, "500 FLOAT"), (XW,))]))[0][2] == len(norm) - 1


def test_halves_are_half_as_large_as_what_is_put_together_of_them() -> None:
    whole, half, row = "20,4,100,64 FLOAT", "20,4,100,32 FLOAT", "100,32 FLOAT"
    forward: list[Kernel] = [
        *[("Slice", 9, (whole,), (half,)), ("Mul", 9, (half, row), (half,))] * 2,
        ("Sub", 9, (half, half), (half,)),
        *[("Slice", 9, (whole,), (half,)), ("Mul", 9, (half, row), (half,))] * 2,
        ("Add", 9, (half, half), (half,)),
        ("ConcatD", 9, (half, half), (whole,)),
    ]
    backward: list[Kernel] = [
        *[("Slice", 8, (whole,), (half,)), ("Mul", 8, (half, row), (half,))] * 2,
        ("Slice", 8, (whole,), (half,)),
        ("Neg", 8, (half,), (half,)),
        ("Mul", 8, (half, row), (half,)),
        ("Add", 8, (half, half), (half,)),
        ("Slice", 8, (whole,), (half,)),
        ("Mul", 8, (half, row), (half,)),
        ("Add", 8, (half, half), (half,)),
        ("ConcatD", 8, (half, half), (whole,)),
    ]
    assert [found[:2] for found in found_in(scene_of(forward, backward))] == [("rotary", False), ("rotary", True)]
    joined: Kernel = ("ConcatD", 8, (half, half, half), ("20,4,100,96 FLOAT",))
    assert found_in(scene_of(forward, [*backward[:-1], joined])) == [("rotary", False, 11)]


def test_a_bias_goes_to_the_whole_product() -> None:
    part: list[Kernel] = [
        BIAS_ADD[0],
        ("Slice", 10, (X,), ("1000,24 BF16",)),
        ("Add", 10, ("1000,24 BF16", "24 BF16"), ("1000,24 BF16",)),
    ]
    assert found_in(scene_of(part)) == []


def test_a_bias_behind_a_product_is_a_row_that_nobody_computed() -> None:
    product, add = BIAS_ADD
    assert found_in(scene_of(BIAS_ADD)) == [("bias_add", False, 2)]
    assert found_in(scene_of([product, add], [product, add])) == [("bias_add", False, 2)] * 2
    computed = ("Mul", 10, ("1000 BF16", "1000 BF16"), ("1000 BF16",))
    assert found_in(scene_of([computed, *BIAS_ADD])) == []
    # Another kernel has written such a tensor since: the bias of a norm that is written out, say.
    between = ("Mul", 10, (HALF, "1000 BF16"), (HALF,))
    assert found_in(scene_of([product, between, add])) == []
    # A residual, or a number for each row.
    for other in (HALF, "10,100,1 BF16"):
        assert found_in(scene_of([product, ("Add", 10, (HALF, other), (HALF,))])) == []


def test_a_bias_behind_a_collective_is_none_of_the_product() -> None:
    """A layer whose rows are divided between ranks adds it to the sum of all ranks."""
    (product, _, reads, writes), (add, _, read, written) = BIAS_ADD
    scene = Scene().step(1, -10, 1010).tensors(0, 100, product, reads, writes)
    scene.collective(100, 50).tensors(150, 10, add, read, written)
    assert found_in(scene) == []


def test_the_product_that_takes_a_bias_stays() -> None:
    found = judge_rule("NS056", scene_of(BIAS_ADD).store()).first
    assert found.observation["kept_ns"] == found.observation["fused_ns"] == 100_000
    assert found.observation["saving_ns"] == 10_000 and found.observation["saved_launches"] == 1


def test_a_tanh_gelu_in_fp32_multiplies_by_numbers_with_mul() -> None:
    wide = [("Mul" if name == "Muls" else name, us, (XW,) * len(reads), (XW,)) for name, us, reads, _ in TANH_GELU]
    assert found_in(scene_of(wide)) == [("tanh_gelu", False, 8)]


def test_a_norm_and_a_silu_of_another_tensor_are_two_things() -> None:
    assert found_in(scene_of([GROUP_NORM_SILU[0], ("Swish", 10, ("9,9 BF16",), ("9,9 BF16",))])) == []


@pytest.mark.parametrize("decay", [True, False])
def test_sgd_weight_by_weight_is_told_where_many_updates_stand_in_a_row(decay: bool) -> None:
    """Once or twice, elementwise kernels of a model may compute the same sum."""

    def update(number: int) -> list[Kernel]:
        weight = f"{500 + number},500 FLOAT"
        return [(name, us, (weight,) * len(reads), (weight,)) for name, us, reads, _ in SGD_OF_A_WEIGHT[not decay :]]

    kernels = 4 if decay else 3
    sizes = [kernel for number in range(8) for kernel in update(number)]
    name = "optimizer_sgd_weight_by_weight"
    assert found_in(scene_of(sizes)) == [(name, False, kernels)] * 8
    assert found_in(scene_of(sizes[:-kernels])) == []
    apart = [*sizes[: 4 * kernels], ("Relu", 1.0, ("77,77 BF16",), ("77,77 BF16",)), *sizes[4 * kernels :]]
    assert found_in(scene_of(apart)) == []


def test_sgd_of_equal_weights_is_told_for_each_of_them() -> None:
    scene = scene_of(SGD_OF_A_WEIGHT * 9)
    assert found_in(scene) == [("optimizer_sgd_weight_by_weight", False, 4)] * 9
    seen = judge_rule("NS034", scene.store()).first.observation
    assert seen["chains"] == 9 and seen["saved_launches"] == 35, "one kernel takes the list"
    assert seen["fused_ns"] == pytest.approx(9 * 5_000), "weight and momentum in and out, the gradient in, 1 MB each"
    between = scene_of([*SGD_OF_A_WEIGHT * 8, ("Relu", 1.0, ("77,77 BF16",), ("77,77 BF16",)), *SGD_OF_A_WEIGHT * 8])
    assert judge_rule("NS034", between.store()).first.observation["saved_launches"] == 2 * 31


def test_other_kernels_may_lie_between() -> None:
    """Masks, labels and the other branches of a layer run between the kernels of a computation."""
    between = ("Relu", 1.0, ("77,77 BF16",), ("77,77 BF16",))
    mixed = [kernel for own in RMS for kernel in (own, between)]
    assert found_in(scene_of(mixed)) == [("rms_norm", False, len(RMS))]


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


def vocabulary_loss(*, collectives: bool) -> Scene:
    """Its three parts of kernels, with an AllReduce between them or without."""
    scene = Scene().step(1, -10, 1020)
    at = 0.0
    for number, part in enumerate(VOCABULARY):
        if number and collectives:
            scene.collective(at, 10)
            at += 10
        for type_, duration, reads, writes in part:
            scene.tensors(at, duration, type_, reads, writes)
            at += duration
    return scene


def test_a_loss_over_a_divided_vocabulary_reaches_across_its_collectives() -> None:
    scene = vocabulary_loss(collectives=True)
    assert found_in(scene) == [("vocab_parallel_cross_entropy", False, 9)]
    seen = judge_rule("NS036", scene.store()).first.observation
    # 1 MB of logits is read and 2 MB of their softmax are written, at what the index reaches: 2.02 MB in 5 us.
    assert seen["chain_ns"] == 105_000 and seen["bandwidth"] == pytest.approx(0.404e12)
    assert seen["fused_ns"] == pytest.approx(3_000 / 0.404)


def test_without_a_collective_the_vocabulary_is_whole() -> None:
    assert [name for name, *_ in found_in(vocabulary_loss(collectives=False))] == ["cross_entropy_written_out"]
