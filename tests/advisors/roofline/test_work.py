"""What kernels compute and move, from their shapes; some kernels of recordings computed by hand."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene
from advisors.roofline.attention import attention_of
from advisors.roofline.convolutions import convolution_flops
from advisors.roofline.products import gathered_of, grouped_of, product_of
from advisors.roofline.traffic import sizes, traffic_of
from advisors.roofline.work import kernel_work
from tests.advisors.real import real_rank


def row_of(table: pd.DataFrame, operator: str, words: str = "") -> pd.Series:
    found = table[(table["operator"] == operator) & (table["work"] == words)]
    return found.iloc[0]


def test_kernels_of_recordings_by_hand(profiles: Path) -> None:
    """Seven kernels of five kinds; the numbers come from their recorded shapes and a pocket calculator."""
    gpt = real_rank(profiles, "gpt3-kernel-details-only_ascend_pt", 0)[kernel_work].table
    # [4096, 12288] x [6144, 12288] transposed: 2 x 4096 x 6144 x 12288; 2 bytes each
    product = row_of(gpt, "MatMul", "4096 x 6144 x 12288")
    assert product["flops"] == 618_475_290_624
    assert (product["read"], product["written"]) == (2 * (4096 + 6144) * 12288, 2 * 4096 * 6144)
    # [12, 1024, 1024] x [12, 1024, 512]
    assert row_of(gpt, "BatchMatMul", "12 x 1024 x 512 x 1024")["flops"] == 2 * 12 * 1024 * 512 * 1024 == 12_884_901_888
    # parameter, both moments and the gradient are read, the first three written; seven scalars
    update = gpt[(gpt["operator"] == "ApplyAdamW") & (gpt["written"] == 3 * 4 * 75_497_472)].iloc[0]
    assert update["read"] == 4 * 4 * 75_497_472 + 7 * 4
    # 4096 rows of 12288 of a table with 6400: not the table is read, but these rows; 4096 places of 4 bytes, one axis
    lookup = gpt[(gpt["operator"] == "GatherV2") & (gpt["written"] == 2 * 4096 * 12288)]
    assert 2 * 4096 * 12288 + 4 * 4096 + 8 in lookup["read"].tolist()

    alexnet = real_rank(profiles, "alexnet-ddp-text-level1", 0)[kernel_work].table
    # 3 x 3 from 192 to 384 channels at 13 x 13 places of 32 images; and 5 x 5 from 64 to 192 at 27 x 27, to its weight
    assert 2 * 32 * 13 * 13 * 9 * 192 * 384 in alexnet.loc[alexnet["operator"] == "Conv2D", "flops"].tolist()
    to_weight = alexnet.loc[alexnet["operator"] == "Conv2DBackpropFilter", "flops"].tolist()
    assert 2 * 32 * 27 * 27 * 25 * 64 * 192 in to_weight
    # the exporter writes the mask of the pooling with a sixth axis
    assert alexnet.loc[alexnet["operator"] == "MaxPoolGradWithArgmaxV1", "read"].isna().all()

    score = real_rank(profiles, "msprof-op-summary", 0)[kernel_work].table
    # 2 sequences of 8192, 640 channels, with a mask of 8192 x 8192: at least half of 4 x 2 x 8192 x 8192 x 640
    assert row_of(score, "FlashAttentionScore", "2 x 8192 x 8192 x 640")["flops"] == 171_798_691_840


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40), st.integers(2, 9))
def test_rows_in_groups_compute_as_much_as_without(rows: int, n: int, k: int, groups: int) -> None:
    plain = product_of(f"{rows},{k};{k},{n}", "ND;ND", f"{rows},{n}")
    assert plain is not None
    assert grouped_of(f"{rows},{k};{groups},{k},{n};{groups}", f"{rows},{n}") == (plain.flops, groups)
    assert grouped_of(f"{k},{rows};{rows},{n};{groups}", f"{groups},{k},{n}") == (plain.flops, groups)


def test_products_with_an_addend_before_them_and_with_other_ranks() -> None:
    added = product_of("768;8192,768;768,3072", "ND;ND;ND", "8192,3072")
    assert added is not None and (added.first, added.flops) == (1, 2 * 8192 * 768 * 3072)
    scores = product_of("16,512,512;16,512,128;16,128,512", "ND;ND;ND", "16,512,512")
    assert scores is not None and (scores.first, scores.batch, scores.k) == (1, 16, 128)
    whole = 2 * 4096 * 1024 * 256
    assert gathered_of("512,1024;1024,256", "4096,256") == whole == gathered_of("4096,1024;1024,256", "512,256")
    assert grouped_of("8,16;4,17,8", "8,8") is None and gathered_of("8,16", "8,8") is None


@pytest.mark.parametrize(
    ("operator", "inputs", "output"),
    [
        ("Conv2D", "8,64,28,28;128,64,3,3;128", "8,128,14,14"),
        ("Conv2DBackpropInput", "4;128,64,3,3;8,128,14,14", "8,64,28,28"),
        ("Conv2DBackpropFilter", "8,64,28,28;4;8,128,14,14", "128,64,3,3"),
        ("aten::convolution_backward", "8,128,14,14;8,64,28,28;128,64,3,3;;", ""),
        ("Conv2DBackpropInput", "8,128,14,14;8,64,28,28;128,64,3,3", "8,64,28,28"),
    ],
)
def test_a_convolution_and_its_gradients_cost_the_same(operator: str, inputs: str, output: str) -> None:
    forms = ";".join("NCHW" for _ in inputs.split(";"))
    assert convolution_flops(operator, inputs, forms, output, "NCHW") == 2 * 8 * 14 * 14 * 128 * 64 * 9


def test_groups_of_a_convolution_are_in_its_weight() -> None:
    found = convolution_flops("DepthwiseConv2D", "8,64,28,28;64,1,7,7", "NCHW;NCHW", "8,64,28,28", "NCHW")
    assert found == 2 * 8 * 28 * 28 * 64 * 49
    assert convolution_flops("aten::cudnn_convolution", "8,64,28,28;64,64,1,1", ";", "", "") is None


@pytest.mark.parametrize(
    ("operator", "inputs", "output", "sizes_of", "share"),
    [
        ("FlashAttentionScore", "2,32,4096,128;2,8,4096,128;2,8,4096,128", "", (2, 4096, 4096, 4096), 1),
        ("FlashAttentionScore", "2,4096,32,128;2,4096,8,128;2,4096,8,128", "", (2, 4096, 4096, 4096), 1),
        ("FlashAttentionScore", "2,64,32,128;2,64,32,128;2,64,32,128", "2,32,64,8", (2, 64, 64, 4096), 1),
        ("FlashAttentionScore", "2,32,9,128;2,32,9,128;2,32,9,128", "2,32,9,8", (2, 9, 9, 4096), 1),
        ("FlashAttentionScore", "4096,2,640;4096,2,640;4096,2,640;;;;2048,2048", "", (2, 4096, 4096, 640), 0.5),
        ("FlashAttentionScoreGrad", "1,8,512,64;1,8,512,64;1,8,512,64", "", (1, 512, 512, 512), 2.5),
        ("aten::_flash_attention_forward", "1,141,8,64;1,141,8,64;1,141,8,64", "", (1, 141, 141, 512), 0.5),
        ("PromptFlashAttention", "4,1,4096;4,2048,512;4,2048,512", "", (4, 1, 2048, 4096), 1),
        # Of a text or of frames: fewer keys than queries, whether they divide them or not.
        ("FlashAttentionScore", "4,8,4096,40;4,8,77,40;4,8,77,40", "", (4, 4096, 77, 320), 1),
        ("FlashAttentionScore", "1,32,2048,64;1,32,128,64;1,32,128,64", "", (1, 2048, 128, 2048), 1),
        # The gradient of the result in front of the queries, and behind the values.
        ("FlashAttentionScoreGrad", "4,8,4096,40;4,8,4096,40;4,8,77,40;4,8,77,40", "", (4, 4096, 77, 320), 2.5),
        ("FlashAttentionScoreGrad", "4,8,4096,40;4,8,77,40;4,8,77,40;4,8,4096,40", "", (4, 4096, 77, 320), 2.5),
        ("aten::_flash_attention_backward", "1,141,8,64;1,141,8,64;1,99,8,64;1,99,8,64", "", (1, 141, 99, 512), 2.5),
    ],
)
def test_attention_in_all_layouts(
    operator: str, inputs: str, output: str, sizes_of: tuple[int, int, int, int], share: float
) -> None:
    found = attention_of(operator, inputs, output)
    assert found is not None
    assert (found.batch, found.queries, found.keys, found.width) == sizes_of
    assert found.flops == 4 * math.prod(sizes_of) * share


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("PagedAttention", "8,32,128;900,128,8,128;900,128,8,128"),  # the lengths are values
        ("FlashAttentionScore", "8192,32,128;8192,8,128;8192,8,128"),  # sequences behind one another
        ("FlashAttentionScore", "2,32,4096,128;3,8,4096,128;3,8,4096,128"),
        ("FlashAttentionScore", "2,32,4096,128"),
    ],
)
def test_attention_that_shapes_do_not_tell_is_unknown(operator: str, inputs: str) -> None:
    assert attention_of(operator, inputs, "") is None


@pytest.mark.parametrize(
    ("operator", "reads", "writes", "moved"),
    [
        ("Add", (100, 100), (100,), (200, 100)),
        ("ZerosLike", (100,), (100,), (0, 100)),
        ("GatherV2", (1000, 4), (80,), (84, 80)),
        ("AsStrided", (300, 8), (100,), (108, 100)),
        ("RotaryEmbedding", (1000, 4), (80,), (1004, 80)),
        ("EmbeddingDenseGrad", (80, 4), (1000,), (84, 1000)),
        ("ScatterUpdate", (1000, 4, 50), (1000,), (54, 50)),
        ("ViewCopy", (1000, 8, 50), (1000,), (58, 50)),
        ("ReshapeAndCache", (50, 50, 1000, 1000, 4), (1000, 1000), (100, 100)),
    ],
)
def test_only_the_part_that_is_moved_counts(
    operator: str, reads: tuple[float, ...], writes: tuple[float, ...], moved: tuple[float, float]
) -> None:
    found = traffic_of(operator, reads, writes)
    assert (found.read, found.written) == moved


def test_a_size_is_told_by_shape_type_and_format_together() -> None:
    assert sizes("8,4;;", "BF16;FLOAT;UNDEFINED", "ND;ND;ND") == (64.0, 4.0, 0.0)
    assert math.isnan(sizes("8,4", "INT4", "ND")[0]) and math.isnan(sizes("8;8", "BF16", "ND")[0])
    assert math.isnan(sizes("32,64,9,9,47,16", "UINT16", "NC1HWC0:1")[0])


def test_few_rows_for_many_groups_read_no_one_knows_how_many_weights() -> None:
    def read(rows: int) -> float:
        tensors = [f"{rows},64 BF16", "16,64,32 BF16", "16 INT64"]
        scene = Scene().tensors(0, 50, "GroupedMatmul", tensors, [f"{rows},32 BF16"])
        return float(scene.store()[kernel_work].table["read"].iloc[0])

    assert math.isnan(read(16)) and read(64) == 2 * 64 * 64 + 2 * 16 * 64 * 32 + 8 * 16


def test_without_shapes_and_on_an_ai_cpu_nothing_is_known() -> None:
    scene = Scene().kernel(0, 50, "Whatever").kernel(60, 50, "MatMulV3")
    scene.tensors(120, 50, "Cast", ["8,4 FLOAT"], ["8,4 BF16"], core="AI_CPU")
    table = scene.store()[kernel_work].table.set_index("operator")
    assert table["read"].isna().all() and math.isnan(table["flops"]["MatMulV3"])
