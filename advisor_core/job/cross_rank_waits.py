"""Cross-rank waits: which rank arrived last in a collective, from the same call on all ranks.

All ranks of a collective end together. The one for which it is shortest therefore arrived last, and every other waited
for it as much longer as its own part took; what the last one sees is the transfer. Durations are compared, not points
in time, so that the clocks of different hosts need not agree. It takes every rank of the group.

Where the planes of a rank say whom it waits for they are believed. Where they were not recorded (level 0) the ledger
of the rank has ``communication/unknown``, which this module divides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from advisor_core.facts.communication.state import POINT_TO_POINT
from advisor_core.result.run import LedgerEntry, LedgerStep

Shared = Mapping[str, Any]
"""The shared facts of one rank, by name; what a rank lacks is an exception instead of a value."""

_KEY = ["group", "ranks", "index", "name", "occurrence"]
_UNEVEN = "alltoallv"
"""Each rank is done when it has what is meant for it, which is not as much for all of them: the shortest need not be
the last to arrive."""
_UNKNOWN = "communication/unknown"


def settle(ranks: Mapping[int, Shared]) -> dict[int, Shared]:
    """The shared facts with ``last_rank`` (-1 unknown) and ``waited_ns`` (for it, uncovered) of ``collective_calls``
    filled in, and ``communication/unknown`` of ``ledger`` divided into waiting and transmitting where they tell."""
    known = {rank: shared for rank, shared in ranks.items() if _has(shared, "collective_calls")}
    if len(known) < 2:
        return dict(ranks)
    calls = _arrivals({rank: shared["collective_calls"] for rank, shared in known.items()}, _world(known))
    settled = dict(ranks)
    for rank, shared in known.items():
        update = {"collective_calls": calls[rank]}
        if _has(shared, "ledger"):
            update["ledger"] = _divided(shared["ledger"], calls[rank], rank)
        settled[rank] = {**shared, **update}
    return settled


def rebooked(steps: Sequence[LedgerStep], ledger: pd.DataFrame) -> list[LedgerStep]:
    """The steps of a rank with the entries of its settled ``ledger``; what is known of an entry stays with it."""
    result = []
    by_step = dict(list(ledger.groupby("step")))
    for number, step in enumerate(steps):
        told = {entry.path: entry for entry in step.entries}
        own = by_step.get(number, ledger.iloc[:0])
        entries = [
            told.get(path, LedgerEntry(path=path, ns=0)).model_copy(update={"ns": ns})
            for path, ns in zip(own["path"].tolist(), own["ns"].tolist(), strict=True)
        ]
        result.append(step.model_copy(update={"entries": entries}))
    return result


def _has(shared: Shared, name: str) -> bool:
    return isinstance(shared.get(name), pd.DataFrame)


def _world(ranks: Mapping[int, Shared]) -> int:
    """Ranks of the job, 0 where no rank has it recorded."""
    contexts = [shared["context"] for shared in ranks.values() if isinstance(shared.get("context"), Mapping)]
    sizes = [context.get("world_size") for context in contexts]
    return max((size for size in sizes if isinstance(size, int)), default=0)


def _arrivals(calls: Mapping[int, pd.DataFrame], world: int) -> dict[int, pd.DataFrame]:
    parts = [
        frame.assign(rank=rank, occurrence=frame.groupby(["group", "ranks", "index", "name"]).cumcount())
        for rank, frame in calls.items()
    ]
    every = pd.concat(parts, ignore_index=True)
    groups = every.groupby(_KEY)
    members = groups["members"].transform("max")
    expected = members.where(members > 0, world)
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
    last = every[_KEY].join(first, on=_KEY)["last_rank"]
    every["last_rank"] = last.where(complete, -1).astype("int64")
    waited = (every["elapse_ns"] - shortest).clip(upper=every["uncovered_ns"])
    every["waited_ns"] = waited.where(complete, 0).astype("int64")
    return {
        rank: every[every["rank"] == rank].drop(columns=["rank", "occurrence"]).reset_index(drop=True) for rank in calls
    }


def _divided(ledger: pd.DataFrame, calls: pd.DataFrame, rank: int) -> pd.DataFrame:
    """``communication/unknown`` of the compared collectives: first the waiting, then the transfer."""
    told = calls[(calls["last_rank"] >= 0) & (calls["unknown_ns"] > 0)]
    if told.empty:
        return ledger
    waited = told["waited_ns"].clip(upper=told["unknown_ns"]).where(told["last_rank"] != rank, 0)
    paths = "communication/wait/rank " + told["last_rank"].astype(str)
    moves = pd.concat(
        [
            pd.DataFrame({"step": told["step"], "path": paths, "ns": waited}),
            pd.DataFrame({"step": told["step"], "path": "communication/transmit", "ns": told["unknown_ns"] - waited}),
            pd.DataFrame({"step": told["step"], "path": _UNKNOWN, "ns": -told["unknown_ns"]}),
        ]
    )
    moved = pd.concat([ledger, moves.assign(overlapped_ns=0)], ignore_index=True)
    totals = moved.groupby(["step", "path"], as_index=False)[["ns", "overlapped_ns"]].sum()
    return totals[totals["ns"] > 0].reset_index(drop=True)
