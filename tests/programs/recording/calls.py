"""Records of operator calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

READ_BACK: Final = "aten::_local_scalar_dense"
"""The operator that reads a number back: the host waits for the device."""


@dataclass(frozen=True)
class Seen:
    """A tensor as an operator sees it. ``storage``: its memory, by number; ``strides`` in elements. ``whole``: the
    shape of the first tensor in this memory."""

    storage: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    whole: tuple[int, ...]


@dataclass(frozen=True)
class Call:
    """An operator call. ``phase``: forward, backward or optimizer; ``node``: of autograd, in the backward pass, with
    its ``sequence``, which the forward operator has as well. ``view``: nothing is computed."""

    name: str
    overload: str
    phase: str
    node: str
    sequence: int
    reads: tuple[Seen, ...]
    writes: tuple[Seen, ...]
    view: bool
