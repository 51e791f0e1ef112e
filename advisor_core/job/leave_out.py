"""Which first step the job leaves out: that of all ranks, where it warms up on any of them.

Ranks are compared by means of the same steps. Where one rank compiles in the first step, the others wait for it in
their collectives, which not every rank's recording tells. A step that is left out costs a rank that did not warm up
one of at least two steps; a step that only some ranks leave out makes ranks look slow or late that are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FirstStep:
    """The first recorded step of a rank, by its id. ``steps``: how many were recorded. ``warms_up``: the rank alone
    tells that it does."""

    step: int
    steps: int
    warms_up: bool


def left_out(first: Mapping[int, FirstStep]) -> dict[int, int]:
    """Rank to the step that it leaves out because of another rank: those that do not tell it by themselves, began with
    the same step as one that does, and have others."""
    warming = {one.step for one in first.values() if one.warms_up}
    return {rank: one.step for rank, one in first.items() if not one.warms_up and one.steps > 1 and one.step in warming}
