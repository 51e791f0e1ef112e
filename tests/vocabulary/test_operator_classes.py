"""Operator classes go by whole words of a type."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.plugins.host import load_host
from advisor_core.vocabulary.operator_class import kernel_type
from advisor_core.vocabulary.words import pattern, runs, words

class_of = load_host().vocabulary("ascend").operator_classes.class_of


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        # a word that another one merely contains
        ("LayerNormV3", "normalisation"),
        ("DSARandomNormal", "random"),
        ("StatelessRandomNormalV2", "random"),
        ("LinearQuant", "matmul"),
        ("ResizeBilinearV2", "other"),
        ("UpsampleLinear1d", "other"),
        ("ForeachLerpScalar", "optimizer"),
        ("Lambda", "other"),
        ("Less", "elementwise"),
        ("Restless", "other"),
        ("ReduceSum", "reduction"),
        ("Substr", "other"),
        ("Unpack", "slice"),
        ("PackedTensor", "other"),
        # one word or two, in whatever capitals
        ("MatMulV3", "matmul"),
        ("GroupedMatmul", "matmul"),
        ("WeightQuantBatchMatmulV2", "matmul"),
        ("SwiGlu", "elementwise"),
        ("DequantSwigluQuant", "cast"),
        ("BNTrainingUpdateGrad", "normalisation"),
        ("Conv2DBackpropFilter", "convolution"),
        ("AdaptiveAvgPool3dGrad", "reduction"),
        ("TopKV2", "reduction"),
        ("ApplyAdamWV2", "optimizer"),
        ("FFNV3", "matmul"),
        # words that mean something else together
        ("LpNormV2", "reduction"),
        ("RotaryPositionEmbedding", "elementwise"),
        ("EmbeddingDenseGradV2", "slice"),
        ("MoeGatingTopKSoftmax", "normalisation"),
        ("Addcdiv", "optimizer"),
        ("AddRmsNorm", "normalisation"),
        ("Add", "elementwise"),
        ("Muls", "elementwise"),
        ("aclnnMatmul", "matmul"),
        ("", "other"),
    ],
)
def test_class(operator: str, expected: str) -> None:
    assert class_of(operator) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aclnnMuls_MulAiCore_Mul", "elementwise"),
        ("aclnnCat_AsStrided", "slice"),
        ("LpNormReduceV2158", "reduction"),
        ("Conv2DBackpropFilter10_MemSet", "copy"),  # as its type says where one is recorded
        ("trans_TransData_0", "format_conversion"),
    ],
)
def test_class_by_name(name: str, expected: str) -> None:
    assert class_of(kernel_type(name)) == expected


def test_words_end_where_capitals_digits_and_underscores_say() -> None:
    assert words("DSAGenBitMask") == ("dsa", "gen", "bit", "mask")
    assert words("fused_add_rms_norm") == ("fused", "add", "rms", "norm")
    assert words("Log1p") == ("log", "1", "p")


@pytest.mark.parametrize("text", ["", "*norm*", "norm|softmax", "no rm^"])
def test_a_pattern_is_words(text: str) -> None:
    with pytest.raises(ValueError, match="sequence of words"):
        pattern(text)


@given(st.lists(st.sampled_from(["Mat", "Mul", "at", "native", "F", "2d", "V3"]), max_size=12), st.integers(0, 9))
def test_long_sequences_of_words_are_left_out(parts: list[str], longest: int) -> None:
    operator = "_".join(parts)
    short = {text for text in runs(operator) if len(text) <= longest}
    assert short == {text for text in runs(operator, longest) if len(text) <= longest}


def test_a_name_of_a_template_does_not_blow_up() -> None:
    name = "void at::native::elementwise_kernel<" + ", ".join(f"Functor{n}<float>" for n in range(300)) + ">"
    assert len(runs(name, 24)) < 20 * len(words(name))
