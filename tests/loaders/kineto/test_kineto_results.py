"""What kernels read and write, as the inputs of their operators tell."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from advisor_core.loaders.kineto.results import Tensors, tensors, with_types_of_lists
from tests.loaders.kineto.build import Recording

HALF, FLOAT, SCALAR = "c10::BFloat16", "float", "Scalar"


def written(operator: str, shapes: object, types: object, strides: object = (), values: object = ()) -> tuple[str, str]:
    told = tensors(operator, *map(json.dumps, (shapes, types, strides, values)))
    return told.output_shapes, told.output_dtypes


@pytest.mark.parametrize(
    ("operator", "shapes", "types", "values", "shape", "dtype"),
    [
        (
            "aten::mean",
            [[4, 8], [], [], []],
            [FLOAT, "ScalarList", SCALAR, ""],
            ["", "[-1]", "True", ""],
            "4,1",
            "FLOAT",
        ),
        ("aten::sum", [[4, 8], [], [], []], [FLOAT, "ScalarList", SCALAR, ""], ["", "[0]", "False", ""], "8", "FLOAT"),
        ("aten::sum", [[4, 8], [], [], []], [FLOAT, "ScalarList", SCALAR, ""], [], "", ""),  # axes not recorded
        ("aten::sum", [[4, 8], []], ["bool", ""], ["", ""], "", "INT64"),
        ("aten::_softmax", [[4, 8], [], []], [HALF, SCALAR, SCALAR], ["", "1", "True"], "4,8", "FLOAT"),
        ("aten::add_", [[4, 8], [8], []], [HALF, FLOAT, SCALAR], [], "4,8", "BF16"),
        ("aten::add", [[4, 8], [8], []], [HALF, FLOAT, SCALAR], [], "4,8", "FLOAT"),
        ("aten::mul", [[4, 8], []], [HALF, "double"], [], "4,8", "BF16"),
        ("aten::mul", [[4, 8], []], ["long int", "double"], [], "", ""),  # of a number that may be none
        ("aten::gt", [[4, 8], []], [HALF, SCALAR], [], "4,8", "BOOL"),
        ("aten::where", [[4, 1], [8], []], ["bool", HALF, HALF], [], "4,8", "BF16"),
        ("aten::gather", [[4, 8], [], [4, 1], []], [HALF, SCALAR, "long int", SCALAR], [], "4,1", "BF16"),
        ("aten::index_select", [[9, 8], [], [5]], [HALF, SCALAR, "long int"], ["", "0", ""], "5,8", "BF16"),
        ("aten::cat", [[[4, 8], [4, 2]], []], ["TensorList", SCALAR], ["", "-1"], "4,10", ""),
        (
            "aten::topk",
            [[4, 8], [], [], [], []],
            [FLOAT, SCALAR, SCALAR, SCALAR, SCALAR],
            ["", "2", "-1", "True", "True"],
            "4,2;4,2",
            "FLOAT;INT64",
        ),
        ("aten::topk", [[4, 8], [], [], [], []], [FLOAT, SCALAR, SCALAR, SCALAR, SCALAR], [], "", ""),
        ("aten::_grouped_mm", [[6, 8], [2, 8, 4], [2]], [HALF, HALF, "int"], [], "6,4", "BF16"),
        ("aten::_grouped_mm", [[8, 6], [6, 4], [2]], [HALF, HALF, "int"], [], "2,8,4", "BF16"),
        ("aten::_grouped_mm", [[8, 6], [6, 4]], [HALF, HALF], [], "", ""),
        # ResNet's first convolution, a dilated one, and one whose padding was not recorded.
        (
            "aten::cudnn_convolution",
            [[8, 3, 224, 224], [64, 3, 7, 7], [], [], [], []],
            [HALF, HALF, "ScalarList", "ScalarList", "ScalarList", SCALAR],
            ["", "", "[3, 3]", "[2, 2]", "[1, 1]", "1"],
            "8,64,112,112",
            "BF16",
        ),
        (
            "aten::miopen_convolution",
            [[8, 3, 64], [16, 3, 3], [16], [], [], []],
            [HALF, HALF, HALF, "ScalarList", "ScalarList", "ScalarList"],
            ["", "", "", "[2]", "[1]", "[2]"],
            "8,16,64",
            "BF16",
        ),
        ("aten::cudnn_convolution", [[8, 3, 9, 9], [4, 3, 3, 3], [], []], [HALF, HALF, "", ""], [], "", ""),
        *(
            (
                "aten::convolution_backward",
                [[8, 4, 9, 9], [8, 3, 9, 9], [4, 3, 3, 3], *[[]] * 8],
                [HALF, HALF, HALF, *["ScalarList"] * 8],
                ["", "", "", "[4]", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", asked],
                shape,
                dtype,
            )
            for asked, shape, dtype in (
                ("[True, True, False]", "8,3,9,9;4,3,3,3", "BF16;BF16"),
                ("[False, True, True]", "4,3,3,3", "BF16"),
                ("", "", ""),
            )
        ),
        ("aten::unheard_of", [[4, 8]], [HALF], [], "", ""),
    ],
)
def test_results(operator: str, shapes: object, types: object, values: object, shape: str, dtype: str) -> None:
    assert written(operator, shapes, types, (), values) == (shape, dtype)


@given(mutually_broadcastable_shapes(num_shapes=2, min_dims=1), st.sampled_from(["aten::mul", "aten::maximum"]))
def test_results_are_broadcast(shapes: object, operator: str) -> None:
    told, _ = written(operator, [list(shape) for shape in shapes.input_shapes], [FLOAT, FLOAT])  # type: ignore[attr-defined]
    assert told == ",".join(map(str, np.broadcast_shapes(*shapes.input_shapes)))  # type: ignore[attr-defined]


def test_what_is_only_repeated_is_read_once() -> None:
    texts = map(json.dumps, ([[4, 8], [4, 8]], [FLOAT, FLOAT], [[8, 1], [1, 0]]))
    told = tensors("aten::mul", *texts)
    assert (told.input_shapes, told.output_shapes) == ("4,8;4,1", "4,8")


def test_a_tensor_that_is_written_into_is_not_read() -> None:
    told = tensors("aten::clamp_min", "[[4, 8], [], [4, 8]]", '["float", "Int", "float"]')
    assert told.input_shapes == "4,8;" and told.output_shapes == "4,8"


def test_a_call_of_several_kernels_writes_once_and_joined_tensors_have_a_type(tmp_path: Path) -> None:
    made = Recording()
    inputs = {"Input Dims": [[4, 8]], "Input type": [HALF]}
    joined = {"Input Dims": [[[4, 8], [4, 8]], []], "Input type": ["TensorList", SCALAR], "Concrete Inputs": ["", "1"]}
    made.operator("aten::neg", 0, 10, 1, **inputs).call("cudaLaunchKernel", 1, 1, 1).call("cudaLaunchKernel", 3, 1, 2)
    made.task("prepare", 20, 1, 1, **{"External id": 1}).task("neg_kernel", 25, 9, 2, **{"External id": 1})
    made.operator("aten::cat", 12, 5, 3, **joined).call("cudaLaunchKernel", 13, 1, 3)
    made.task("CatArrayBatchedCopy", 40, 9, 3, **{"External id": 3})
    kernels = made.load(tmp_path).tables["kernels"].frame
    assert kernels["output_shapes"].tolist() == ["", "4,8", "4,16"]
    assert kernels["output_dtypes"].tolist() == ["", "BF16", "BF16"]
    assert kernels["input_dtypes"].tolist()[2] == "BF16;BF16"


def test_operators_on_lists_read_one_list_after_the_other() -> None:
    shapes = "[[[64, 32], [64]], [[64, 32], [64]], []]"
    read = tensors("aten::_foreach_lerp_", shapes, '["TensorList", "TensorList", "Scalar"]')
    assert read == Tensors("64,32;64;64,32;64", "", "64,32;64", "")
    assert tensors("aten::_foreach_norm", "[[[64, 32], [64]], [], []]", '["TensorList", "Scalar", ""]') == Tensors(
        "64,32;64", "", ";", ""
    )


def test_lists_take_the_type_of_what_wrote_their_largest_tensor() -> None:
    frame = pd.DataFrame(
        {
            "type": ["aten::mm", "aten::sum", "aten::_foreach_mul_", "aten::_foreach_mul_"],
            "stream": [7, 7, 7, 7],
            "start_ns": [0, 10, 20, 30],
            "input_shapes": ["64,8;8,32", "8,64", "64,32;64", ""],
            "input_dtypes": ["BF16;BF16", "FLOAT", "", ""],
            "output_shapes": ["64,32", "64", "64,32;64", ""],
            "output_dtypes": ["BF16", "FLOAT", "", ""],
        }
    )
    typed = with_types_of_lists(frame)
    assert typed["input_dtypes"].tolist()[2:] == typed["output_dtypes"].tolist()[2:] == ["BF16;BF16", ""]


def test_what_is_joined_of_joined_and_stacked_tensors_has_their_type() -> None:
    frame = pd.DataFrame(
        {
            "type": ["aten::neg", "aten::cat", "aten::cat"],
            "stream": [7, 7, 7],
            "start_ns": [0, 10, 20],
            "input_shapes": ["2,1,32", "2,1,32,1;2,1,32,1", "2,16,64;2,1,64"],
            "input_dtypes": ["BF16", "", ""],
            "output_shapes": ["2,1,32", "2,1,32,2", "2,17,64"],
            "output_dtypes": ["BF16", "", ""],
        }
    )
    frame.loc[1, "output_shapes"] = "2,1,64"
    assert with_types_of_lists(frame)["output_dtypes"].tolist() == ["BF16"] * 3
