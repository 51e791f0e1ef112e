"""Chains of kernels of each pattern, and scenes of them."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.testing import Scene
from advisors.fusion.chains import Chains, fusion_chains

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

LAYER_NORM: list[Kernel] = [
    ("ReduceMean", 10, (X,), ("2000,1 BF16",)),
    ("Sub", 10, (X, "2000,1 BF16"), (X,)),
    ("Pows", 10, (X,), (X,)),
    ("ReduceMean", 10, (X,), ("2000,1 BF16",)),
    ("Add", 10, ("2000,1 BF16",), ("2000,1 BF16",)),
    ("Sqrt", 10, ("2000,1 BF16",), ("2000,1 BF16",)),
    ("RealDiv", 10, (X, "2000,1 BF16"), (X,)),
    ("Mul", 10, ("500 BF16", X), (X,)),
    ("Add", 10, (X, "500 BF16"), (X,)),
]

DRAWN, FLAGS = "2,30000 FLOAT", "2,30000 BOOL"
PUT_BACK = ((DRAWN, "2,30000 INT64", DRAWN), (DRAWN,))

TOP_K_TOP_P: list[Kernel] = [
    ("TopKV2", 10, (DRAWN,), ("2,50 FLOAT", "2,50 INT64")),
    ("StridedSlice", 10, ("2,50 FLOAT",), ("2,1 FLOAT",)),
    ("Less", 10, (DRAWN, "2,1 FLOAT"), (FLAGS,)),
    ("MaskedFill", 10, (DRAWN, FLAGS), (DRAWN,)),
    ("Sort", 50, (DRAWN,), (DRAWN, "2,30000 INT64")),
    ("SoftmaxV2", 10, (DRAWN,), (DRAWN,)),
    ("Cumsum", 10, (DRAWN,), (DRAWN,)),
    ("LessEqual", 10, (DRAWN,), (FLAGS,)),
    ("ScatterElementsV2", 10, (FLAGS, "2,30000 INT64", FLAGS), (FLAGS,)),
    ("MaskedFill", 10, (DRAWN, FLAGS), (DRAWN,)),
]

GU, HALF = "1000,2000 BF16", "1000,1000 BF16"  # 4 MB, 2 MB
GATED: Kernel = ("MatMulV3", 1, ("1000,4 BF16", "4,1000 BF16"), (HALF,))

PLACES, SUMS = "1000 INT64", "250,4,1000 BF16"  # 4 experts for each of 250 tokens

UNPERMUTE: list[Kernel] = [
    ("Mul", 10, (HALF, "1000,1 BF16"), (HALF,)),
    ("Index", 10, (HALF, PLACES), (HALF,)),
    ("ReduceSum", 10, (SUMS,), ("250,1000 BF16",)),
]

UNPERMUTE_BACK: list[Kernel] = [
    ("BroadcastTo", 10, (SUMS,), (SUMS,)),
    ("ZerosLike", 10, (HALF,), (HALF,)),
    ("IndexPutV2", 10, (HALF, PLACES, HALF), (HALF,)),
    ("Mul", 10, (HALF, HALF), (HALF,)),
    ("Mul", 10, (HALF, "1000,1 BF16"), (HALF,)),
    ("ReduceSum", 10, (HALF,), ("1000,1 BF16",)),
]

CHOSEN, EXPERTS = "1000,8 BF16", "1000,8 INT64"  # 8 of 1000 experts for each token

ROUTER: list[Kernel] = [
    ("SoftmaxV2", 10, (HALF,), (HALF,)),
    ("TopKV2", 10, (HALF,), (CHOSEN, EXPERTS)),
    ("ReduceSum", 10, (CHOSEN,), ("1000,1 BF16",)),
    ("RealDiv", 10, (CHOSEN, "1000,1 BF16"), (CHOSEN,)),
]

ROUTER_BACK: list[Kernel] = [
    ("RealDiv", 10, (CHOSEN, "1000,1 BF16"), (CHOSEN,)),
    ("RealDiv", 10, (CHOSEN, "1000,1 BF16"), (CHOSEN,)),
    ("Neg", 10, (CHOSEN,), (CHOSEN,)),
    ("Mul", 10, (CHOSEN, CHOSEN), (CHOSEN,)),
    ("RealDiv", 10, (CHOSEN, "1000,1 BF16"), (CHOSEN,)),
    ("ReduceSum", 10, (CHOSEN,), ("1000,1 BF16",)),
    ("BroadcastTo", 10, (CHOSEN,), (CHOSEN,)),
    ("Add", 10, (CHOSEN, CHOSEN), (CHOSEN,)),
    ("ZerosLike", 10, (HALF,), (HALF,)),
    ("ScatterElementsV2", 10, (HALF, EXPERTS, CHOSEN), (HALF,)),
    ("SoftmaxGrad", 10, (HALF, HALF), (HALF,)),
]

TOKENS = "250,1000 BF16"

PERMUTE: list[Kernel] = [
    ("Sort", 10, (PLACES,), (PLACES, PLACES)),
    ("FloorDiv", 10, (PLACES,), (PLACES,)),
    ("Index", 10, (TOKENS, PLACES), (HALF,)),
]

PERMUTE_BACK: list[Kernel] = [
    ("ZerosLike", 10, (TOKENS,), (TOKENS,)),
    ("IndexPutV2", 10, (TOKENS, PLACES, HALF), (TOKENS,)),
]

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

GEGLU: list[Kernel] = [
    ("Slice", 10, (GU,), (HALF,)),
    ("Gelu", 10, (HALF,), (HALF,)),
    ("Slice", 10, (GU,), (HALF,)),
    ("Mul", 10, (HALF, HALF), (HALF,)),
]

# The gradients of both halves, each product with the other half that is cut again, and one tensor of them.
GEGLU_BACK: list[Kernel] = [
    ("Slice", 10, (GU,), (HALF,)),
    ("Mul", 10, (HALF, HALF), (HALF,)),
    ("Mul", 10, (HALF, HALF), (HALF,)),
    ("Slice", 10, (GU,), (HALF,)),
    ("GeluGrad", 10, (HALF, HALF), (HALF,)),
    ("ConcatD", 10, (HALF, HALF), (GU,)),
]

TANH_GELU: list[Kernel] = [
    ("Muls", 10, (X,), (X,)),
    ("Pows", 10, (X,), (X,)),
    ("Muls", 10, (X,), (X,)),
    ("Add", 10, (X, X), (X,)),
    ("Muls", 10, (X,), (X,)),
    ("Tanh", 10, (X,), (X,)),
    ("Add", 10, (X,), (X,)),
    ("Mul", 10, (X, X), (X,)),
]

TANH_GELU_BACK: list[Kernel] = [
    ("Mul", 10, (X, X), (X,)),
    ("Mul", 10, (X, X), (X,)),
    ("TanhGrad", 10, (X, X), (X,)),
    ("Muls", 10, (X,), (X,)),
    ("Muls", 10, (X,), (X,)),
    ("Pows", 10, (X,), (X,)),
    ("Muls", 10, (X,), (X,)),
    ("Mul", 10, (X, X), (X,)),
    ("Add", 10, (X, X), (X,)),
    ("Muls", 10, (X,), (X,)),
    ("Add", 10, (X, X), (X,)),
]

ERF_GELU: list[Kernel] = [
    ("Muls", 10, (X,), (X,)),
    ("RealDiv", 10, (X,), (X,)),
    ("Erf", 10, (X,), (X,)),
    ("Add", 10, (X,), (X,)),
    ("Mul", 10, (X, X), (X,)),
]

ERF_GELU_BACK: list[Kernel] = [
    ("Mul", 10, (X, X), (X,)),
    ("Mul", 10, (X, X), (X,)),
    ("Pows", 10, (X,), (X,)),
    ("Neg", 10, (X,), (X,)),
    ("Exp", 10, (X,), (X,)),
    ("Muls", 10, (X,), (X,)),
    ("Mul", 10, (X, X), (X,)),
    ("RealDiv", 10, (X,), (X,)),
    ("Muls", 10, (X,), (X,)),
    ("Add", 10, (X, X), (X,)),
]

BIAS_ADD: list[Kernel] = [
    ("MatMulV3", 100, ("1000,700 BF16", "700,1000 BF16"), (X,)),
    ("Add", 10, ("10,100,1000 BF16", "1000 BF16"), ("10,100,1000 BF16",)),
]

QUICK_GELU: list[Kernel] = [("Muls", 10, (X,), (X,)), ("Sigmoid", 10, (X,), (X,)), ("Mul", 10, (X, X), (X,))]

QUICK_GELU_BACK: list[Kernel] = [
    ("Mul", 10, (X, X), (X,)),
    ("Mul", 10, (X, X), (X,)),
    ("SigmoidGrad", 10, (X, X), (X,)),
    ("Muls", 10, (X,), (X,)),
    ("Add", 10, (X, X), (X,)),
]

IMAGE, CHANNELS, GROUPS = "1,10,100,1000 BF16", "10 BF16", "1,5 BF16"  # 2 MB

GROUP_NORM_SILU: list[Kernel] = [
    ("GroupNorm", 20, (IMAGE, CHANNELS, CHANNELS), (IMAGE, GROUPS, GROUPS)),
    ("Swish", 10, (IMAGE,), (IMAGE,)),
]

GROUP_NORM_SILU_BACK: list[Kernel] = [
    ("SiluGrad", 10, (IMAGE, IMAGE), (IMAGE,)),
    ("GroupNormGrad", 30, (IMAGE, IMAGE, GROUPS, GROUPS, CHANNELS), (IMAGE, CHANNELS, CHANNELS)),
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
    ("Log", 15, (LOSS,), (LOSS,)),
    ("RealDiv", 15, (LOGITSW, LOSS), (LOGITSW,)),
    ("Mul", 15, (LOGITSW,), (LOGITSW,)),
    ("Cast", 15, (LOGITSW,), (LOGITS,)),
]

# Logits of 2 MB in FP32, one label for each row.
LABEL = "1000,1 FLOAT"

LOG_PROBS: list[Kernel] = [
    ("LogSoftmaxV2", 20, (LOGITSW,), (LOGITSW,)),
    ("GatherElementsV2", 10, (LOGITSW, "1000,1 INT64"), (LABEL,)),
]

LOG_PROBS_BACK: list[Kernel] = [
    ("ZerosLike", 10, (LOGITSW,), (LOGITSW,)),
    ("ScatterElementsV2", 20, (LOGITSW, "1000,1 INT64", LABEL), (LOGITSW,)),
    ("LogSoftmaxGrad", 30, (LOGITSW, LOGITSW), (LOGITSW,)),
]

# The sum of p * log(p) in each row, and what autograd runs for it.
SPREAD: list[Kernel] = [
    ("LogSoftmaxV2", 20, (LOGITSW,), (LOGITSW,)),
    ("Exp", 10, (LOGITSW,), (LOGITSW,)),
    ("Mul", 10, (LOGITSW, LOGITSW), (LOGITSW,)),
    ("ReduceSum", 10, (LOGITSW,), ("1000 FLOAT",)),
    ("Neg", 5, ("1000 FLOAT",), ("1000 FLOAT",)),
]

SPREAD_BACK: list[Kernel] = [
    ("Mul", 10, (LOGITSW, LOGITSW), (LOGITSW,)),
    ("Mul", 10, (LOGITSW, LOGITSW), (LOGITSW,)),
    ("Mul", 10, (LOGITSW, LOGITSW), (LOGITSW,)),
    ("Add", 10, (LOGITSW, LOGITSW), (LOGITSW,)),
    ("LogSoftmaxGrad", 20, (LOGITSW, LOGITSW), (LOGITSW,)),
]

# The same in halves: the largest logit, and the sums, go through an AllReduce.
VOCABULARY: list[list[Kernel]] = [
    [("Cast", 15, (LOGITS,), (LOGITSW,)), ("ArgMaxWithValue", 15, (LOGITSW,), (LOSS,))],
    [
        ("Sub", 15, (LOGITSW, LOSS), (LOGITSW,)),
        ("Index", 5, (LOGITSW, "1000 INT64", "1000 INT64"), ("1000 FLOAT",)),
        ("Exp", 15, (LOGITSW,), (LOGITSW,)),
        ("ReduceSum", 15, (LOGITSW,), (LOSS,)),
    ],
    [
        ("Log", 5, (LOSS,), (LOSS,)),
        ("Sub", 5, (LOSS, LOSS), (LOSS,)),
        ("RealDiv", 15, (LOGITSW, LOSS), (LOGITSW,)),
    ],
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

SGD_OF_A_WEIGHT: list[Kernel] = [
    ("Add", 10, (P, P), (P,)),
    ("Mul", 10, (P,), (P,)),
    ("Add", 10, (P, P), (P,)),
    ("Add", 10, (P, P), (P,)),
]

SMALL = (("3 FLOAT",), ("3 FLOAT",))


def scene_of(*chains: Sequence[Kernel], wall: float = 1000, end: str = "TopKV2", interval: float = 0.01) -> Scene:
    """The yardstick, a product that gates read, the chains with an unrelated kernel after each, and a kernel that fills
    the step. The host launches one every ``interval`` us, and it starts 9 us later or when the device gets to it."""
    scene = Scene().step(1, -10, wall + 20)
    kernels = [YARDSTICK, GATED, *(kernel for chain in chains for kernel in (*chain, ("Sign", 1, *SMALL)))]
    at = 0.0
    for number, (type_, duration, reads, writes) in enumerate([*kernels, (end, 0, *SMALL)]):
        at = max(at, number * interval)
        length = duration or wall - at
        scene.tensors(at, length, type_, reads, writes, launched=number * interval - 9)
        at += length
    return scene


def found_in(scene: Scene) -> list[tuple[str, bool, int]]:
    chains: Chains = scene.store()[fusion_chains]
    frame = chains.frame
    return list(zip(frame["pattern"], frame["backward"], frame["kernels"], strict=True))
