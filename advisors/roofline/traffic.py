"""What a kernel reads and writes at least: its tensors once, and of those of which it takes a part only that part."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from advisor_core.api.facts import DTYPE_BYTES, elements, shapes_of

_UNREAD = re.compile(r"zeros_?like|ones_?like|empty_?like|^fill|memset|aten::(zero|fill|ones)_?", re.I)
"""Kernels that write the shape of what they are given, and read nothing of it."""

_PART_READ = re.compile(
    r"gather|^index(?!.*(put|add|fill|copy))|aten::index(_select)?$|(?<!rotary)(?<!rotary_)embedding(?!.*(grad|backward))|slice(?!.*(grad|backward))"
    r"|as_?strided|^split|aten::take|lookup",
    re.I,
)
"""Kernels that take from their first tensor as much as they write."""

_PART_WRITTEN = re.compile(r"scatter|view_?copy|index_?(put|add|fill|copy)|inplace_?update|slice_?assign", re.I)
"""Kernels that write into a part of their first tensor, which is their result as well."""

_CACHE = re.compile(r"reshape.?and.?cache|store.?kv|kv.?cache|set.?kv", re.I)
"""Kernels that write new keys and values, their first two tensors, into a cache."""

_AXES = {"NC1HWC0": 5, "FRACTAL_Z": 5}
"""Most axes of a format: the exporter writes the mask of a pooling's gradient with a sixth, 140 times its size."""


@dataclass(frozen=True)
class Traffic:
    """Bytes of each tensor that is read and written: NaN unknown."""

    reads: tuple[float, ...]
    writes: tuple[float, ...]

    @property
    def read(self) -> float:
        """Bytes in all; NaN where one is unknown."""
        return sum(self.reads)

    @property
    def written(self) -> float:
        """Bytes in all; NaN where one is unknown."""
        return sum(self.writes)


def sizes(shapes: str, dtypes: str, formats: str) -> tuple[float, ...]:
    """Bytes of each tensor; NaN where its shape, its type or its format does not tell. What has neither shape nor a
    type of known size was not given.

    >>> sizes("32,3;64;", "FLOAT;BF16;UNDEFINED", "ND;ND;ND")
    (384.0, 128.0, 0.0)
    """
    if not shapes and not dtypes:
        return ()
    parts, texts = shapes_of(shapes) or ((),), shapes.split(";")
    types = dtypes.split(";")
    if len(types) != len(parts):
        return (float("nan"),)
    forms = [*formats.split(";"), *("" for _ in parts)]
    return tuple(_bytes(*tensor) for tensor in zip(parts, texts, types, forms, strict=False))


def _bytes(shape: tuple[int, ...], text: str, dtype: str, form: str) -> float:
    if not text.strip():
        return float(DTYPE_BYTES.get(dtype, 0))
    if not shape or dtype not in DTYPE_BYTES or len(shape) > _AXES.get(form.split(":")[0], len(shape)):
        return float("nan")
    return float(elements(shape) * DTYPE_BYTES[dtype])


def traffic_of(operator: str, reads: Sequence[float], writes: Sequence[float]) -> Traffic:
    """What a kernel of this type moves of tensors of these sizes. Where no results are recorded (traces of GPUs) they
    count nothing."""
    reads, writes = tuple(reads), tuple(writes)
    if _CACHE.search(operator):
        return Traffic(reads[:2], reads[:2]) if len(reads) > 1 else Traffic((float("nan"),), ())
    if _UNREAD.search(operator):
        return Traffic((), writes or reads[:1])
    if _PART_WRITTEN.search(operator) and len(reads) > 1:
        return Traffic(reads[1:], (min(max(reads[1:]), *writes[:1], reads[0]),))
    if _PART_READ.search(operator) and reads:
        taken = min(reads[0], sum(writes)) if writes else float("nan")
        return Traffic((taken, *reads[1:]), writes)
    return Traffic(reads, writes)
