"""Kernels of recorded operators."""

from __future__ import annotations

from math import prod

import pytest

from advisor_core.sample.models.recorded import READ
from tests.programs.recording.calls import READ_BACK, Call, Seen
from tests.programs.recording.kernels import Kernels, UnknownOperatorError


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


def test_a_convolution_converts_what_it_reads_and_writes() -> None:
    pixels, weight, result = tensor(2, 3, 8, 8), tensor(5, 3, 4, 4), tensor(2, 5, 2, 2)
    assert types("convolution", pixels, weight, writes=result) == ["TransData", "TransData", "Conv2D", "TransData"]
    call = Call(
        "aten::convolution_backward", "", "backward", "", 1, (result, pixels, weight), (weight, tensor(5)), False
    )
    assert [task.type for task in Kernels(100).of(call)] == [
        "TransData",
        "TransData",
        "Conv2DBackpropFilter",
        "TransData",
        "ReduceSum",
    ]


def test_attention_knows_how_many_keys_a_query_sees() -> None:
    def depth(queries: int, keys: int, overload: str) -> int:
        reads = (tensor(1, 2, queries, 4), tensor(1, 2, keys, 4), tensor(1, 2, keys, 4))
        call = Call("npu::npu_fusion_attention", overload, "forward", "", 1, reads, (tensor(1, 2, queries, 4),), False)
        (task,) = Kernels(100).of(call)
        return task.depth

    assert (depth(8, 8, "causal"), depth(8, 8, ""), depth(1, 8, "causal")) == (4, 8, 8)
