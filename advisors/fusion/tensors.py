"""The tensors that kernels read and write: what a fused kernel moves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advisor_core.api.facts import DTYPE_BYTES, Shape, elements, shapes_of

CREATING = re.compile(r"ZerosLike|OnesLike|Fill", re.I)
"""Kernels that read nothing: what the export lists as input only gives the shape."""


@dataclass(frozen=True)
class Tensors:
    """Shape and bytes of each tensor that a kernel reads and writes; -1 bytes where the dtype has no known size."""

    inputs: tuple[tuple[Shape, int], ...]
    outputs: tuple[tuple[Shape, int], ...]


def tensors_of(kernel: Mapping[Any, object]) -> Tensors:
    """The tensors of a row of ``kernels``."""
    read, written = (
        _side(str(kernel[f"{side}_shapes"]), str(kernel[f"{side}_dtypes"])) for side in ("input", "output")
    )
    return Tensors(() if CREATING.fullmatch(str(kernel["type"])) else read, written)


def _side(shapes: str, dtypes: str) -> tuple[tuple[Shape, int], ...]:
    parsed_shapes, types = shapes_of(shapes), dtypes.split(";")
    sizes = (
        [DTYPE_BYTES.get(name, -1) for name in types] if len(types) == len(parsed_shapes) else [-1] * len(parsed_shapes)
    )
    return tuple((shape, _bytes(shape, size)) for shape, size in zip(parsed_shapes, sizes, strict=True))


def _bytes(shape: Shape, size: int) -> int:
    if size > 0:
        return elements(shape) * size
    # A scalar, or an optional input that was not given (recorded as an empty shape of undefined type).
    return 0 if elements(shape) == 1 else -1


def traffic(chain: Sequence[Tensors], passes: float, *, wide: bool, appends: bool = False) -> int:
    """Bytes that a fused kernel moves for the chain; -1 where not known. ``passes``: multiples of the largest tensor of
    the chain; as it stands outside of the chain, that is in its narrowest dtype, unless it is ``wide``. 0: the inputs
    of the chain and its last output, each once; or, where it ``appends`` a tensor to another of as many axes, that
    tensor, read and written."""
    # What goes on with the call of the kernel before has no tensors of its own.
    last_outputs = next((kernel.outputs for kernel in reversed(chain) if kernel.inputs or kernel.outputs), ())
    if any(size < 0 for _, size in last_outputs) or not last_outputs:
        return -1
    if appends:
        most_axes = max(len(shape) for shape, _ in last_outputs)
        return 2 * min((size for shape, size in chain[-1].inputs if len(shape) == most_axes), default=-1)
    if passes:
        return int(passes * _largest(chain, wide=wide))
    total, written_sizes, counted = sum(size for _, size in last_outputs), set[int](), set[Shape]()
    for kernel in chain:
        for shape, size in kernel.inputs:
            if shape in counted or (elements(shape) in written_sizes and elements(shape) > 1):
                continue
            if size < 0:
                return -1
            counted.add(shape)
            total += size
        written_sizes |= {elements(shape) for shape, _ in kernel.outputs}
    return total


def _largest(chain: Sequence[Tensors], *, wide: bool) -> int:
    """Bytes of the largest tensor that the chain writes (of a list of tensors, all of them)."""
    if wide:
        return max(sum(max(size, 0) for _, size in kernel.outputs) for kernel in chain)
    sizes = [tensor for kernel in chain for tensor in (*kernel.inputs, *kernel.outputs) if tensor[1] > 0]
    most_elements = max((elements(shape) for kernel in chain for shape, size in kernel.outputs if size > 0), default=0)
    return min((size for shape, size in sizes if elements(shape) == most_elements), default=0)
