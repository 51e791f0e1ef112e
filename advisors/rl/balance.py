"""RL002: how evenly the ranks share a phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, job_advisor
from advisor_core.api.facts import (
    JobFacts,
    NotApplicable,
    ledger,
    phase_ledger,
    phases,
    steps,
)
from advisors.columns import COMPUTING, IDLE, RANK
from advisors.measuring import share, under
from advisors.messages import message
from advisors.rl.columns import KIND, PHASE

_WAITING = ("communication/wait", "communication/unknown")
"""Time in which a rank waits for another, or may: it is no work of the phase."""


@job_advisor(
    "rl.balance",
    needs=(phases, phase_ledger, steps, ledger),
    about=PHASE,
    columns=(
        KIND,
        Column("ranks", "int", "count", "profiled ranks that have the phase", zh="rank 数"),
        Column("longest_rank", "int", "", "the rank with most work in it", zh="耗时最长的 rank"),
        Column("longest_ns", "float", "ns", "its work per step: the phase without waiting for other ranks", zh="最长"),
        Column("median_ns", "float", "ns", "median over the ranks", zh="中位数"),
        Column("mean_ns", "float", "ns", "mean over the ranks", zh="均值"),
        Column("shortest_rank", "int", "", "the rank with least work in it", zh="最短的 rank"),
        Column("shortest_ns", "float", "ns", "its work per step", zh="最短"),
        Column("spread", "float", "ratio", "longest_ns less median_ns, over longest_ns", zh="离散"),
        Column("behind_ns", "float", "ns", "longest_ns less mean_ns: what an even share would save", zh="落后"),
        Column(
            "more_of",
            "text",
            "",
            "leaf of the ledger of which the longest rank has most above the median",
            zh="多出部分",
        ),
        Column("more_ns", "float", "ns", "by how much", zh="增加"),
        Column(
            "whole_iteration",
            "bool",
            "",
            "the profile holds more than this phase, so that the waiting shows in it",
            zh="含整个迭代",
        ),
        Column(
            "loser",
            "int",
            "",
            "the rank whose time is at stake: one that waits, else the longest itself",
            zh="损失时间的 rank",
        ),
        Column("leaf", "text", "", "entry of its ledger in which that time is", zh="账目"),
        Column("at_stake_ns", "float", "ns", "time at stake on that rank, per step", zh="可争取时间"),
        Column(
            "at_stake_share",
            "float",
            "ratio",
            "at_stake_ns over the wall time of a step of that rank",
            zh="可争取时间占比",
        ),
    ),
    evidence=(
        RANK,
        Column("work", "float", "ns", "its work per step, without waiting", zh="自身工作"),
        COMPUTING,
        IDLE,
        Column("waiting", "float", "ns", "waiting for other ranks, per step", zh="等待"),
    ),
)
def balance(facts: JobFacts, params: Params) -> Observations:
    """The balance of work between the ranks in each phase, and the ranks that wait for the one with most."""
    windows, spans = facts.ranks(steps), facts.ranks(phases)
    divided = {rank: frame for rank, frame in facts.ranks(phase_ledger).items() if rank in spans and rank in windows}
    if len(divided) < 2:
        raise NotApplicable(message("rl.one_rank"))
    per_leaf = _per_step(divided, windows, ["phase", "path"])
    walls = {
        rank: float((steps_of_rank["end_ns"] - steps_of_rank["start_ns"]).sum()) / len(steps_of_rank)
        for rank, steps_of_rank in windows.items()
    }
    booked = _per_step(
        {rank: ledger_of_rank for rank, ledger_of_rank in facts.ranks(ledger).items() if rank in divided},
        windows,
        ["path"],
    )
    waits = per_leaf.index.get_level_values("path").str.startswith(_WAITING)
    work = per_leaf[~waits]
    kinds = {
        str(phase): str(kind)
        for spans_of_rank in spans.values()
        for phase, kind in zip(spans_of_rank["phase"].tolist(), spans_of_rank["kind"].tolist(), strict=True)
    }
    rows = []
    for phase in kinds:
        done = _of(work, phase)
        lengths: pd.Series = done.sum(min_count=1)
        lengths = lengths.dropna()
        if len(lengths) < 2:
            continue
        rows.append({"phase": phase, "kind": kinds[phase], **_spread(lengths), **_largest_excess(done, lengths)})
        rows[-1] |= _stake(rows[-1], lengths, per_leaf, booked, walls)
    if not rows:
        raise NotApplicable(message("rl.one_rank"))
    frame = pd.DataFrame(rows)

    def evidence(number: int) -> Sequence[Reference]:
        phase = str(frame["phase"].iloc[number])
        per_rank, done = _of(per_leaf, phase), _of(work, phase).sum(min_count=1).dropna()
        rank_rows: list[dict[str, Scalar]] = [
            {
                "rank": rank,
                "work": float(ns),
                "computing": under(per_rank[rank].fillna(0.0), "compute"),
                "idle": under(per_rank[rank].fillna(0.0), "idle"),
                "waiting": under(per_rank[rank].fillna(0.0), *_WAITING),
            }
            for rank, ns in _pairs(done.sort_values(ascending=False, kind="stable"))
        ]
        return [Metric(message("rl.by_rank", phase=phase), rank_rows)]

    def ranks(number: int) -> Sequence[int]:
        loser, longest = int(frame["loser"].iloc[number]), int(frame["longest_rank"].iloc[number])
        if loser == longest:
            return [longest]
        recorded = _of(work, str(frame["phase"].iloc[number])).dropna(axis=1, how="all").columns.tolist()
        return [loser, *(rank for rank in map(int, recorded) if rank not in (loser, longest))]

    return Observations(frame, evidence, ranks)


def _ends(lengths: pd.Series) -> tuple[int, int]:
    """The ranks with most and with least work; of several the lowest."""
    ranks, values = [int(rank) for rank in lengths.index.tolist()], lengths.to_numpy()
    return ranks[int(values.argmax())], ranks[int(values.argmin())]


def _spread(lengths: pd.Series) -> dict[str, Scalar]:
    longest, shortest = _ends(lengths)
    top, median, mean = float(lengths.max()), float(lengths.median()), float(lengths.mean())
    return {
        "ranks": len(lengths),
        "longest_rank": longest,
        "longest_ns": top,
        "median_ns": median,
        "mean_ns": mean,
        "shortest_rank": shortest,
        "shortest_ns": float(lengths.min()),
        "spread": share(top - median, top),
        "behind_ns": top - mean,
    }


def _largest_excess(work: pd.DataFrame, lengths: pd.Series) -> dict[str, Scalar]:
    """Of which leaf the longest rank has most above the median of all."""
    work_by_leaf = work[lengths.index].fillna(0.0)
    excess = work_by_leaf[_ends(lengths)[0]] - work_by_leaf.median(axis=1)
    return {"more_of": str(excess.idxmax()), "more_ns": float(excess.max())}


def _stake(
    row: Mapping[str, Scalar],
    lengths: pd.Series,
    per_leaf: pd.DataFrame,
    booked: pd.DataFrame,
    walls: Mapping[int, float],
) -> dict[str, Scalar]:
    """Whose time it is, and where its ledger has it.

    In a profile of the whole iteration the other ranks wait: in collectives, for the longest by name where that is
    recorded, or idle outside of the phase where the framework waits on the host. In a profile of the phase alone that
    waiting is not recorded: there it is the longest rank that would be done earlier, with what it has more of. Either
    way it is an upper bound: an even share saves less, and no rank can be done before the shortest is.
    """
    longest, shortest = _ends(lengths)
    outside = per_leaf[per_leaf.index.get_level_values("phase") != row["phase"]]
    whole = len(outside) > 0
    if whole:
        wait = f"communication/wait/rank {longest}"
        waits = {rank: under(booked[rank].fillna(0.0), wait) for rank, _ in _pairs(lengths) if rank != longest}
        loser = max(waits, key=lambda rank: (waits[rank], rank == shortest, -rank))
        unused = outside[loser].groupby(level="path").sum()
        places = {
            wait: waits[loser],
            "communication/wait": under(booked[loser].fillna(0.0), "communication/wait"),
            "idle": under(unused, "idle"),
        }
        leaf = next((path for path, ns in places.items() if ns > 0), "idle")
        stake = min(float(lengths.max() - lengths[loser]), places[leaf])
    else:
        loser, leaf = longest, str(row["more_of"]).partition("/")[0]
        stake = float(lengths.max() - lengths.min())
    return {
        "whole_iteration": whole,
        "loser": loser,
        "leaf": leaf,
        "at_stake_ns": stake,
        "at_stake_share": share(stake, walls[loser]),
    }


def _per_step(frames: Mapping[int, pd.DataFrame], steps: Mapping[int, pd.DataFrame], by: list[str]) -> pd.DataFrame:
    """ns per step by ``by`` (rows) and rank (columns); NaN where a rank has no such entry."""
    parts = {rank: frame.groupby(by)["ns"].sum() / len(steps[rank]) for rank, frame in sorted(frames.items())}
    table = pd.DataFrame(parts)
    return table.rename_axis(index=by if len(by) > 1 else by[0])


def _pairs(lengths: pd.Series) -> list[tuple[int, float]]:
    return list(zip(map(int, lengths.index.tolist()), map(float, lengths.tolist()), strict=True))


def _of(per_leaf: pd.DataFrame, phase: str) -> pd.DataFrame:
    """The leaves of one phase, by path."""
    return per_leaf[per_leaf.index.get_level_values("phase") == phase].droplevel("phase")
