"""Kernels as they are recorded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Operand:
    """A tensor that a kernel reads or writes. ``format``: of its memory, where that is none of plain arrays only."""

    storage: int
    shape: tuple[int, ...]
    dtype: str
    format: str = ""


@dataclass(frozen=True)
class Task:
    """A kernel: its type, the function of CANN that it belongs to, and its tensors. ``depth``: of a product, the length
    of the axis that is summed; of attention, how many keys a query sees, on average; of a convolution or one of its
    gradients, how many channels its input has. The type `READ` is none: the host waits for the device and reads a
    number."""

    type: str
    function: str
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    depth: int = 0


class UnknownOperatorError(Exception):
    """An operator whose kernels are not known."""
