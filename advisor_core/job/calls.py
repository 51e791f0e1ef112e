"""The same call on several ranks: a collective of a group, or a send and its receive.

The ranks of a group call its collectives in the same order, so that the same call has the same group, index, name and
occurrence on all of them. A send and its receive have the same number within a group of two ranks; in a larger one
they are the same of all that one rank sends to the other, where the planes of both name the peer. A batch of sends and
receives meets a batch. Groups side by side share a hash: it takes their recorded ranks, or all ranks of
the job, to know that two calls belong together. Of other calls it is only possible.
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from advisor_core.facts.communication.state import POINT_TO_POINT

COMPARED = (
    *("work", "group", "ranks", "peer", "index", "name", "operation", "step"),
    *("members", "elapse_ns", "uncovered_ns"),
)
"""The columns of the fact ``recorded_calls`` that a comparison of ranks reads: what crosses from a rank to the job."""


def same_calls(calls: Mapping[int, pd.DataFrame], world_size: int) -> pd.DataFrame:
    """The calls that are the same on several of the ranks, or may be.

    The columns `COMPARED`, with ``rank``; ``call``, a number that is the same on all of them; ``complete``, all ranks
    of the group were recorded; ``known``, it is no other group with the same hash; ``pair``, it is a send and a
    receive. ``calls``: rank to `COMPARED` of its calls. ``world_size``: ranks of the job, 0 where no rank has it
    recorded.
    """
    empty = pd.DataFrame(columns=[*COMPARED, "rank", "call", "complete", "known", "pair"])
    if len(calls) < 2:
        return empty
    every = pd.concat([frame.assign(rank=rank) for rank, frame in calls.items()], ignore_index=True)
    every = every[every["step"] >= 0]
    between = every["operation"].str.contains(POINT_TO_POINT)
    collectives, transfers = every[~between], every[between]
    parts = [_collectives(collectives, world_size).assign(pair=False)] if len(collectives) else []
    if len(transfers):
        parts += [_pairs(transfers, world_size).assign(pair=True), _with_peers(transfers).assign(pair=True)]
    found = pd.concat(parts) if parts else empty
    if found.empty:
        return empty
    key = ["pair", "group", "ranks", "index", "met", "occurrence"]
    return found.assign(call=found.groupby(key, sort=False).ngroup()).reset_index(drop=True)


def _collectives(calls: pd.DataFrame, world_size: int) -> pd.DataFrame:
    """Calls of groups of which several ranks were recorded."""
    calls = calls.assign(met=calls["name"])
    key = ["group", "ranks", "index", "met"]
    calls = calls.assign(occurrence=calls.groupby(["rank", *key]).cumcount())
    groups = calls.groupby([*key, "occurrence"])
    members = groups["members"].transform("max")
    expected = members.where(members > 0, world_size)
    present = groups["rank"].transform("nunique")
    complete = (expected > 1) & (present == expected)
    return calls.assign(complete=complete, known=complete | (calls["ranks"] != ""))[present > 1]


def _pairs(calls: pd.DataFrame, world_size: int) -> pd.DataFrame:
    """The sends and receives of which both ends are there."""
    named = calls["ranks"] != ""
    of_two = ((calls["ranks"].str.count(",") == 1) & named) | (~named & (calls["members"] == 2)) | (world_size == 2)
    calls = calls[of_two & (named | (calls["rank"].nunique() == world_size)) & (calls["index"] >= 0)]
    key = ["group", "ranks", "index"]
    calls = calls.assign(met="", occurrence=calls.groupby(["rank", *key]).cumcount(), way=_ways(calls["operation"]))
    groups = calls.groupby([*key, "occurrence"])
    one_each = (groups["rank"].transform("nunique") == 2) & (groups["rank"].transform("size") == 2)
    met = groups["way"].transform("sum") == 0  # a send and a receive, or two batches
    known = (calls["way"] != 0) | (calls["ranks"] != "")
    return calls[one_each & met & known].drop(columns="way").assign(complete=True, known=True)


def _with_peers(calls: pd.DataFrame) -> pd.DataFrame:
    """The sends, receives and batches between two ranks of a larger group, of which both name the other."""
    calls = calls[(calls["peer"] >= 0) & (calls["ranks"].str.count(",") > 1)]
    way = _ways(calls["operation"])
    sender, receiver = calls["rank"].where(way >= 0, calls["peer"]), calls["peer"].where(way >= 0, calls["rank"])
    low, high = calls[["rank", "peer"]].min(axis=1), calls[["rank", "peer"]].max(axis=1)
    between = (sender.astype(str) + ">" + receiver.astype(str)).where(
        way != 0, low.astype(str) + "=" + high.astype(str)
    )
    calls = calls.assign(met=between, index=-1)
    key = ["group", "ranks", "met"]
    calls = calls.assign(occurrence=calls.groupby(["rank", *key]).cumcount())
    both = calls.groupby([*key, "occurrence"])["rank"].transform("nunique") == 2
    return calls[both].assign(complete=True, known=True)


def _ways(operations: pd.Series) -> pd.Series:
    """1 for a send, -1 for a receive, 0 for a batch of both."""
    lower = operations.str.lower()
    return lower.str.contains("send").astype("int64") - lower.str.contains("rec").astype("int64")
