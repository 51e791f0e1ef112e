"""Kernels of recorded operators."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from advisor_core.sample.models.recorded import COMMUNICATION, READ
from tests.programs.recording.calls import READ_BACK, Call, Seen
from tests.programs.recording.formats import blocked, packed
from tests.programs.recording.kernels import Kernels
from tests.programs.recording.tasks import UnknownOperatorError


def tensor(
    *shape: int, strides: tuple[int, ...] | None = None, dtype: str = "bfloat16", whole: tuple[int, ...] | None = None
) -> Seen:
    if strides is None:
        strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return Seen(0, shape, strides, dtype, whole or shape)


def types(name: str, *reads: Seen, writes: Seen, view: bool = False, overload: str = "") -> list[str]:
    call = Call(f"aten::{name}", overload, "forward", "", 1, reads, (writes,), view)
    return [task.type for task in Kernels(100).of(call)]


@pytest.mark.parametrize(
    ("read", "copy"),
    [
        (tensor(4, 6), []),
        (tensor(6, 4, strides=(1, 6)), ["Transpose"]),
        (tensor(4, 3, strides=(6, 1), whole=(4, 6)), ["Slice"]),
        (tensor(4, 3, strides=(6, 2), whole=(4, 6)), ["StridedSlice"]),
        (tensor(2, 4, 3, strides=(6, 12, 1), whole=(4, 2, 6)), ["AsStrided"]),
        (tensor(4, 6, strides=(0, 1), whole=(6,)), ["BroadcastTo"]),
    ],
)
def test_a_view_is_copied_before_the_kernel(read: Seen, copy: list[str]) -> None:
    assert types("neg", read, writes=tensor(*read.shape)) == [*copy, "Neg"]


def test_products_read_a_transposed_matrix_as_it_is() -> None:
    weight = tensor(6, 8, strides=(1, 6))
    call = Call("aten::mm", "", "forward", "", 1, (tensor(4, 6), weight), (tensor(4, 8),), False)
    (task,) = Kernels(100).of(call)
    assert task.type == "MatMulV3" and task.depth == 6
    assert [part.shape for part in task.reads] == [(4, 6), (8, 6)]


def test_operands_of_another_type_are_cast() -> None:
    assert types("mul", tensor(4), tensor(4, dtype="float32"), writes=tensor(4, dtype="float32")) == ["Cast", "Mul"]
    assert types("mul", tensor(4), writes=tensor(4)) == ["Muls"]


def test_copies_and_conversions() -> None:
    half = tensor(4, 3, strides=(6, 1), whole=(4, 6))
    assert types("_to_copy", tensor(4), writes=tensor(4, dtype="float32")) == ["Cast"]
    assert types("clone", tensor(4), writes=tensor(4)) == ["TensorMove"]
    assert types("copy_", half, tensor(4, 3), writes=half) == ["ViewCopy"]
    assert types("slice_backward", tensor(4, 3), writes=tensor(4, 6)) == ["ZerosLike", "ViewCopy"]
    assert types("view", tensor(4), writes=tensor(4), view=True) == []
    with pytest.raises(UnknownOperatorError, match="aten::fft"):
        types("fft", tensor(4), writes=tensor(4))


def test_lists_of_tensors_are_one_kernel() -> None:
    lists = (tensor(4), tensor(5), tensor(4), tensor(5))
    assert types("_foreach_add_", *lists, writes=tensor(4), overload="List") == ["ForeachAddList"]


def test_a_number_that_is_read_back_is_no_kernel() -> None:
    call = Call(READ_BACK, "", "forward", "", -1, (tensor(dtype="bool"),), (), False)
    assert [(task.type, task.function) for task in Kernels(100).of(call)] == [(READ, "")]
    assert types("nonzero", tensor(4, 6), writes=tensor(9, 2, dtype="int64")) == ["NonZero", READ]


def test_places_are_int32_until_they_are_cast() -> None:
    call = Call("aten::topk", "", "forward", "", 1, (tensor(4, 9),), (tensor(4, 2), tensor(4, 2, dtype="int64")), False)
    kernel, cast = Kernels(100).of(call)
    assert (kernel.type, cast.type) == ("TopKV2", "Cast")
    assert cast.reads == (kernel.writes[1],) and cast.reads[0].dtype == "int32"


def convolution(keeps_format: bool, *gradients: Seen) -> list[str]:
    pixels, weight, result = (
        replace(tensor(*shape), storage=place) for place, shape in enumerate([(2, 3, 8, 8), (5, 3, 4, 4), (2, 5, 2, 2)])
    )
    kernels = Kernels(100, keeps_format=keeps_format)
    forward = Call("aten::convolution", "", "forward", "", 1, (pixels, weight), (result,), False)
    back = Call("aten::convolution_backward", "", "backward", "", 1, (result, pixels, weight), gradients, False)
    return [task.type for call in (forward, back) for task in kernels.of(call)]


def test_a_convolution_converts_what_it_reads_and_writes() -> None:
    """The gradient of the weight is computed by itself and converts its operands again."""
    dw, bias = replace(tensor(5, 3, 4, 4), storage=4), replace(tensor(5), storage=5)
    forward = ["TransData", "TransData", "Conv2D", "TransData"]
    of_weight = ["TransData", "TransData", "Conv2DBackpropFilter", "TransData", "ReduceSum"]
    of_input = ["TransData", "TransData", "Conv2DBackpropInput", "TransData"]
    assert convolution(False, dw, bias) == [*forward, *of_weight]
    dx = replace(tensor(2, 3, 8, 8), storage=3)
    assert convolution(False, dx, dw, bias) == [*forward, *of_input, *of_weight]


def test_pictures_in_the_format_of_the_cube_are_not_converted_again() -> None:
    """But for the pixels that nothing has converted yet, which both passes read."""
    dx, dw = replace(tensor(2, 3, 8, 8), storage=3), replace(tensor(5, 3, 4, 4), storage=4)
    assert convolution(True, dx, dw) == [
        "TransData",
        "Conv2D",
        "Conv2DBackpropInput",
        "TransData",
        "Conv2DBackpropFilter",
    ]


def test_shapes_of_the_formats_of_the_cube() -> None:
    """As in the recorded AlexNet job: FP32 in blocks of 8."""
    assert blocked((32, 3, 224, 224), "float32") == (32, 1, 224, 224, 8)
    assert packed((64, 3, 11, 11), "float32") == (121, 4, 16, 8)
    assert packed((256, 256, 3, 3), "float32") == (288, 16, 16, 8)


def test_attention_knows_how_many_keys_a_query_sees() -> None:
    def depth(queries: int, keys: int, overload: str) -> int:
        reads = (tensor(1, 2, queries, 4), tensor(1, 2, keys, 4), tensor(1, 2, keys, 4))
        call = Call("npu::npu_fusion_attention", overload, "forward", "", 1, reads, (tensor(1, 2, queries, 4),), False)
        (task,) = Kernels(100).of(call)
        return task.depth

    assert (depth(8, 8, "causal"), depth(8, 8, ""), depth(1, 8, "causal")) == (4, 8, 8)


def test_transfers_are_marked_and_functional_ones_reduce_a_copy() -> None:
    source, result = tensor(4, 6), replace(tensor(4, 6), storage=1)

    def marks(name: str, target: Seen) -> list[tuple[str, int, int]]:
        call = Call(name, "", "forward", "", 1, (source,), (target,), False)
        return [(task.type, task.reads[0].storage, task.writes[0].storage) for task in Kernels(100).of(call)]

    copy, mark = marks("_c10d_functional::all_reduce", result)
    assert copy == ("TensorMove", 0, 1) and mark == (f"{COMMUNICATION}allReduce", 1, 1)
    assert marks("_c10d_functional::all_gather_into_tensor", result) == [(f"{COMMUNICATION}allGather", 0, 1)]
    assert marks("c10d::allreduce_", source) == [(f"{COMMUNICATION}allReduce", 0, 0)]
