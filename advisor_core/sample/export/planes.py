"""The steps of a collective on its planes, as exports describe them."""

from __future__ import annotations

from dataclasses import dataclass

from ..timeline import Collective, PlaneTask
from .values import collective_dtype

INVALID = "INVALID_TYPE"
HARDWARE_NAMES = {
    "Memcpy": "SDMA",
    "Reduce_Inline": "SDMA",
    "Notify_Record": "Write Value",
    "Notify_Wait": "Notify Wait",
}
"""The hardware's name of the task that carries a step out."""


@dataclass(frozen=True, slots=True)
class PlaneStep:
    """A step; ``notify`` is missing for a copy."""

    notify: int | None
    transport: str
    dtype: str
    link: str


def plane_step(collective: Collective, part: PlaneTask) -> PlaneStep:
    """The description of one step of a collective."""
    dtype = INVALID
    if part.kind == "Reduce_Inline":
        dtype = collective_dtype(collective) if part.plane else "INT32"
    notify = {"Memcpy": None, "Reduce_Inline": 0}.get(part.kind, 88 + 4 * part.plane)
    link = (collective.group.transport if part.plane else "ON_CHIP") if part.nbytes > 0 else INVALID
    return PlaneStep(notify, "LOCAL" if part.kind == "Notify_Wait" else "SDMA", dtype, link)
