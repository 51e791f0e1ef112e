"""Cross-rank waits: which rank arrived last in a collective, from the same call on all ranks.

All ranks of a collective end together. The one for which it is shortest therefore arrived last, and every other waited
for it as much longer as its own part took; what the last one sees is the transfer. Durations are compared, not points
in time, so that the clocks of different hosts need not agree. It takes every rank of the group.

Where the planes of a rank say whom it waits for they are believed. Where they were not recorded (level 0) the rank
alone cannot tell waiting from transfer; with this comparison it can, before any rule sees its ledger.

A send and its receive are compared in the same way: both are done when the data is there, so that the shorter of the
two is that of the stage that came last. They have the same number within their group, which is two ranks. Groups side
by side share a hash: it takes their recorded ranks, or all ranks of the job, to know that the two belong together. A
batch of sends and receives meets a batch, where the ranks of the group were recorded.
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
    every = pd.concat([frame.assign(rank=rank) for rank, frame in calls.items()], ignore_index=True)
    every = every[every["step"] >= 0]
    between = every["operation"].str.contains(POINT_TO_POINT)
    compared = pd.concat([_collectives(every[~between], world_size), _pairs(every[between], world_size)])
    dtypes = NO_WAITS.dtypes.to_dict()
    return {
        rank: compared.loc[compared["rank"] == rank, list(NO_WAITS)].astype(dtypes).reset_index(drop=True)
        for rank in calls
    }


def _collectives(calls: pd.DataFrame, world_size: int) -> pd.DataFrame:
    """The calls whose group is complete, with the columns of `NO_WAITS`."""
    key = ["group", "ranks", "index", "name"]
    calls = calls.assign(occurrence=calls.groupby(["rank", *key]).cumcount())
    groups = calls.groupby(_KEY)
    members = groups["members"].transform("max")
    expected = members.where(members > 0, world_size)
    complete = (
        (calls["operation"].str.lower() != _UNEVEN) & (expected > 1) & (groups["rank"].transform("nunique") == expected)
    )
    return _last(calls[complete], _KEY).assign(pair=False)


def _pairs(calls: pd.DataFrame, world_size: int) -> pd.DataFrame:
    """The sends and receives of which both ends are there, with the columns of `NO_WAITS`."""
    named = calls["ranks"] != ""
    of_two = ((calls["ranks"].str.count(",") == 1) & named) | (~named & (calls["members"] == 2)) | (world_size == 2)
    calls = calls[of_two & (named | (calls["rank"].nunique() == world_size)) & (calls["index"] >= 0)]
    key = ["group", "ranks", "index"]
    calls = calls.assign(occurrence=calls.groupby(["rank", *key]).cumcount(), way=_ways(calls["operation"]))
    key = [*key, "occurrence"]
    groups = calls.groupby(key)
    one_each = (groups["rank"].transform("nunique") == 2) & (groups["rank"].transform("size") == 2)
    met = groups["way"].transform("sum") == 0  # a send and a receive, or two batches
    known = (calls["way"] != 0) | (calls["ranks"] != "")
    return _last(calls[one_each & met & known], key).assign(pair=True)


def _ways(operations: pd.Series) -> pd.Series:
    """1 for a send, -1 for a receive, 0 for a batch of both."""
    lower = operations.str.lower()
    return lower.str.contains("send").astype("int64") - lower.str.contains("rec").astype("int64")


def _last(calls: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """The rank that came last to each call, the same for all rows of ``key``, and the wait of each other rank."""
    shortest = calls.groupby(key)["elapse_ns"].transform("min")
    # Of several that are equally short the lowest rank is named, so that the answer never depends on the order.
    first = calls[calls["elapse_ns"] == shortest].groupby(key)["rank"].min().rename("last_rank")
    waited = (calls["elapse_ns"] - shortest).clip(upper=calls["uncovered_ns"])
    return calls.assign(last_rank=calls[key].join(first, on=key)["last_rank"], waited_ns=waited)
