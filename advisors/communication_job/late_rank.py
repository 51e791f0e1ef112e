"""CO010: the rank that the others wait for, the evidence for it, and what it was doing.

Two independent signs. *Named*: the tasks on the planes of a collective name the rank that is waited for; several ranks
that name the same one prove it, even if that rank was not profiled. *Arrival*: of the ranks of one collective the last
to arrive is done soonest, since all end together; durations are compared, so that clocks of different hosts need not
agree. The second needs all ranks of the group in the profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import AsPeers, Column, Metric, Observations, Params, Reference, job_advisor
from advisor_core.api.facts import (
    POINT_TO_POINT,
    JobFacts,
    NotApplicable,
    Unavailable,
    collective_calls,
    ledger,
    rank_summary,
    steps,
)
from advisors.columns import LONGEST, OPERATION, RANK, SHARE_OF_STEP, WAITS
from advisors.measuring import records, share
from advisors.messages import message
from advisors.transfers import chains

_UNKNOWN = "communication/unknown"
_WAIT = r"^communication/wait/rank (\d+)$"


@job_advisor(
    "communication_job.late_rank",
    needs=(ledger, steps, collective_calls, rank_summary),
    about=(Column("late", "int", "", "the rank that others wait for", zh="迟到"),),
    columns=(
        Column("step_ns", "float", "ns", "mean wall time of a step of the waiting ranks", zh="step"),
        Column(
            "wait_ns", "float", "ns", "mean uncovered waiting of the other profiled ranks for it, per step", zh="等待"
        ),
        Column("leaf", "text", "", "where the ledgers of the others book the waiting for it", zh="账目"),
        Column("longest_wait_ns", "float", "ns", "the same of the rank that waits longest", zh="最长等待"),
        Column("wait_share", "float", "ratio", "longest_wait_ns over the wall time of that rank", zh="等待占比"),
        Column(
            "saveable_ns",
            "float",
            "ns",
            "of the rank that waits for it least, the next to be waited for: its waiting, and what it moves uncovered "
            "since it had waited under computing, less what the late rank itself waits more for others; without the "
            "first step, whose waiting is that of the start; per step",
            zh="可节省",
        ),
        Column(
            "saveable_share",
            "float",
            "ratio",
            "saveable_ns over the wall time of the rank that waits longest",
            zh="可节省占比",
        ),
        Column("witnesses", "int", "count", "profiled ranks that wait longest for it", zh="印证数"),
        Column("ranks", "int", "count", "profiled ranks other than it", zh="rank 数"),
        Column("witness_ranks", "text", "", "which ranks these are", zh="印证的 rank"),
        Column("profiled", "bool", "", "the late rank itself is in the profile", zh="已采集"),
        Column(
            "confirmed_by_arrival",
            "bool",
            "",
            "it arrives last in the shared collectives, unknown if not all ranks of them are profiled",
            nullable=True,
            zh="到达顺序印证",
        ),
        Column(
            "arrival_known",
            "bool",
            "",
            "all ranks of shared collectives are profiled: who arrives last is known",
            zh="到达顺序已知",
        ),
        Column(
            "arrival_ns",
            "float",
            "ns",
            "of wait_ns: as much as it arrives after the others, 0 unknown, per step",
            zh="到达",
        ),
        Column(
            "cause", "text", "", "what takes the late rank longer than the others, as a leaf of the ledger", zh="原因"
        ),
        Column("cause_ns", "float", "ns", "by how much, per step; 0 where nothing does", zh="原因"),
        Column(
            "computing_excess_ns", "float", "ns", "its computing less the median of the others, per step", zh="计算多出"
        ),
        Column("idle_excess_ns", "float", "ns", "its idle time less the median of the others, per step", zh="空闲多出"),
    ),
    evidence=(
        RANK,
        WAITS,
        SHARE_OF_STEP,
        OPERATION,
        Column("last_to_arrive", "int", "", "rank that begins it last", zh="最后到达"),
        Column("shortest", "int", "ns", "its duration on the rank that begins last", zh="最短"),
        LONGEST,
        Column("this_rank", "float", "ns", "of the late rank, per step", zh="本 rank"),
        Column("median_of_others", "float", "ns", "of the other ranks, per step", zh="其他 rank 中位数"),
    ),
)
def late_rank(facts: JobFacts, params: Params) -> Observations:
    """The rank that the others wait for, and what it was doing meanwhile."""
    windows = facts.ranks(steps)
    ledgers = {rank: booked for rank, booked in facts.ranks(ledger).items() if rank in windows}
    if len(ledgers) < 2:
        raise NotApplicable(message("communication_job.one_rank"))
    per_leaf = _per_step(ledgers, windows)
    ranks = sorted(ledgers)
    walls = {rank: sum(per_leaf[rank].to_list()) for rank in ranks}
    waits = _waits(per_leaf).reindex(columns=ranks, fill_value=0.0)
    calls = facts.ranks(collective_calls)
    saved = _saved(ledgers, calls, windows)
    arrival, order = _arrivals(calls, windows)
    waits = waits[(waits > 0).any(axis=1)]
    if waits.empty:
        if _UNKNOWN in per_leaf.index:
            raise Unavailable(
                message("communication_job.unknown"),
                message("communication_job.unknown.collect"),
                ("level1", "all_ranks"),
            )
        raise NotApplicable(message("communication_job.nobody_late"))
    every_wait = per_leaf[per_leaf.index.str.startswith("communication/wait/")]
    favourite = every_wait.idxmax()
    held_up: dict[int, dict[int, float]] = {
        int(late): dict(zip(ranks, row, strict=True))
        for late, row in zip(waits.index.tolist(), waits.to_numpy().tolist(), strict=True)
    }
    rows = []
    for late, waiting in held_up.items():
        other_ranks = [rank for rank in ranks if rank != late]
        wait = sum(waiting[rank] for rank in other_ranks) / len(other_ranks)
        leaf = f"communication/wait/rank {late}"
        # A rank that waits longest for its neighbours in the pipeline says little of who is late elsewhere.
        believers = [rank for rank in other_ranks if waiting[rank] > 0 and str(favourite[rank]) == leaf]
        excess = _excess(per_leaf, late, other_ranks)
        wall = sum(walls[rank] for rank in other_ranks) / len(other_ranks)
        longest = max(other_ranks, key=waiting.__getitem__)
        saveable = min((saved.get((late, rank), 0.0) for rank in believers), default=0.0)
        rows.append(
            {
                "late": late,
                "step_ns": wall,
                "wait_ns": wait,
                "leaf": leaf,
                "longest_wait_ns": waiting[longest],
                "wait_share": share(waiting[longest], walls[longest]),
                "saveable_ns": saveable,
                "saveable_share": share(saveable, walls[longest]),
                "witnesses": len(believers),
                "ranks": len(other_ranks),
                "witness_ranks": ", ".join(map(str, believers)),
                "profiled": late in ranks,
                "confirmed_by_arrival": None if arrival.empty else bool(arrival.sum(axis=1).idxmax() == late),
                "arrival_known": not arrival.empty,
                "arrival_ns": float(arrival.reindex(index=[late], columns=other_ranks).fillna(0.0).to_numpy().mean()),
                "cause": excess.index[0] if len(excess) else None,
                "cause_ns": float(excess.iloc[0]) if len(excess) else 0.0 if late in ranks else np.nan,
                "computing_excess_ns": _excess_of(per_leaf, late, other_ranks, "compute/"),
                "idle_excess_ns": _excess_of(per_leaf, late, other_ranks, "idle/"),
            }
        )
    frame = pd.DataFrame(rows, columns=[column.name for column in (*_ABOUT, *_COLUMNS)])

    def evidence(number: int) -> Sequence[Reference]:
        late = int(frame["late"].iloc[number])
        waits_of_ranks = waits.loc[late].drop(late, errors="ignore")
        witness_rows: list[dict[str, Scalar]] = [
            {
                "rank": int(rank),
                "waits": float(waits_of_ranks[rank]),
                "share_of_step": share(float(waits_of_ranks[rank]), walls[rank]),
            }
            for rank in waits_of_ranks.index
        ]
        references: list[Reference] = [Metric(message("communication_job.witnesses", late=late), witness_rows)]
        if len(order):
            shown = order.sort_values("skew", ascending=False, kind="stable")
            calls = records(shown, operation="name", last_to_arrive="last", shortest="shortest", longest="longest")
            references.append(Metric(message("communication_job.calls"), calls))
        other_ranks = [rank for rank in ranks if rank != late]
        excess = _excess(per_leaf, late, other_ranks)
        if len(excess):
            usual = per_leaf.loc[excess.index, other_ranks].median(axis=1)
            table = pd.DataFrame({"leaf": excess.index, "own": per_leaf.loc[excess.index, late], "others": usual})
            why = records(table, leaf="leaf", this_rank="own", median_of_others="others")
            title = message("communication_job.why", late=late)
            references.append(Metric(title, why))
        return references

    def losers(number: int) -> Sequence[int]:
        late = int(frame["late"].iloc[number])
        waiting = held_up[late]
        return sorted((rank for rank in waiting if rank != late and waiting[rank] > 0), key=lambda rank: -waiting[rank])

    def cure(number: int) -> AsPeers:
        late = int(frame["late"].iloc[number])
        return AsPeers(late, tuple(rank for rank in ranks if rank != late))

    return Observations(frame, evidence, losers, cure)


_ABOUT, _COLUMNS = late_rank.about, late_rank.columns


def _per_step(ledgers: Mapping[int, pd.DataFrame], steps: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """ns per step: a row per leaf, a column per rank."""
    columns = {rank: booked.groupby("path")["ns"].sum() / len(steps[rank]) for rank, booked in ledgers.items()}
    return pd.DataFrame(columns).fillna(0.0).sort_index(axis=1)


def _waits(per_leaf: pd.DataFrame) -> pd.DataFrame:
    """ns per step: a row per rank that is waited for, a column per rank that waits."""
    peers = per_leaf.index.str.extract(_WAIT, expand=False)
    is_wait = pd.notna(peers)
    waits = per_leaf[is_wait].copy()
    waits.index = pd.Index(peers[is_wait].astype(int), name="late")
    return waits


def _saved(
    ledgers: Mapping[int, pd.DataFrame], calls: Mapping[int, pd.DataFrame], steps: Mapping[int, pd.DataFrame]
) -> dict[tuple[int, int], float]:
    """ns per step, by (late rank, rank that waits): its waiting, and its share of what moves uncovered only because the
    rank had waited under computing, less what the late rank waits itself and the other does not: that much it was held
    up by others. The first of several steps is left out: in it ranks also wait for those that started the profile, or
    the job, later."""
    first = {rank: 1 if len(windows) > 1 else 0 for rank, windows in steps.items()}
    counted = {rank: steps[rank].iloc[first[rank] :] for rank in ledgers}
    per_leaf = _per_step({rank: booked[booked["step"] >= first[rank]] for rank, booked in ledgers.items()}, counted)
    waits = _waits(per_leaf)
    rows = {rank: chains(calls_of_rank[calls_of_rank["step"] >= first[rank]]) for rank, calls_of_rank in calls.items()}
    late = pd.Series(
        {
            rank: float(chains_of_rank["displaced_ns"].sum()) / len(counted[rank])
            for rank, chains_of_rank in rows.items()
        }
    )
    total = waits + waits / waits.sum() * late.reindex(waits.columns, fill_value=0.0)
    waiting = per_leaf[per_leaf.index.str.startswith("communication/wait/")].sum()
    elsewhere = waiting - waits
    held_up = elsewhere.rsub(waiting.reindex(waits.index), axis=0).clip(lower=0)
    total = (total.fillna(0.0) - held_up.fillna(0.0)).clip(lower=0)
    return {
        (int(last), int(rank)): ns
        for last, row in zip(total.index.tolist(), total.to_numpy().tolist(), strict=True)
        for rank, ns in zip(total.columns.tolist(), row, strict=True)
    }


def _arrivals(
    calls: Mapping[int, pd.DataFrame], steps: Mapping[int, pd.DataFrame]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The wait of each rank for the last to arrive, ns per step as in `_waits`, and the collectives with the last of
    each; only those of which every rank was profiled."""
    every = pd.concat([frame.assign(rank=rank) for rank, frame in calls.items()], ignore_index=True)
    between = every["operation"].str.contains(POINT_TO_POINT.pattern, case=False, regex=True)
    every = every[(every["last_rank"] >= 0) & ~between]  # stages of a pipeline wait for one another in any case
    if every.empty:
        return pd.DataFrame(), pd.DataFrame()
    waits = every.groupby(["last_rank", "rank"])["waited_ns"].sum().unstack(fill_value=0).astype(float)
    waits = waits / pd.Series({rank: len(steps[rank]) for rank in calls})[waits.columns]
    named = every.groupby(["group", "ranks", "index", "name", "last_rank"])["elapse_ns"]
    order = named.agg(shortest="min", longest="max").reset_index().rename(columns={"last_rank": "last"})
    order["skew"] = order["longest"] - order["shortest"]
    return waits, order


def _excess(per_leaf: pd.DataFrame, late: int, other_ranks: Sequence[int]) -> pd.Series:
    """By how much the leaves of the late rank exceed the median of the others, largest first; empty if it was not
    profiled. Communication is left out: who is late does not wait."""
    if late not in per_leaf.columns:
        return pd.Series(dtype=float)
    causes = per_leaf[~per_leaf.index.str.startswith("communication/")]
    excess = causes[late] - causes[list(other_ranks)].median(axis=1)
    return excess[excess > 0].sort_values(ascending=False, kind="stable")


def _excess_of(per_leaf: pd.DataFrame, late: int, other_ranks: Sequence[int], prefix: str) -> float:
    if late not in per_leaf.columns:
        return float("nan")
    sums = per_leaf[per_leaf.index.str.startswith(prefix)].sum()
    return float(sums[late] - sums[list(other_ranks)].median())
