"""Values that both exports write in the same words."""

from __future__ import annotations

from collections.abc import Iterable

from ..kernels import Kernel, Tensor
from ..timeline import Collective, HostSpan

LINE = ";\r\n"
"""Between the arguments of an operator, and the frames of a call stack in the trace."""
MARK_DOMAIN = "default"
"""The domain of marks that name none."""
SOURCE_ROOT = "/train/"
"""The folder of the simulated training code; call stacks show full paths, spans relative ones."""


def quoted(parts: Iterable[str]) -> str:
    """Shapes of several tensors: joined by semicolons, in quotes that are part of the value."""
    return '"' + ";".join(parts) + '"'


def shape_text(tensor: Tensor) -> str:
    """One shape; empty for a scalar."""
    return ",".join(map(str, tensor.shape))


def tensor_texts(kernel: Kernel) -> list[tuple[str, str, str]]:
    """Shapes, data types and formats of the inputs, and of the outputs, of a kernel."""
    return [
        (
            quoted(map(shape_text, tensors)),
            ";".join(tensor.dtype.device_name for tensor in tensors),
            ";".join(tensor.fmt for tensor in tensors),
        )
        for tensors in (kernel.inputs, kernel.outputs)
    ]


def argument_shapes(span: HostSpan, separator: str) -> str:
    """The ``Input Dims`` of an operator: tensors first, then nothing for each scalar argument."""
    return separator.join([*map(shape_text, span.inputs), *[""] * span.scalars])


def argument_types(span: HostSpan, separator: str) -> str:
    """The ``Input type`` of an operator."""
    return separator.join([*(tensor.dtype.host_name for tensor in span.inputs), *["Scalar"] * span.scalars])


def frames(span: HostSpan) -> list[str]:
    """The Python frames of an operator, innermost first, with full paths."""
    return [SOURCE_ROOT + frame for frame in reversed(span.frames)]


def collective_dtype(collective: Collective) -> str:
    """The element type of a collective, as communication tables name it."""
    return {"DT_BF16": "BFP16", "FLOAT": "FP32", "INT64": "INT64"}[collective.data.dtype.device_name]
