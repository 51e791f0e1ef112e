"""Names of columns as headings."""

from __future__ import annotations

_REPEATED = ("ns", "us", "ms", "bytes")


def heading_key(name: str, unit: str | None) -> str:
    """The name without an ending that repeats the unit, which stands with each value.

    >>> heading_key("idle_ns", "ns"), heading_key("size_bytes", "bytes"), heading_key("tail_bytes", "B")
    ('idle', 'size', 'tail_bytes')
    """
    return name.removesuffix(f"_{unit}") if unit in _REPEATED else name
