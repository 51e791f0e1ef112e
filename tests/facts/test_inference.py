"""Which part of inference a profile is of: by attention, and by the rows of products where it does not tell."""

from __future__ import annotations

from typing import Any

import pytest

from advisor_core.api.testing import Scene
from advisor_core.facts.context import context

Kernel = tuple[str, str, float]


def phase(*kernels: Kernel) -> object:
    """Of kernels with a type, the shapes of their inputs and a duration in us."""
    scene = Scene().step(1, 0, 10_000)
    for number, (type_, shapes, duration) in enumerate(kernels):
        reads = [f"{shape} BF16" for shape in shapes.split(";")]
        scene.tensors(100 * number, duration, type_, reads, reads[:1])
    found: dict[str, Any] = dict(scene.store()[context])
    return found["phase"]


MANY: Kernel = ("MatMulV3", "4096,512;512,512", 50)
FEW: Kernel = ("MatMulV3", "141,512;512,512", 50)
HEAD: Kernel = ("MatMulV3", "4,512;512,30000", 5)
WHOLE: Kernel = ("FlashAttentionScore", "1,141,8,64;1,141,8,64;1,141,8,64", 10)
SHARED: Kernel = ("FlashAttentionScore", "1,32,4096,64;1,8,4096,64;1,8,4096,64", 10)
CACHED: Kernel = ("FlashAttentionScore", "4,32,1,64;4,8,513,64;4,8,513,64", 10)
PACKED: Kernel = ("FusedInferAttentionScore", "8192,64,64;900,16,1024;900,16,1024", 10)
PACKED_FEW: Kernel = ("FusedInferAttentionScore", "46,64,64;900,16,1024;900,16,1024", 10)


@pytest.mark.parametrize(
    ("kernels", "is_called"),
    [
        ([MANY, SHARED, HEAD], "prefill"),
        ([FEW, CACHED], "decode"),
        # An encoder of a short text: as few rows as decode, and no cache.
        ([FEW, WHOLE], "prefill"),
        ([FEW, ("SoftmaxV2", "1,8,141,141", 10)], "prefill"),
        ([FEW, ("SoftmaxV2", "4,8,1,513", 10)], "decode"),
        # Only the head has recorded shapes, and the attention the tokens of all sequences.
        ([PACKED, ("MatMulV3", "46,512;512,30000", 1)], "prefill"),
        ([PACKED_FEW, FEW], "decode"),
        ([FEW, ("PagedAttention", "512,8,64", 10)], "decode"),
        ([MANY, ("PagedAttention", "512,8,64", 10)], "decode"),
        ([MANY, ("PromptFlashAttention", "512,8,64", 10)], "prefill"),
        # A recording of whole sequences and of the tokens that follow.
        ([MANY, SHARED, FEW, CACHED], "mixed"),
        ([MANY] * 9 + [SHARED, ("MatMulV3", "4,512;512,512", 10), CACHED], "prefill"),
        # Few rows alone are no decode, and neither are the logits of last tokens.
        ([FEW], "unknown"),
        ([FEW, ("SoftmaxV2", "4,1,30000", 10), WHOLE], "prefill"),
        ([("Add", "4,4;4,4", 10)], "unknown"),
    ],
)
def test_attention_tells_the_part_of_inference_else_the_rows_do(kernels: list[Kernel], is_called: str) -> None:
    assert phase(*kernels) == is_called


def test_attention_of_queries_without_heads_has_the_tokens_of_all_sequences() -> None:
    """``[batch, sequence, channels]``: one sequence of 4096 tokens is no single token."""
    assert phase(("FlashAttentionScore", "1,4096,2048;1,4096,2048;1,4096,2048", 10)) == "prefill"


def test_training_has_no_part_of_inference() -> None:
    assert phase(MANY, SHARED, ("FlashAttentionScoreGrad", "1,8,64,64", 10)) == "training"
