"""Shapes and types of a kernel's tensors, as numbers. Every distinct text is read once."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import numpy as np
import pandas as pd

from advisor_core.facts.grouping import Groups

Shape = tuple[int, ...]

DTYPE_BYTES = {
    "FLOAT": 4, "FLOAT16": 2, "BF16": 2, "DOUBLE": 8, "INT64": 8, "UINT64": 8, "INT32": 4, "UINT32": 4, "INT16": 2,
    "UINT16": 2, "INT8": 1, "UINT8": 1, "BOOL": 1, "HIFLOAT8": 1, "FLOAT8_E5M2": 1, "FLOAT8_E4M3FN": 1,
    "COMPLEX64": 8, "COMPLEX128": 16,
}  # fmt: skip
"""Bytes per element; types that are not listed (INT4, UNDEFINED) have no known size."""

MOST_ELEMENTS = 1 << 40
"""No device holds a tensor of more elements: what claims to be one is damage, and would overflow what is derived."""

_T = TypeVar("_T")


@lru_cache(maxsize=1 << 16)
def shapes_of(text: str) -> tuple[Shape, ...]:
    """Shapes of the tensors in ``"32,3,224;64"``; an empty part is a scalar. Unreadable parts are empty shapes.

    >>> shapes_of("32,3;64;")
    ((32, 3), (64,), ())
    """
    if not text:
        return ()
    return tuple(_shape(part) for part in text.split(";"))


def _shape(part: str) -> Shape:
    try:
        shape = tuple(int(axis) for axis in part.split(",") if axis.strip())
    except ValueError:
        return ()
    return shape if min(shape, default=0) >= 0 and elements(shape) <= MOST_ELEMENTS else ()


def elements(shape: Shape) -> int:
    """Number of elements of a tensor of this shape; a scalar has one."""
    count = 1
    for axis in shape:
        count *= axis
    return count


@lru_cache(maxsize=1 << 16)
def tensor_bytes(shapes: str, dtypes: str) -> int:
    """Bytes of all tensors; -1 where a size is not known: the type, an unreadable shape, two lists that do not fit.

    One scalar is written as an empty text with a type. An optional input that is not given is an empty shape of type
    UNDEFINED and takes no bytes.

    >>> tensor_bytes("32,3;64", "FLOAT;BF16"), tensor_bytes("", "FLOAT"), tensor_bytes("8,4;", "BF16;UNDEFINED")
    (512, 4, 64)
    >>> tensor_bytes("8,4", "INT4"), tensor_bytes("8;8", "BF16"), tensor_bytes("", "")
    (-1, -1, 0)
    """
    types = dtypes.split(";") if dtypes else []
    texts = shapes.split(";") if shapes or types else []
    if len(types) != len(texts):
        return -1
    sizes = [_bytes(text.strip(), dtype) for text, dtype in zip(texts, types, strict=True)]
    return sum(sizes) if min(sizes, default=0) >= 0 else -1


def _bytes(text: str, dtype: str) -> int:
    shape = _shape(text)
    if text and not shape:
        return -1
    unknown = 0 if dtype == "UNDEFINED" and not text else -1
    return elements(shape) * DTYPE_BYTES[dtype] if dtype in DTYPE_BYTES else unknown


def per_text(column: pd.Series, function: Callable[[str], _T]) -> pd.Series:
    """``function`` of each text of a categorical column, called once per distinct text."""
    values = np.empty(len(column.array.categories) + 1, dtype=object)
    values[:-1] = [function(str(text)) for text in column.array.categories]
    return pd.Series(values[column.array.codes], index=column.index)


def moved_bytes(kernels: pd.DataFrame) -> pd.Series:
    """Bytes each kernel reads and writes at least: its inputs and outputs once; -1 where not known."""
    groups = Groups(kernels, ["input_shapes", "input_dtypes", "output_shapes", "output_dtypes"], sort=False)
    sizes = np.full(len(groups), -1, dtype=np.int64)
    for number, texts in enumerate(zip(*groups.keys().values(), strict=True)):
        in_shapes, in_types, out_shapes, out_types = map(str, texts)
        read, written = tensor_bytes(in_shapes, in_types), tensor_bytes(out_shapes, out_types)
        sizes[number] = read + written if min(read, written) >= 0 else -1
    found = np.full(len(kernels), -1, dtype=np.int64)
    found[groups.rows] = sizes[groups.codes]
    return pd.Series(found, index=kernels.index)
