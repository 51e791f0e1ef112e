"""Matrix products as numbers: M, N and K from recorded shapes, what they cost and how they divide among cores."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from advisor_core.api.facts import (
    DTYPE_BYTES,
    Column,
    Facts,
    Shape,
    aggregated,
    elements,
    fact,
    matching,
    picked,
    shapes_of,
)
from advisors.step_kernels import StepKernels, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

_NOT_PLAIN = re.compile(r"Grouped|AllReduce|AllGather|ReduceScatter|AllToAll", re.I)
"""Products whose shapes do not tell M, N and K, and products that wait for other ranks inside."""

BASE_M = 128
BASE_N = (256, 128)
"""How the cube cores usually divide a product: blocks of 128 x 256, or 128 x 128
(docs/sources.md#blocks-of-a-product)."""

TILED = "FRACTAL_NZ"


@dataclass(frozen=True)
class Product:
    """``[m, k] x [k, n]``, ``batch`` times. ``left`` and ``right``: last axis of the operand as stored, and ``k`` if
    that is the axis summed over, ``m`` or ``n`` if not, '' if both are equally long. ``first``: place of the left
    operand among the inputs, 1 where what is added stands before it."""

    batch: int
    m: int
    n: int
    k: int
    left_tail: int
    right_tail: int
    left_axis: str
    right_axis: str
    first: int = 0

    @property
    def flops(self) -> int:
        return 2 * self.batch * self.m * self.n * self.k


@lru_cache(maxsize=1 << 16)
def product_of(input_shapes: str, input_formats: str, output_shapes: str) -> Product | None:
    """The product that a kernel computes; ``None`` where the shapes do not tell.

    Neither the export nor the shapes say which operand is transposed; but M and N are the last axes of the output,
    and K follows from the number of elements of an operand, however it is stored.

    >>> p = product_of("8192,50257;50257,2048", "ND;ND", "8192,2048")
    >>> p.m, p.n, p.k, p.left_axis, p.right_axis
    (8192, 2048, 50257, 'k', 'n')
    """
    inputs, outputs = shapes_of(input_shapes), shapes_of(output_shapes)
    formats = [*input_formats.split(";"), *("" for _ in inputs)]
    if not outputs or len(outputs[0]) < 2:
        return None
    pairs = (_product(first, inputs, formats, outputs[0]) for first in range(min(2, len(inputs) - 1)))
    return next((found for found in pairs if found is not None), None)


def _product(first: int, inputs: Sequence[Shape], formats: Sequence[str], out: Shape) -> Product | None:
    """The product of the inputs ``first`` and the one behind it."""
    left, right = inputs[first : first + 2]
    formats = formats[first:]
    if min(len(left), len(right)) < 2:
        return None
    n, batch = out[-1], 1
    if len(out) > 2 and len(right) > 2 and formats[1] != TILED and prod(right[:-2]) == prod(out[:-2]):
        batch = prod(out[:-2])
    if not n or not batch or not elements(out):
        return None
    m = elements(out) // n // batch
    from_left = _summed(left, batch * m) if formats[0] != TILED else None
    from_right = _summed(right, batch * n) if formats[1] != TILED else None
    k = from_left if from_left is not None else from_right
    if k is None or (from_right is not None and from_right != k):
        return None
    axes = _axis(left[-1], k, m, "m"), _axis(right[-1], k, n, "n")
    return Product(batch, m, n, k, left[-1], right[-1], *axes, first)


def grouped_of(input_shapes: str, output_shapes: str) -> tuple[int, int] | None:
    """FLOPs of one product per group, and how many groups there are; ``None`` where the shapes do not tell. Each row is
    in one group: as many operations as without groups, whatever their sizes.

    The rows are divided (``[rows, k] x [groups, k, n]``), or the sum (``[m, rows] x [rows, n]``, a result per group).

    >>> grouped_of("96,256;16,256,128;16", "96,128"), grouped_of("256,96;96,128;16", "16,256,128")
    ((6291456, 16), (6291456, 16))
    """
    inputs, outputs = shapes_of(input_shapes), shapes_of(output_shapes)
    if len(inputs) < 2 or len(outputs) != 1 or len(outputs[0]) < 2 or not elements(outputs[0]):
        return None
    left, right, out = inputs[0], inputs[1], outputs[0]
    n = out[-1]
    if len(out) > len(left):
        groups, per_group = out[0], elements(out) // out[0]
        summed = _summed(left, per_group // n)
        return None if summed is None or _summed(right, n) != summed else (2 * per_group * summed, groups)
    rows = elements(out) // n
    summed = _summed(left, rows)
    found = None if summed is None else _summed(right, n * summed)
    return None if summed is None or found is None else (2 * rows * n * summed, found)


def gathered_of(input_shapes: str, output_shapes: str) -> int | None:
    """FLOPs of a product that gathers its rows from other ranks before it or spreads its result over them behind it;
    ``None`` where the shapes do not tell.

    >>> gathered_of("512,1024;1024,256", "4096,256"), gathered_of("4096,1024;1024,256", "512,256")
    (2147483648, 2147483648)
    """
    inputs, outputs = shapes_of(input_shapes), shapes_of(output_shapes)
    if len(inputs) < 2 or not outputs or len(outputs[0]) < 2 or not elements(outputs[0]):
        return None
    n = outputs[0][-1]
    summed = _summed(inputs[1], n)
    rows = None if summed is None else _summed(inputs[0], summed)
    return None if summed is None or rows is None else 2 * n * summed * max(rows, elements(outputs[0]) // n)


def _summed(operand: Shape, others: int) -> int | None:
    k, rest = divmod(elements(operand), others)
    return k if k and not rest else None


def _axis(tail: int, k: int, other: int, name: str) -> str:
    if k == other:
        return ""
    return "k" if tail == k else name if tail == other else ""


def tiles(m: npt.ArrayLike, n: npt.ArrayLike, base_n: int, batch: npt.ArrayLike = 1) -> npt.NDArray[np.float64]:
    """Blocks of 128 x ``base_n`` that a product is divided into."""
    blocks = np.ceil(np.asarray(m) / BASE_M) * np.ceil(np.asarray(n) / base_n) * np.asarray(batch)
    return np.asarray(blocks, dtype=np.float64)


def balance(blocks: npt.ArrayLike, cores: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Which part of the cores' time is used when blocks of equal cost go round: blocks over rounds x cores."""
    blocks, cores = np.asarray(blocks, dtype=np.float64), np.asarray(cores, dtype=np.float64)
    return np.asarray(blocks / np.maximum(np.ceil(blocks / cores) * cores, 1), dtype=np.float64)


def best_balance(m: npt.ArrayLike, n: npt.ArrayLike, batch: npt.ArrayLike, cores: int) -> npt.NDArray[np.float64]:
    """`balance` with whichever of the two block sizes divides the product better."""
    return np.maximum(*(balance(tiles(m, n, base, batch), cores) for base in BASE_N))


def block_cost(
    m: npt.ArrayLike, n: npt.ArrayLike, batch: npt.ArrayLike, cores: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Blocks of products and what they cost, rounds x width of a block, with the cheaper of the two block sizes. All
    three one-dimensional and equally long."""
    counts = np.stack([tiles(m, n, base, batch) for base in BASE_N])
    costs = np.ceil(counts / cores) * np.array(BASE_N)[:, None]
    best, each = costs.argmin(axis=0), np.arange(counts.shape[1])
    return counts[best, each], costs[best, each]


COLUMNS = (
    Column("signature", "int", "", "as in the frame of step_kernels"),
    Column("operator", "text", "", "operator type"),
    Column("batch", "int", "count", "products in one kernel"),
    Column("m", "int", "count", "rows of the result"),
    Column("n", "int", "count", "columns of the result"),
    Column("k", "int", "count", "length of the sum"),
    Column("flops", "float", "FLOP", "operations of one kernel"),
    Column("dtype", "text", "", "dtype of the left operand"),
    Column("element_bytes", "int", "B", "of an element of the left operand, 0 unknown"),
    Column("left_shape", "text", "", "left operand as stored"),
    Column("right_shape", "text", "", "right operand as stored"),
    Column("left_tail", "int", "count", "last axis of the left operand"),
    Column("right_tail", "int", "count", "last axis of the right operand"),
    Column("left_axis", "text", "", "which axis that is: k, m, or '' where both are equally long"),
    Column("right_axis", "text", "", "which axis that is: k, n, or '' where both are equally long"),
    Column("left_format", "text", "", "format of the left operand"),
    Column("right_format", "text", "", "format of the right operand"),
    Column("left_bytes", "int", "B", "size of the left operand"),
    Column("right_bytes", "int", "B", "size of the right operand"),
    Column("kernels", "float", "count", "kernels per step"),
    Column("total_ns", "float", "ns", "time per step"),
    Column("mean_ns", "float", "ns", "mean duration"),
    Column("core", "text", "", "the kind of core that it runs on"),
    Column("block_dim", "float", "count", "logical blocks, median"),
)


@fact("matrix_products", needs=(step_kernels,), columns=COLUMNS)
def matrix_products(facts: Facts) -> pd.DataFrame:
    """The distinct matrix products of the steps, with M, N, K and what they take (see `products`)."""
    own = facts[step_kernels]
    if (own.frame["operator_class"] == "matmul").any():
        own.require_shapes()
    return products(own)


def products(own: StepKernels) -> pd.DataFrame:
    """One row per distinct product (``signature``) of the steps whose shapes tell what it computes."""
    frame = own.frame
    names = ["type", "input_shapes", "input_dtypes", "input_formats", "output_shapes"]
    plain = (frame["operator_class"] == "matmul").to_numpy() & ~matching(frame["type"], _NOT_PLAIN)
    mine = picked(frame, plain, ("signature", "duration_ns", "core", "block_dim", *names))
    mine = mine.assign(core=mine["core"].astype(object))
    totals = aggregated(
        mine,
        "signature",
        kernels=("duration_ns", "size"),
        total_ns=("duration_ns", "sum"),
        mean_ns=("duration_ns", "mean"),
        core=("core", "first"),
        block_dim=("block_dim", "median"),
    ).set_index("signature")
    firsts = mine.drop_duplicates("signature").set_index("signature")[names].astype(object)
    rows = [_row(int(signature), text) for signature, text in zip(firsts.index, firsts.to_dict("records"), strict=True)]
    told = pd.DataFrame([row for row in rows if row is not None], columns=_OF_SHAPES).set_index("signature")
    result = told.join(totals, how="left").reset_index()
    for name in ("kernels", "total_ns"):
        result[name] = result[name] / own.steps
    return result


_OF_SHAPES = tuple(column.name for column in COLUMNS[:19])
"""What the shapes of a product tell."""


def _row(signature: int, text: Mapping[Any, str]) -> dict[str, object] | None:
    found = product_of(text["input_shapes"], text["input_formats"], text["output_shapes"])
    if found is None:
        return None
    behind = slice(found.first, None)
    dtypes, formats = [*text["input_dtypes"].split(";"), ""][behind], [*text["input_formats"].split(";"), ""][behind]
    shapes = text["input_shapes"].split(";")[behind]
    sizes = [DTYPE_BYTES.get(dtype, 0) for dtype in dtypes[:2]]
    left, right = shapes_of(text["input_shapes"])[found.first : found.first + 2]
    return {
        "signature": signature,
        "operator": text["type"],
        "batch": found.batch,
        "m": found.m,
        "n": found.n,
        "k": found.k,
        "flops": float(found.flops),
        "dtype": dtypes[0],
        "element_bytes": sizes[0],
        "left_shape": shapes[0],
        "right_shape": shapes[1],
        "left_tail": found.left_tail,
        "right_tail": found.right_tail,
        "left_axis": found.left_axis,
        "right_axis": found.right_axis,
        "left_format": formats[0],
        "right_format": formats[1],
        "left_bytes": elements(left) * sizes[0],
        "right_bytes": elements(right) * sizes[1],
    }


FACTS = (matrix_products,)
