"""The first tensor of a kernel, from what the export lists."""

from __future__ import annotations

from advisor_core.api.facts import elements, shapes_of


def first_dtype(text: str) -> str:
    """The dtype of the first tensor."""
    return text.split(";", 1)[0]


def first_elements(text: str) -> int:
    """How many elements the first tensor has; 0 where none is recorded."""
    shapes = shapes_of(text)
    return elements(shapes[0]) if shapes else 0


def first_tail(text: str) -> int:
    """The last axis of the first tensor; 0 for a scalar or where none is recorded."""
    shapes = shapes_of(text)
    return shapes[0][-1] if shapes and shapes[0] else 0
