"""Attentions that are written out: two batched products with a softmax between them, and what lies between."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from advisor_core.api.facts import elements, shapes_of
from advisors.layers.marks import Marks
from advisors.roofline.attention import attention_of
from advisors.step_kernels import StepKernels

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"


def written_out(kernels: StepKernels, marks: Marks, fused: npt.NDArray[np.bool_]) -> Ints:
    """The number of the written-out attention that each row of `StepKernels` is part of, -1: of none. From its first
    batched product to its last one, backward two on either side of the gradient of the softmax; ``fused``: rows that
    compute a whole attention by themselves.

    Source: advisors/layers/marks.py, which says what marks such a softmax and its products.
    """
    group = np.full(len(fused), -1, dtype=np.int64)
    marked = marks.attention & ~fused
    softmax = marked & marks.rare
    part = np.cumsum(kernels.breaks)
    places = np.flatnonzero(marked | (marks.heavy & ~fused))
    is_softmax, is_marked = softmax[places], marked[places]
    for number, at in enumerate(np.flatnonzero(is_softmax).tolist()):
        first, last = at, at
        while first > 0 and is_marked[first - 1] and not is_softmax[first - 1] and at - first < 2:
            first -= 1
        while last + 1 < len(places) and is_marked[last + 1] and not is_softmax[last + 1] and last - at < 2:
            last += 1
        span = np.arange(places[first], places[last] + 1)
        span = span[(group[span] < 0) & (part[span] == part[places[at]])]
        group[span] = number
    return group


def fused_size(operator: str, input_shapes: str, output_shapes: str) -> str:
    """Scores and channels of a fused attention: queries x keys x channels of all heads of the batch; '' where the
    shapes do not tell."""
    found = attention_of(operator, input_shapes, output_shapes)
    return "" if found is None else _words(found.queries, found.keys, found.batch * found.width)


def written_size(softmax_shapes: str, product_flops: float) -> str:
    """The same of a written-out attention: of the scores, which its softmax reads, and the operations of one product.

    >>> written_size("1,32,4096,4096", 2 * 32 * 4096 * 4096 * 128.0)
    '4096 x 4096 x 4096'
    """
    shapes = shapes_of(softmax_shapes)
    if not shapes or len(shapes[0]) < 2 or not elements(shapes[0]) or not product_flops > 0:
        return ""
    queries, keys = shapes[0][-2:]
    return _words(queries, keys, round(product_flops / (2 * queries * keys)))


def _words(queries: int, keys: int, channels: int) -> str:
    return f"{queries} x {keys} x {channels}"
