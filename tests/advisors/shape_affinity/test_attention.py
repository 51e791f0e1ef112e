"""SA006: attention over a cache."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisors.shape_affinity.attention import DecodeShape, decode_shape, more_sequences
from tests.advisors.shape_affinity.scenes import VECTOR, judged, kinds, until_the_end


def decode(query: str, key: str, *, core: str = "MIX_AIC", blocks: int = 8, us: float = 1000) -> Scene:
    reads = [f"{query} BF16", f"{key} BF16", f"{key} BF16"]
    scene = Scene().tensors(0, us, "IncreFlashAttention", reads, [f"{query} BF16"], core=core)
    return until_the_end(scene.busy(blocks))


def test_attention_with_few_heads_fires() -> None:
    found = judged("SA006", decode("2,32,1,128", "2,4,4096,128"))
    seen = found.first.observation
    assert (seen["sequences"], seen["kv_heads"], seen["parallel"], seen["cores"]) == (2, 4, 8, 24)
    assert seen["query_shape"] == "2,32,1,128" and (seen["good_sequences"], seen["good_efficiency"]) == (6, 1)
    assert seen["efficiency"] == pytest.approx(1 / 3) and seen["blocks"] == 8
    assert found.first.impact_ns == 666_667 and found.first.severity == "high"
    assert kinds(found) == ["config"]


@pytest.mark.parametrize(
    ("cores", "heads", "sequences", "better"),
    [(24, 4, 2, 6), (24, 1, 30, 48), (24, 8, 4, 6), (20, 8, 3, 5), (20, 8, 1, 2)],
)
def test_more_sequences_never_advises_fewer(cores: int, heads: int, sequences: int, better: int) -> None:
    found = more_sequences(pd.Series([sequences]), np.array([float(heads)]), pd.Series([cores]))
    assert found.tolist() == [better]


def test_attention_on_vector_cores_counts_those() -> None:
    found = judged("SA006", decode("8,4,1,128", "8,4,4096,128", core=VECTOR, blocks=32))
    assert found.first.observation["cores"] == 48 and found.first.impact_ns == 333_333


def test_attention_that_reports_more_blocks_may_divide_the_cache() -> None:
    assert judged("SA006", decode("2,32,1,128", "2,4,4096,128", blocks=24)).first.severity == "low"


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (decode("6,32,1,128", "6,4,4096,128"), "pass"),
        (decode("5,32,1,128", "5,4,4096,128"), "pass"),  # 20 of 24
        (decode("2,32,1,128", "2,4,4096,128", us=140), "pass"),  # 93 us of 10 ms
        (decode("2,32,2048,128", "2,4,2048,128"), "not_applicable"),  # a prompt
        (decode("8,1,4096", "8,2048,512"), "cannot_answer"),  # hides the heads
    ],
)
def test_attention_is_silent(scene: Scene, state: str) -> None:
    assert judged("SA006", scene).state == state


@given(st.integers(1, 64), st.integers(1, 8), st.integers(1, 8), st.integers(1, 4), st.sampled_from([64, 128]))
def test_layouts_of_attention_tell_the_same(batch: int, heads: int, groups: int, tokens: int, channels: int) -> None:
    """The same step of decoding in three layouts; where heads and tokens cannot be told apart, nothing is claimed."""
    q, cache = heads * groups, 4096
    bnsd = f"{batch},{q},{tokens},{channels};{batch},{heads},{cache},{channels}"
    bsnd = f"{batch},{tokens},{q},{channels};{batch},{cache},{heads},{channels}"
    paged = f"{batch},{q},{channels};900,128,{heads},{channels}"
    assert decode_shape(paged) == DecodeShape(batch, 1, q, heads)
    told = DecodeShape(batch, tokens, q, heads)
    if tokens < q:
        assert decode_shape(bnsd) == told
    if tokens <= q:
        assert decode_shape(bsnd) == told
    rows = f"{batch * tokens},{q},{channels};900,128,{heads},{channels};900,128,{heads},{channels};{batch},512"
    assert decode_shape(rows, "BF16;BF16;BF16;INT32") == told


def test_speculated_tokens_are_no_sequences() -> None:
    """Four sequences of three tokens and two heads of key and value: eight blocks, not 24."""
    reads = ["12,8,128 BF16", "900,128,2,128 BF16", "900,128,2,128 BF16", "4,512 INT32", "4 INT32"]
    scene = Scene().tensors(0, 1000, "PagedAttentionMaskNdKernel", reads, ["12,8,128 BF16"], core="MIX_AIC").busy(8)
    seen = judged("SA006", until_the_end(scene)).first.observation
    assert (seen["sequences"], seen["tokens"], seen["folds"], seen["parallel"]) == (4, 3, 1, 8)
    assert seen["good_sequences"] == 12


def test_long_folds_are_several_blocks() -> None:
    """All 128 heads share one head of key and value (MLA), with two tokens: 256 rows, two blocks."""
    found = judged("SA006", decode("8,2,128,512", "8,4096,1,512"))
    seen = found.first.observation
    assert (seen["folds"], seen["parallel"], seen["efficiency"]) == (2, 16, pytest.approx(16 / 24))


def test_a_prompt_over_a_paged_cache_is_no_decode() -> None:
    """2048 tokens of two sequences, chunked: the table of blocks tells."""
    reads = ["2048,32,128 BF16", "900,128,8,128 BF16", "900,128,8,128 BF16", "2,512 INT32"]
    scene = Scene().tensors(0, 1000, "FusedInferAttentionScore", reads, ["2048,32,128 BF16"], core="MIX_AIC")
    assert judged("SA006", until_the_end(scene)).state == "not_applicable"
