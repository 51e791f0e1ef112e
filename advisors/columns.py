"""Columns that many advisors measure, declared once."""

from __future__ import annotations

from advisor_core.api.advisors import Column

STEP_NS = Column("step_ns", "float", "ns", "mean wall time of a step")


def shares(part: str) -> tuple[Column, Column]:
    """What the times of the column ``part`` are of a step."""
    return (
        Column("share_of_step", "float", "ratio", f"{part} over the step"),
        Column("share_of_computing", "float", "ratio", f"{part} over the kernel time of the step"),
    )
