"""Cross-rank waits: which rank arrived last in a collective, from the same call on all ranks.

All ranks of a collective end together. The one for which it is shortest therefore arrived last, and every other waited
for it as much longer as its own part took; what the last one sees is the transfer. Durations are compared, not points
in time, so that the clocks of different hosts need not agree. It takes every rank of the group.

Where the planes of a rank say whom it waits for they are believed. Where they were not recorded (level 0) the rank
alone cannot tell waiting from transfer; with this comparison it can, before any rule sees its ledger.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from advisor_core.facts.communication.cross_rank_waits import NO_WAITS
from advisor_core.facts.communication.state import POINT_TO_POINT

_KEY = ["group", "ranks", "index", "name", "occurrence"]
_UNEVEN = "alltoallv"
"""Each rank is done when it has what is meant for it, which is not as much for all of them: the shortest need not be
the last to arrive."""

COMPARED = (
    *("work", "group", "ranks", "index", "name", "operation", "step"),
    *("members", "elapse_ns", "uncovered_ns"),
)
"""The columns of the fact ``recorded_calls`` that the comparison reads: what crosses from a rank to the job."""


def settle(calls: Mapping[int, pd.DataFrame], world_size: int) -> dict[int, pd.DataFrame]:
    """Rank to its ``cross_rank_waits`` (see `advisor_core.facts.communication.cross_rank_waits`). ``calls``: rank to
    the columns `COMPARED` of its collectives. ``world_size``: ranks of the job, 0 where no rank has it recorded."""
    if len(calls) < 2:
        return dict.fromkeys(calls, NO_WAITS)
    parts = [
        frame.assign(rank=rank, occurrence=frame.groupby(["group", "ranks", "index", "name"]).cumcount())
        for rank, frame in calls.items()
    ]
    every = pd.concat(parts, ignore_index=True)
    groups = every.groupby(_KEY)
    members = groups["members"].transform("max")
    expected = members.where(members > 0, world_size)
    complete = (
        (every["step"] >= 0)
        & ~every["operation"].str.contains(POINT_TO_POINT)
        & (every["operation"].str.lower() != _UNEVEN)
        & (expected > 1)
        & (groups["rank"].transform("nunique") == expected)
    )
    shortest = groups["elapse_ns"].transform("min")
    # Of several that are equally short the lowest rank is named, so that the answer never depends on the order.
    first = every[every["elapse_ns"] == shortest].groupby(_KEY)["rank"].min().rename("last_rank")
    every["last_rank"] = every[_KEY].join(first, on=_KEY)["last_rank"]
    every["waited_ns"] = (every["elapse_ns"] - shortest).clip(upper=every["uncovered_ns"])
    compared = every[complete]
    return {
        rank: compared.loc[compared["rank"] == rank, list(NO_WAITS)].astype("int64").reset_index(drop=True)
        for rank in calls
    }
