"""Shapes and sizes of tensors: what the exports write, and what cannot be known."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.facts.device.shapes import DTYPE_BYTES, elements, moved_bytes, per_text, shapes_of, tensor_bytes
from advisor_core.testing import table


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("32,3;64;", ((32, 3), (64,), ())),
        ("", ()),
        (";", ((), ())),
        ("4096", ((4096,),)),
        ("N/A", ((),)),
        ("8, 16;-1,4", ((8, 16), ())),
        ("1048576,1048577", ((),)),  # more than any device holds
    ],
)
def test_shapes_as_the_exports_write_them(text: str, expected: tuple[tuple[int, ...], ...]) -> None:
    assert shapes_of(text) == expected


@pytest.mark.parametrize(
    ("shapes", "dtypes", "expected"),
    [
        ("8,4;8,4", "BF16;FLOAT", 64 + 128),
        ("", "FLOAT", 4),  # the result of a reduction to one number
        (";", "FLOAT;INT64", 12),
        ("", "", 0),
        ("8,4;", "BF16;UNDEFINED", 64),  # an optional input that is not given
        ("8,4;2", "BF16;UNDEFINED", -1),
        ("8,4", "INT4", -1),
        ("8,4;8,4", "BF16", -1),
        ("8,4", "", -1),
        ("-1,4", "BF16", -1),
        ("N/A", "FLOAT", -1),
        ("0,4", "BF16", 0),
    ],
)
def test_bytes_of_tensors(shapes: str, dtypes: str, expected: int) -> None:
    assert tensor_bytes(shapes, dtypes) == expected


TENSOR = st.tuples(st.lists(st.integers(0, 1024), max_size=4), st.sampled_from(sorted(DTYPE_BYTES)))


@given(st.lists(TENSOR, max_size=5))
def test_bytes_agree_with_a_plain_product(tensors: list[tuple[list[int], str]]) -> None:
    shapes = ";".join(",".join(map(str, shape)) for shape, _ in tensors)
    dtypes = ";".join(dtype for _, dtype in tensors)
    assert tensor_bytes(shapes, dtypes) == sum(math.prod(shape) * DTYPE_BYTES[dtype] for shape, dtype in tensors)
    if shapes:
        assert [elements(shape) for shape in shapes_of(shapes)] == [math.prod(shape) for shape, _ in tensors]


def test_moved_bytes_are_inputs_and_outputs_once() -> None:
    """Equal texts in another place (inputs of one kernel, outputs of another) are told apart."""
    rows = [
        {"input_shapes": "8,4;8,4", "input_dtypes": "BF16;BF16", "output_shapes": "8,4", "output_dtypes": "BF16"},
        {"input_shapes": "8,4", "input_dtypes": "BF16", "output_shapes": "8,4;8,4", "output_dtypes": "BF16;FLOAT"},
        {"input_shapes": "8,4", "input_dtypes": "INT4", "output_shapes": "8,4", "output_dtypes": "BF16"},
        {"input_shapes": "8,4;8,4", "input_dtypes": "BF16;BF16", "output_shapes": "8,4", "output_dtypes": "BF16"},
        {},
    ]
    frame = table("kernels", rows)
    assert moved_bytes(frame).tolist() == [192, 64 + 64 + 128, -1, 192, 0]
    assert moved_bytes(frame.iloc[[3, 1]]).tolist() == [192, 256]


def test_a_function_of_texts_is_called_once_per_text() -> None:
    seen: list[str] = []
    column = pd.Series(pd.Categorical(["a", "bb", "a", "bb", "a"]), index=[9, 8, 7, 6, 5])
    lengths = per_text(column, lambda text: seen.append(text) or len(text))  # type: ignore[func-returns-value]
    assert lengths.tolist() == [1, 2, 1, 2, 1] and lengths.index.tolist() == [9, 8, 7, 6, 5]
    assert sorted(seen) == ["a", "bb"]
