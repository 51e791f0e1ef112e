"""The kernels of recorded operators, with the work that each is by its tensors."""

from __future__ import annotations

from math import prod
from typing import Literal

from ..kernels import (
    ConvolutionWork,
    DType,
    Kernel,
    MatMulWork,
    PoolingWork,
    Tensor,
    attention,
    grouped_matmul,
    matmul,
    vector,
)

_STRIDED = frozenset({"AsStrided", "StridedSlice", "TransData", "Transpose", "ViewCopy"})
_CUTTING = frozenset({"AsStrided", "BroadcastTo", "GatherV2", "GatherV3", "Index", "Slice", "StridedSlice"})
"""Kernels that read no more than they write."""

_WRITING = frozenset({"Fill", "OnesLike", "ZerosLike"})
"""Kernels that read nothing."""

_PUTTING = frozenset({"IndexPutV2", "InplaceIndexAdd", "ScatterNdUpdate"})
"""Kernels that put rows into a tensor that is there already: they read those rows and touch as many of it."""

_PUTTING_IN_PLACE = frozenset({"ScatterElementsV2"})
"""Kernels that do the same where their result is the first tensor that they read."""

_ADDING = frozenset({"IndexPutV2", "InplaceIndexAdd", "ScatterElementsV2"})
"""Those of them that add the rows to what is there."""


def kernel_of(type_: str, function: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], depth: int) -> Kernel:
    """A kernel of this type. ``depth``: of a product, the length of the axis that is summed; of attention, how many
    keys a query sees; of a convolution, the channels of its input."""
    if type_ == "MatMulV3":
        return matmul(function, inputs[0], inputs[1], outputs[0], depth)
    if type_ == "BatchMatMulV2":
        return _products(type_, function, inputs, outputs, depth)
    if type_ == "GroupedMatmul":
        *rows, columns = outputs[0].shape
        return grouped_matmul(function, inputs[0], inputs[1], outputs[0], prod(rows), columns, depth)
    if type_.startswith("FlashAttention"):
        return _attention(function, inputs, outputs, depth)
    if type_.startswith("Conv2D"):
        return _convolution(type_, function, inputs, outputs, depth)
    if type_.startswith("MaxPool"):
        return _pooling(type_, function, inputs, outputs)
    bytes_read, bytes_written = (sum(one.nbytes for one in tensors) for tensors in (inputs, outputs))
    if type_ in _WRITING:
        bytes_read = 0
    elif type_ in _CUTTING:
        bytes_read = min(bytes_read, bytes_written)
    elif type_ == "ViewCopy":
        bytes_written = bytes_read
    elif type_ in _PUTTING or (type_ in _PUTTING_IN_PLACE and inputs[0].storage is outputs[0].storage):
        changed = {id(one.storage) for one in outputs}
        bytes_read = bytes_written = sum(one.nbytes for one in inputs if id(one.storage) not in changed)
        bytes_read *= 2 if type_ in _ADDING else 1
    return vector(function, type_, inputs, outputs, strided=type_ in _STRIDED, read=bytes_read, write=bytes_written)


def _products(type_: str, function: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], depth: int) -> Kernel:
    """As many products as there are matrices in the result."""
    *matrices, rows, columns = outputs[0].shape
    single = inputs[0].dtype is DType.FP32
    work = MatMulWork(prod(matrices) * rows, columns, depth, False, not outputs[0].tail_aligned, single=single)
    return Kernel(f"{function}_{type_}_{type_}", type_, "AI_CORE", inputs, outputs, work)


def _attention(function: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], depth: int) -> Kernel:
    """Two products forward and five backward. A few queries wait for the keys and values, which all are read."""
    queries, keys, values = inputs[:3]
    *heads, positions, channels = queries.shape
    backward = function.endswith("Grad")
    flops = 4 * prod(heads) * positions * depth * channels
    read = keys.nbytes + values.nbytes if positions == 1 else 0
    flops = flops * 5 // 2 if backward else flops
    return attention(function, inputs, outputs, flops, backward=backward, read=read, channels=channels)


def _convolution(
    type_: str, function: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], channels: int
) -> Kernel:
    """A convolution of pictures by a weight, or one of its gradients, all in the formats of the cube. ``channels``: of
    the pictures that the convolution reads, without those that fill up a block."""
    backward = {"Conv2D": "forward", "Conv2DBackpropInput": "input", "Conv2DBackpropFilter": "filter"}
    pass_: Literal["forward", "input", "filter"] = backward[type_]  # type: ignore[assignment]
    weight, result = {
        "forward": (inputs[1], outputs[0]),
        "input": (inputs[0], inputs[1]),
        "filter": (outputs[0], inputs[1]),
    }[pass_]
    rows, _, _, block = weight.shape
    work = ConvolutionWork(
        pass_,
        2 * prod(result.shape) * rows * block,
        result.shape[0],
        sum(one.nbytes for one in (*inputs, *outputs)),
        narrow=2 * channels < block,
        single=result.dtype is DType.FP32,
    )
    return Kernel(f"{function}_{type_}_{type_}", type_, "AI_CORE", inputs, outputs, work)


def _pooling(type_: str, function: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> Kernel:
    """The maximum of windows of the pictures, which stand first, or its gradient."""
    pooled = inputs[0]
    work = PoolingWork(
        prod(pooled.shape), sum(one.nbytes for one in (*inputs, *outputs)), backward=type_ == "MaxPoolGradWithArgmaxV1"
    )
    return Kernel(f"{function}_{type_}AiCore_{type_}", type_, "AI_VECTOR_CORE", inputs, outputs, work)
