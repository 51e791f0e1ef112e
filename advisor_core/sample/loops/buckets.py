"""Gradients that are reduced together, as they become ready."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Gradient = TypeVar("Gradient")
"""A gradient, or its name."""


class Filling(Generic[Gradient]):
    """Buffers of ``nbytes`` that fill up with gradients, one for each kind: those that the same ranks reduce, in one
    type of element."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes = nbytes
        self._open: dict[Hashable, list[Gradient]] = {}
        self._filled: dict[Hashable, int] = {}

    def add(self, kind: Hashable, gradient: Gradient, nbytes: int) -> list[tuple[Gradient, ...]]:
        """Put a gradient into its buffer; what is in the buffer if that is now full."""
        self._open.setdefault(kind, []).append(gradient)
        self._filled[kind] = self._filled.get(kind, 0) + nbytes
        if self._filled[kind] < self._nbytes:
            return []
        del self._filled[kind]
        return [tuple(self._open.pop(kind))]

    def close(self) -> list[tuple[Gradient, ...]]:
        """The content of the buffers that have not been full."""
        rest = [tuple(gradients) for gradients in self._open.values()]
        self._open.clear()
        self._filled.clear()
        return rest
