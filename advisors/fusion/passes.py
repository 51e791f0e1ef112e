"""Which kernels of a step belong to the forward pass and which to the backward pass, from types, shapes and repetition.

The backward pass begins with the first kernel that only it has: one whose type names a gradient, or the first products
that make the gradients of weights. A forward product of T rows, N columns and depth K has the weight gradient of N
rows, K columns and depth T. What repeats a long stretch of kernels of the first forward pass is forward again: the
next micro-batch, or activations that are computed again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isqrt

import numpy as np
import numpy.typing as npt

from advisors.fusion.dataflow import Node

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

GRADIENT = re.compile(r"(?!Foreach).*(Grad|Backprop).*", re.I)

STRETCH = 12
"""So many kernels in a row, of the same types on the same tensors, do not occur in both passes by chance: no two layers
of the programs that were recorded share as many between forward and backward."""

FOLLOWING = 8
AMONG_FOLLOWING = 2
"""So many of so many products make weight gradients where the backward pass begins; experts with few tokens have
products that look like one, but not in a row."""


def backward_kernels(nodes: Sequence[Node], signature: Ints) -> Bools:
    """Whether each kernel of a step is in the backward pass or behind it. ``nodes``: by signature; ``signature``: of
    the kernels of the step, in order."""
    begin = _begin(nodes, signature)
    backward = np.arange(len(signature)) >= begin
    stretches = _stretches(signature)
    forward = stretches[: max(begin - STRETCH + 1, 0)]
    again = begin + np.flatnonzero(np.isin(stretches[begin:], forward))
    for place in range(STRETCH):
        backward[again + place] = False
    return backward


def _begin(nodes: Sequence[Node], signature: Ints) -> int:
    gradient = np.array([bool(GRADIENT.fullmatch(node.operator)) for node in nodes], dtype=np.bool_)
    first = np.flatnonzero(gradient[signature])
    end = int(first[0]) if len(first) else len(signature)
    return min(end, _weight_gradients(nodes, signature[:end]))


def _weight_gradients(nodes: Sequence[Node], signature: Ints) -> int:
    sizes = [_product(node) for node in nodes]
    product = np.array([size is not None for size in sizes], dtype=np.bool_)
    places = np.flatnonzero(product[signature])
    seen: set[tuple[int, int, int]] = set()
    makes = []
    for place in places.tolist():
        size = sizes[int(signature[place])]
        assert size is not None
        rows, columns, depth = size
        written_as = (depth, rows, columns) in seen and rows != depth
        turned = (depth, columns, rows) in seen and depth not in (rows, columns)
        makes.append(written_as or turned)
        seen.add((rows, columns, depth))
    for number, place in enumerate(places.tolist()):
        if makes[number] and sum(makes[number : number + FOLLOWING]) >= AMONG_FOLLOWING:
            return place
    return len(signature)


def _product(node: Node) -> tuple[int, int, int] | None:
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
