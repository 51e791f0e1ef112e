"""Cross-rank waits: which rank arrived last in a collective, from the same call on all ranks.

All ranks of a collective end together. The one for which it is shortest therefore arrived last, and every other waited
for it as much longer as its own part took; what the last one sees is the transfer. Durations are compared, not points
in time, so that the clocks of different hosts need not agree. It takes every rank of the group.

Where the planes of a rank say whom it waits for they are believed. Where they were not recorded (level 0) the rank
alone cannot tell waiting from transfer; with this comparison it can, before any rule sees its ledger.

A send and its receive are compared in the same way: both are done when the data is there, so that the shorter of the
two is that of the stage that came last.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from advisor_core.facts.communication.cross_rank_waits import no_waits
from advisor_core.job.calls import same_calls

_UNEVEN = "alltoallv"
"""Each rank is done when it has what is meant for it, which is not as much for all of them: the shortest need not be
the last to arrive."""


def settle(calls: Mapping[int, pd.DataFrame], world_size: int) -> dict[int, pd.DataFrame]:
    """Rank to its ``cross_rank_waits`` (see `advisor_core.facts.communication.cross_rank_waits`). ``calls``: rank to
    the columns `advisor_core.job.calls.COMPARED` of its collectives. ``world_size``: ranks of the job, 0 where no rank
    has it recorded."""
    same = same_calls(calls, world_size)
    compared = _last(same[same["complete"].astype(bool) & (same["operation"].str.lower() != _UNEVEN)])
    like = no_waits()
    return {
        rank: compared.loc[compared["rank"] == rank, list(like)].astype(like.dtypes.to_dict()).reset_index(drop=True)
        for rank in calls
    }


def _last(calls: pd.DataFrame) -> pd.DataFrame:
    """The rank that came last to each call, the same for all of its rows, and the wait of each other rank."""
    shortest = calls.groupby("call")["elapse_ns"].transform("min")
    # Of several that are equally short the lowest rank is named, so that the answer never depends on the order.
    first = calls[calls["elapse_ns"] == shortest].groupby("call")["rank"].min()
    waited = (calls["elapse_ns"] - shortest).clip(upper=calls["uncovered_ns"])
    return calls.assign(last_rank=calls["call"].map(first), waited_ns=waited)
