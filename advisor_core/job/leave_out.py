"""The first step that the job leaves out: that of all ranks, where it warms up on any of them.

Ranks are compared by means of the same steps. Where one rank compiles in the first step, the others wait for it in
their collectives, which not every rank's recording tells. A step that is left out costs a rank that did not warm up
one of at least two steps; a step that only some ranks leave out makes ranks look slow or late that are not.

A rank that only waited long in its first step takes it that another one warmed up. Where all ranks of the job were
recorded with the calls of their hosts, and none of them did, the first step is one like the others: the rank that came
late had more to do, such as to load data, and the recording begins with no lead that hides it later on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FirstStep:
    """The first recorded step of a rank, by its id. ``steps``: how many were recorded. ``warms_up``: the rank alone
    tells that it does; ``waits``: because it waited for another one, no call of its own tells it. ``calls``: the calls
    of its host were recorded, which would tell it."""

    step: int
    steps: int
    warms_up: bool
    waits: bool = False
    calls: bool = True


def left_out(first: Mapping[int, FirstStep], world_size: int = 0) -> dict[int, int]:
    """Rank to the step that it leaves out because of another rank: those that do not tell it by themselves, began with
    the same step as one that does, and have others. ``world_size``: ranks of the job, 0 unknown."""
    stays = kept(first, world_size)
    warming = {one.step for rank, one in first.items() if one.warms_up and rank not in stays}
    return {rank: one.step for rank, one in first.items() if not one.warms_up and one.steps > 1 and one.step in warming}


def kept(first: Mapping[int, FirstStep], world_size: int) -> set[int]:
    """The ranks whose first step stays, though they take it to warm up: they waited in it, and none of the ranks that
    they could have waited for warms up. Not known, and so none, where a rank was not recorded, or not with the calls of
    its host, or for other steps."""
    waiting = {rank for rank, one in first.items() if one.warms_up and one.waits}
    known = 1 < world_size <= len(first) and all(one.calls for one in first.values())
    together = len({one.step for one in first.values()}) == 1
    warming = any(one.warms_up and not one.waits for one in first.values())
    return waiting if known and together and not warming else set()
