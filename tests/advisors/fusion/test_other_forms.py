"""Computations in less usual spellings: limited gates, rows over their length, complex numbers, parts, signs."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene
from tests.advisors.fusion.chains import HALF, LAYER_NORM, XW, Kernel, P, X, found_in, scene_of

ROW, LOGITS = "2000,1 FLOAT", "1000,30000 FLOAT"
PART, TURNS = "20,4,100,32 BF16", "100,32 BF16"
PAIRS, COMPLEX, ANGLES = "20,4,100,64 FLOAT", "20,4,100,32 COMPLEX64", "1,1,100,32 COMPLEX64"

LIMITED: list[Kernel] = [
    *[("ClipByValueV2", 10, (HALF,), (HALF,))] * 2,
    ("Muls", 10, (HALF,), (HALF,)),
    ("Sigmoid", 10, (HALF,), (HALF,)),
    ("Mul", 10, (HALF, HALF), (HALF,)),
    ("Adds", 10, (HALF,), (HALF,)),
    ("Mul", 10, (HALF, HALF), (HALF,)),
]

LENGTH: list[Kernel] = [
    ("LpNormV2", 10, (XW,), (ROW,)),
    ("Maximum", 3, (ROW,), (ROW,)),
    ("RealDiv", 10, (XW, ROW), (XW,)),
]

OF_SQUARES: list[Kernel] = [
    ("Mul", 10, (XW, XW), (XW,)),
    ("ReduceSum", 10, (XW,), (ROW,)),
    ("Adds", 3, (ROW,), (ROW,)),
    ("Rsqrt", 3, (ROW,), (ROW,)),
    ("Mul", 10, (XW, ROW), (XW,)),
]

LOSS: list[Kernel] = [
    ("GatherElementsV2", 3, (LOGITS, "1000,1 INT64"), ("1000,1 FLOAT",)),
    ("ReduceLogSumExp", 50, (LOGITS,), ("1000 FLOAT",)),
    ("Sub", 3, ("1000 FLOAT", "1000 FLOAT"), ("1000 FLOAT",)),
    ("ReduceMean", 3, ("1000 FLOAT",), (" FLOAT",)),
]

LION: list[Kernel] = [
    *[("Muls", 10, (P,), (P,))] * 2,
    ("Add", 10, (P, P), (P,)),
    ("Sign", 10, (P,), (P,)),
    ("Add", 10, (P, P), (P,)),
    ("Muls", 10, (P,), (P,)),
    ("Add", 10, (P, P), (P,)),
]

TURNED: list[Kernel] = [
    ("Cast", 10, ("20,4,100,64 BF16",), (PAIRS,)),
    ("Mul", 10, (COMPLEX, ANGLES), (COMPLEX,)),
    ("Cast", 10, (PAIRS,), ("20,4,100,64 BF16",)),
]


def half_turned(last: str) -> list[Kernel]:
    return [
        *[("Mul", 10, (PART, TURNS), (PART,))] * 2,
        (last, 10, (PART, PART), (PART,)),
        ("ViewCopy", 10, (PART,), (PART,)),
    ]


@pytest.mark.parametrize(
    ("pattern", "chain"),
    [
        ("limited_swiglu", LIMITED),
        ("l2_norm", LENGTH),
        ("l2_norm", OF_SQUARES),
        ("cross_entropy_by_logsumexp", LOSS),
        ("log_probs", LOSS[:3]),
        ("optimizer_lion", LION),
        ("optimizer_lion", LION[1:]),
        ("rotary", TURNED),
        ("rotary", [*half_turned("Sub"), *half_turned("Add")]),
        ("rotary", [*half_turned("Add"), *half_turned("Sub")]),
    ],
)
def test_each_is_one_computation(pattern: str, chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == [(pattern, False, len(chain))]


@pytest.mark.parametrize(
    "chain",
    [
        half_turned("Sub"),
        [*half_turned("Sub"), *half_turned("Sub")],
        # A filter in the frequency domain: nothing real is taken for complex numbers.
        [("FFT", 10, ("20,4,100,32 FLOAT",), (COMPLEX,)), ("Mul", 10, (COMPLEX, ANGLES), (COMPLEX,))],
        # Of numbers that differ for each pair.
        [TURNED[0], ("Mul", 10, (COMPLEX, COMPLEX), (COMPLEX,))],
        LENGTH[:2],
        LION[:3],
    ],
)
def test_what_lacks_a_step_is_none(chain: list[Kernel]) -> None:
    assert found_in(scene_of(chain)) == []


def test_a_gate_without_limits_and_the_one_is_a_quick_gelu() -> None:
    """The limited gate comes first, and only where both are there."""
    assert [found[0] for found in found_in(scene_of([*LIMITED[2:5], LIMITED[6]]))] == ["quick_gelu"]


def test_a_layer_norm_takes_a_row_for_its_bias_only() -> None:
    """What is added of equal size is of something else: of a rotary embedding of as many elements."""
    chain: list[Kernel] = [*LAYER_NORM[:-1], ("Cast", 9, (X,), (XW,)), ("Add", 9, (XW, XW), (XW,))]
    assert found_in(scene_of(chain)) == [("layer_norm", False, len(LAYER_NORM))], "with its cast"


def attention_on_a_gpu(last: int) -> Scene:
    """Scores of 64 keys and a sink; the product behind reads ``last`` of them where they lie."""
    scores, wide = "8,64,64 BF16", "8,64,65 BF16"
    chain: list[Kernel] = [
        ("aten::bmm", 9, ("8,64,32 BF16", "8,32,64 BF16"), (scores,)),
        ("aten::cat", 9, (scores, "8,64,1 BF16"), (wide,)),
        ("aten::_softmax", 9, (wide,), (wide,)),
        ("aten::bmm", 9, (f"8,64,{last} BF16", f"8,{last},32 BF16"), ("8,64,32 BF16",)),
    ]
    return scene_of(chain)


def test_a_sink_is_left_out_of_the_rows_of_the_softmax() -> None:
    assert [found[0] for found in found_in(attention_on_a_gpu(64))] == ["attention"]
    assert found_in(attention_on_a_gpu(66)) == []
