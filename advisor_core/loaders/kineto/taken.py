"""The rows that an operator takes by an index of which a trace has nothing.

Kineto records a list of indices that may be missing (``aten::index``) as neither shape nor type nor value, so nothing
of the call tells how many rows it takes. The kernels around it do: shortly before, some kernel wrote whole numbers, as
many as there are rows (an order of experts, places of tokens); shortly behind, a kernel reads a tensor of so many rows
of this length that nothing in between wrote. Where both hold for one number of rows, that is the result; else it stays
unknown.

Source: torch/csrc/profiler/collection.cpp of PyTorch (`InputOutputEncoder`): shapes of tensors and of lists of tensors
are kept, and those of lists of optional tensors are not; seen in traces of vLLM and SGLang
(inputs ``[[8192, 2880], []]``).
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from math import prod
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.loaders.kineto import words

Shape = tuple[int, ...]
Tensor = tuple[Shape, str]

BEFORE: Final = 16
"""So many kernels before the call are looked at for the index: routers count the rows of each expert in between."""

BEHIND: Final = 8
"""So many kernels behind it are looked at for what reads its result."""

_WHOLE: Final = ("INT64", "INT32")

_KINDS: Final = 1 << 16
"""Texts that are kept parsed."""


def with_rows_taken(frame: pd.DataFrame) -> pd.DataFrame:
    """Kernels with the result of what takes rows by an unrecorded index, and with that index among its inputs, where
    the kernels around it tell how many these are. Columns as of the table, as texts."""
    taking = {f"aten::{name}" for name in words.RESULTS["takes_rows"]}
    kinds = frame["type"].astype(str)
    rows = np.flatnonzero(
        (kinds.isin(taking) & (frame["output_shapes"] == "") & (frame["input_shapes"] != "")).to_numpy()
    )
    if not len(rows):
        return frame
    order = np.lexsort((frame["start_ns"].to_numpy(), frame["stream"].to_numpy()))
    streams = frame["stream"].to_numpy()[order]
    place_of = np.empty(len(order), dtype=np.int64)
    place_of[order] = np.arange(len(order))
    around = _Around(frame, order)
    told = {name: frame[name].to_numpy(dtype=object, copy=True) for name in _COLUMNS}
    # In order, so that what one took is known to the next.
    for place in np.sort(place_of[rows]).tolist():
        row = int(order[place])
        begin, end = max(place - BEFORE, 0), min(place + BEHIND + 1, len(order))
        near = streams[begin:end] == streams[place]
        first = begin + int(np.argmax(near))
        last = begin + int(len(near) - np.argmax(near[::-1]))
        source = around.read(place)
        if not source or len(source[0][0]) < 2:
            continue
        shape, dtype = source[0]
        count = _count(around, place, first, last, shape[1:], dtype)
        if count:
            result = ",".join(map(str, (count, *shape[1:])))
            told["input_shapes"][row] = f"{','.join(map(str, shape))};{count}"
            told["input_dtypes"][row] = f"{dtype};INT64"
            told["output_shapes"][row], told["output_dtypes"][row] = result, dtype
            around.wrote[place] = [((count, *shape[1:]), dtype)]
    return frame.assign(**told)


_COLUMNS: Final = ("input_shapes", "input_dtypes", "output_shapes", "output_dtypes")


class _Around:
    """The tensors that kernels read and write, by their place in the order of streams and time. ``wrote``: of those
    whose result was told since."""

    def __init__(self, frame: pd.DataFrame, order: np.ndarray) -> None:
        self._texts = {name: frame[name].to_numpy(dtype=object) for name in _COLUMNS}
        self._kinds = frame["type"].astype(str).to_numpy(dtype=object)
        self._order = order
        self.wrote: dict[int, list[Tensor]] = {}

    def kind(self, place: int) -> str:
        """The operator, without namespace and mark of what writes in place."""
        return str(self._kinds[self._order[place]]).removeprefix("aten::").rstrip("_")

    def read(self, place: int) -> list[Tensor]:
        """The tensors that it reads."""
        return self._side(place, "input")

    def written(self, place: int) -> list[Tensor]:
        """The tensors that it writes."""
        return self.wrote.get(place) or self._side(place, "output")

    def _side(self, place: int, side: str) -> list[Tensor]:
        row = self._order[place]
        return _tensors(str(self._texts[f"{side}_shapes"][row]), str(self._texts[f"{side}_dtypes"][row]))


@lru_cache(_KINDS)
def _tensors(shapes: str, dtypes: str) -> list[Tensor]:
    texts, kinds = shapes.split(";"), dtypes.split(";")
    if len(texts) != len(kinds):
        return []
    parsed = [tuple(int(axis) for axis in text.split(",")) if text else () for text in texts]
    return [(shape, kind) for shape, kind in zip(parsed, kinds, strict=True) if shape]


def _count(around: _Around, place: int, first: int, last: int, row: Shape, dtype: str) -> int:
    """The number of rows that the kernel at ``place`` takes; 0 where the kernels from ``first`` on, up to ``last``, do
    not tell it, or tell several."""
    length, counts = prod(row), set[int]()
    if length < 2:
        return 0
    for before in range(place - 1, first - 1, -1):
        if around.kind(before) in words.RESULTS["counts_by_numbers"]:
            break
        counts |= {prod(shape) for shape, kind in around.written(before) if kind in _WHOLE}
    written = Counter[int]()
    for behind in range(place + 1, last):
        read = Counter(prod(shape) for shape, kind in around.read(behind) if kind == dtype and shape[-1] == row[-1])
        told = [size // length for size in read if size % length == 0 and read[size] > written[size]]
        told = [count for count in told if count in counts and count > 1]
        if told:
            return told[0] if len(told) == 1 else 0
        written.update(prod(shape) for shape, kind in around.written(behind) if kind == dtype)
    return 0
