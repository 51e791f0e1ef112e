"""The forward and the backward pass among the kernels of a step, from types, shapes and repetition.

The backward pass begins with the first kernel that only it has: one whose type names a gradient, or the first products
that make the gradients of weights. A forward product of T rows, N columns and depth K has the weight gradient of N
rows, K columns and depth T. What repeats a long stretch of kernels of the first forward pass is forward again: the
next micro-batch, or activations that are computed again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isqrt
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisors.fusion.dataflow import Node

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

GRADIENT = re.compile(r"(?!Foreach|aten::_foreach).*(Grad|Backprop|backward|_bwd|dgrad|wgrad).*", re.I | re.S)
"""Words of Ascend's operator types and, behind them, of the kernels of PyTorch, cuDNN and Flash Attention for GPUs."""

PRODUCTS = ("matmul", "batched_matmul")
"""Operations of `computations.yaml`."""

HEAVY = ("matmul", "convolution", "attention")
"""Classes in the ledger of the kernels between which a network does little else."""

STRETCH = 12
"""So many kernels in a row, of the same types on the same tensors, do not occur in both passes by chance: no two layers
of the programs that were recorded share as many between forward and backward."""

FOLLOWING = 8
AMONG_FOLLOWING = 2
AT_ONCE = 2
"""So many of so many products make weight gradients where the backward pass begins; experts with few tokens have
products that look like one, but not in a row. The last product of the forward pass has its weight gradient ``AT_ONCE``:
in front of it stands the gradient of its input at most."""


def backward_kernels(nodes: Sequence[Node], signature: Ints) -> Bools:
    """Whether each kernel of a step is in the backward pass or behind it. ``nodes``: by signature; ``signature``: of
    the kernels of the step, in order."""
    stretches = _stretches(signature)
    begin = _begin(nodes, signature, stretches)
    backward = np.arange(len(signature)) >= begin
    # Behind the last product before the first weight gradient lie the loss and the gradient of the last norm, which
    # looks like that of the other norms.
    is_product = np.array([node.operation in PRODUCTS for node in nodes], dtype=np.bool_)
    products_before = np.flatnonzero(is_product[signature[:begin]])
    end = int(products_before[-1]) + 1 if len(products_before) else begin
    forward = stretches[: max(end - STRETCH + 1, 0)]
    repeats_forward = np.zeros(len(signature), dtype=np.bool_)
    repeats_forward[begin : begin + len(stretches[begin:])] = np.isin(stretches[begin:], forward)
    return backward & ~_in_stretches(repeats_forward)


def _in_stretches(begins: Bools) -> Bools:
    """The kernels of the stretches that begin at these."""
    covered = begins.copy()
    for place in range(1, STRETCH):
        covered[place:] |= begins[:-place]
    return covered


def _begin(nodes: Sequence[Node], signature: Ints, stretches: npt.NDArray[np.uint64]) -> int:
    is_gradient = np.array([bool(GRADIENT.fullmatch(node.operator)) for node in nodes], dtype=np.bool_)
    gradient_places = np.flatnonzero(is_gradient[signature])
    end = int(gradient_places[0]) if len(gradient_places) else len(signature)
    repeats_earlier = np.zeros(len(signature), dtype=np.bool_)
    if len(stretches):
        _, first_places, stretch_number = np.unique(stretches, return_index=True, return_inverse=True)
        repeats_earlier[: len(stretches)] = first_places[stretch_number] < np.arange(len(stretches))
    return min(end, _weight_gradients(nodes, signature[:end], _in_stretches(repeats_earlier)[:end], len(signature)))


def _weight_gradients(nodes: Sequence[Node], signature: Ints, repeated: Bools, kernels: int) -> int:
    """The first product that makes the gradient of a weight, among the kernels before the first one that names a
    gradient (``kernels``: of the whole step). ``repeated``: kernels that repeat a stretch of earlier ones, layers of
    the forward pass or activations that are computed again: they are not looked at."""
    sizes = [product_size(node) for node in nodes]
    is_product = np.array([size is not None for size in sizes], dtype=np.bool_)
    product_places = np.flatnonzero(is_product[signature])
    new_places = product_places[~repeated[product_places]]
    number_of_size: dict[tuple[int, int, int], int] = {}
    makes_gradient, follows_closely = [], []
    for number, place in enumerate(new_places.tolist()):
        size = sizes[int(signature[place])]
        assert size is not None
        rows, columns, depth = size
        written_as = number_of_size.get((depth, rows, columns), -1) if rows != depth else -1
        transposed = number_of_size.get((depth, columns, rows), -1) if depth not in (rows, columns) else -1
        makes_gradient.append(max(written_as, transposed) >= 0)
        follows_closely.append(max(written_as, transposed) >= max(number - AT_ONCE, 0))
        number_of_size[rows, columns, depth] = number
    for number, place in enumerate(new_places.tolist()):
        following = sum(makes_gradient[number : number + FOLLOWING])
        # Where a kernel that names a gradient comes next, one is enough if it is of the product just before: the
        # backward pass begins with what the forward pass ended with.
        ends_with = follows_closely[number] and len(signature) < kernels and number + FOLLOWING >= len(new_places)
        if makes_gradient[number] and (following >= AMONG_FOLLOWING or ends_with):
            before = product_places[product_places < place][-2:].tolist()
            last_sizes = [sizes[int(signature[product_place])] for product_place in before]
            return int(before[1]) if _is_input_gradient(last_sizes) and not repeated[before[1]] else int(place)
    # With as many tokens as channels the products of both passes have the same sizes: right before a kernel that names
    # a gradient stand those of the last product of the forward pass.
    if len(signature) < kernels:
        for distance in range(AT_ONCE, 0, -1):
            last_places = product_places[-distance - 1 :].tolist()
            last_sizes = [sizes[int(signature[product_place])] for product_place in last_places[:2]]
            if (
                len(last_places) == distance + 1
                and not repeated[last_places[1:]].any()
                and _is_input_gradient(last_sizes)
            ):
                return int(last_places[1])
    return len(signature)


def _is_input_gradient(sizes: Sequence[tuple[int, int, int] | None]) -> bool:
    """Whether the second of two products makes the gradient of the input of the first; ``sizes`` as of
    `product_size`."""
    if len(sizes) < 2 or sizes[0] is None or sizes[1] is None:
        return False
    rows, columns, depth = sizes[0]
    return sizes[1] == (rows, depth, columns) and columns != depth


def product_size(node: Node) -> tuple[int, int, int] | None:
    """Rows, columns and depth of a plain matrix product."""
    if node.operation != "matmul" or len(node.reads) < 2 or not node.writes:
        return None
    left, right, written = node.reads[0][1][0], node.reads[1][1][0], node.writes[0][1][0]
    depth = isqrt(left * right // written)
    if depth == 0 or depth * depth * written != left * right or left % depth or right % depth:
        return None
    return left // depth, right // depth, depth


def _stretches(signature: Ints) -> npt.NDArray[np.uint64]:
    """A number for every stretch of kernels; equal stretches have equal numbers."""
    if len(signature) < STRETCH:
        return np.zeros(0, dtype=np.uint64)
    weights = np.random.default_rng(0).integers(1, 1 << 63, STRETCH, dtype=np.uint64) | np.uint64(1)
    values = (signature.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    values ^= values >> np.uint64(29)
    windows = np.lib.stride_tricks.sliding_window_view(values, STRETCH)
    total = np.zeros(len(windows), dtype=np.uint64)
    for place in range(STRETCH):
        total += windows[:, place] * weights[place]
    return total
