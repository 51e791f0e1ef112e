"""Phases of an iteration of reinforcement learning: what each leaves of the device unused, and how evenly the ranks
share its work.

A phase is a role that was profiled by itself, or what marks in the trace name (facts ``phases`` and ``phase_ledger``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Interval, Metric, Observations, Params, Reference, advisor, job_advisor
from advisor_core.api.facts import (
    KERNELS,
    Facts,
    JobFacts,
    NotApplicable,
    bookings,
    ledger,
    phase_ledger,
    phases,
    steps,
    work,
)
from advisors.columns import COMPUTING, IDLE, RANK, SHARE, TIME
from advisors.measuring import DEVICE_LANE, next_kernels, share, step_count, step_ns, under
from advisors.messages import message

LATE = ("idle/host/python", "idle/host/framework", "idle/host/runtime")
"""The host had not launched the next task and was at work on its own."""

_REFILLING = ("idle/sync", "idle/launch_latency")
"""What else a host that launches task by task costs: filling the queue again when it had to be drained, and the way of
each launch to the device."""

_WAITING = ("communication/wait", "communication/unknown")
"""Time in which a rank waits for another, or may: it is no work of the phase."""

_CAUSES = 8
_LARGEST_GAPS = 3
_STAGE = (
    Column("phase", "text", "", "the phase of the iteration, as it is marked or as its role is called", zh="阶段"),
)


# --- RL001, RL003, RL004: what a phase leaves of the device


@advisor(
    "rl.idle",
    needs=(phases, phase_ledger, steps, bookings, work),
    wants=(KERNELS,),
    about=_STAGE,
    columns=(
        Column("kind", "text", "", "the known phase that it is: rollout, log_prob, reward ..., '' unknown", zh="类别"),
        Column("duration_ns", "float", "ns", "time of the phase per step", zh="时长"),
        Column("phase_share", "float", "ratio", "duration_ns over the wall time of the step", zh="阶段占 step 比例"),
        Column("idle_ns", "float", "ns", "of it: the device does nothing", zh="空闲"),
        Column("idle_share", "float", "ratio", "idle_ns over duration_ns", zh="空闲占比"),
        Column("idle_of_step", "float", "ratio", "idle_ns over the wall time of the step", zh="空闲占 step 比例"),
        Column("computing_share", "float", "ratio", "of the phase: the device computes", zh="计算占比"),
        Column(
            "communicating_share",
            "float",
            "ratio",
            "of the phase: communication that no computing covers",
            zh="未掩盖通信占比",
        ),
        Column("cause", "text", "", "leaf of the ledger with most of the idle time of the phase", zh="原因"),
        Column("cause_share", "float", "ratio", "of the idle time of the phase: this leaf", zh="主因占比"),
        Column("second_cause", "text", "", "the leaf with most of the rest, none if there is none", zh="次要原因"),
        Column("second_share", "float", "ratio", "of the idle time of the phase: that leaf", zh="次因占比"),
        Column("unknown_share", "float", "ratio", "of the idle time of the phase: no cause known", zh="未知占比"),
        Column(
            "late_ns",
            "float",
            "ns",
            "idle while the host was still to launch: Python, operators, runtime calls",
            zh="迟到",
        ),
        Column("late_share", "float", "ratio", "late_ns over duration_ns", zh="迟到占比"),
        Column(
            "launch_ns",
            "float",
            "ns",
            "late_ns, and idle after synchronising calls and between launch and start",
            zh="下发",
        ),
        Column("kernels", "float", "count", "device tasks that start in the phase, per step", zh="kernel 数"),
        Column("mean_kernel_ns", "float", "ns", "their mean duration, none without tasks", zh="kernel 平均时长"),
        Column("largest_gap_ns", "float", "ns", "longest idle gap that begins in the phase", zh="最长空隙"),
    ),
    evidence=(
        TIME,
        SHARE,
    ),
)
def idle(facts: Facts, params: Params) -> Observations:
    """What each phase leaves of the device unused, by cause."""
    spans = facts[phases]
    booked = facts[bookings]
    steps, wall = step_count(facts), step_ns(facts)
    ledger = facts[phase_ledger]
    per_stage = ledger[ledger["phase"] != ""].groupby(["phase", "path"])["ns"].sum() / steps
    tasks = _in_stages(spans, facts[work]["start_ns"].to_numpy())
    lasting = (facts[work]["end_ns"] - facts[work]["start_ns"]).groupby(tasks).agg(["size", "mean"])
    gaps = booked.gaps.assign(ns=booked.gaps["end_ns"] - booked.gaps["start_ns"])
    gaps["phase"] = _in_stages(spans, gaps["start_ns"].to_numpy())
    kinds = dict(zip(spans["phase"].tolist(), spans["kind"].tolist(), strict=True))
    rows = []
    for phase in kinds:  # a handful
        leaves = per_stage.loc[phase]
        total, unused, late = float(leaves.sum()), under(leaves, "idle"), under(leaves, *LATE)
        causes = _causes(leaves)
        first, second = (causes.index[n] if len(causes) > n else None for n in (0, 1))
        own = gaps.loc[gaps["phase"] == phase, "ns"]
        known = phase in lasting.index
        rows.append(
            {
                "phase": phase,
                "kind": kinds[phase],
                "duration_ns": total,
                "phase_share": share(total, wall),
                "idle_ns": unused,
                "idle_share": share(unused, total),
                "idle_of_step": share(unused, wall),
                "computing_share": share(under(leaves, "compute"), total),
                "communicating_share": share(under(leaves, "communication"), total),
                "cause": first,
                "cause_share": share(float(causes.iloc[0]), unused) if first else np.nan,
                "second_cause": second,
                "second_share": share(float(causes.iloc[1]), unused) if second else np.nan,
                "unknown_share": share(under(leaves, "idle/unknown", "idle/host/unknown"), unused),
                "late_ns": late,
                "late_share": share(late, total),
                "launch_ns": under(leaves, *LATE, *_REFILLING),
                "kernels": float(lasting["size"][phase]) / steps if known else 0.0,
                "mean_kernel_ns": float(lasting["mean"][phase]) if known else np.nan,
                "largest_gap_ns": float(own.max()) if len(own) else 0.0,
            }
        )
    frame = pd.DataFrame(rows)

    def evidence(number: int) -> Sequence[Reference]:
        phase = str(frame["phase"].iloc[number])
        causes, unused = _causes(per_stage.loc[phase]), float(frame["idle_ns"].iloc[number])
        told: list[dict[str, Scalar]] = [
            {"cause": str(path), "time": float(ns), "share": share(float(ns), unused)}
            for path, ns in causes.head(_CAUSES).items()
        ]
        found: list[Reference] = [
            Metric(message("rl.idle_by_cause", phase=phase), told),
            *_longest(spans, phase, 1),
        ]
        largest = gaps[gaps["phase"] == phase].nlargest(_LARGEST_GAPS, "ns")
        found += [
            Interval(message("common.gap"), int(start), int(end), DEVICE_LANE)
            for start, end in zip(largest["start_ns"], largest["end_ns"], strict=True)
        ]
        return [*found, *next_kernels(facts, largest["next"])]

    return Observations(frame, evidence)


def _causes(leaves: pd.Series) -> pd.Series:
    """The idle leaves, largest first."""
    unused = leaves[leaves.index.str.startswith("idle/")]
    return unused[unused > 0].sort_values(ascending=False, kind="stable")


def _in_stages(spans: pd.DataFrame, times: np.ndarray) -> pd.Series:
    """The phase that holds each moment, '' for none; the spans are disjoint and in order."""
    place = np.searchsorted(spans["start_ns"].to_numpy(), times, side="right") - 1
    inside = (place >= 0) & (times < spans["end_ns"].to_numpy()[np.maximum(place, 0)])
    names = np.append(spans["phase"].astype(str).to_numpy(dtype=object), "")
    return pd.Series(names[np.where(inside, place, -1)], dtype=object)


def _longest(spans: pd.DataFrame, phase: str, limit: int) -> list[Reference]:
    """The longest stretches of a phase."""
    own = spans[spans["phase"] == phase]
    largest = own.assign(ns=own["end_ns"] - own["start_ns"]).nlargest(limit, "ns")
    return [
        Interval(message("rl.span", phase=phase), int(start), int(end), DEVICE_LANE)
        for start, end in zip(largest["start_ns"], largest["end_ns"], strict=True)
    ]


# --- RL002: how evenly the ranks share a phase


@job_advisor(
    "rl.balance",
    needs=(phases, phase_ledger, steps, ledger),
    about=_STAGE,
    columns=(
        Column("kind", "text", "", "the known phase that it is: rollout, log_prob, reward ..., '' unknown", zh="类别"),
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
    """How evenly the ranks share the work of each phase, and who waits for the one that has most."""
    windows, spans = facts.ranks(steps), facts.ranks(phases)
    divided = {rank: frame for rank, frame in facts.ranks(phase_ledger).items() if rank in spans and rank in windows}
    if len(divided) < 2:
        raise NotApplicable(message("rl.one_rank"))
    per_leaf = _per_step(divided, windows, ["phase", "path"])
    walls = {rank: float((found["end_ns"] - found["start_ns"]).sum()) / len(found) for rank, found in windows.items()}
    booked = _per_step(
        {rank: found for rank, found in facts.ranks(ledger).items() if rank in divided}, windows, ["path"]
    )
    waits = per_leaf.index.get_level_values("path").str.startswith(_WAITING)
    work = per_leaf[~waits]
    kinds = {
        str(phase): str(kind)
        for found in spans.values()
        for phase, kind in zip(found["phase"].tolist(), found["kind"].tolist(), strict=True)
    }
    rows = []
    for phase in kinds:
        done = _of(work, phase)
        lengths: pd.Series = done.sum(min_count=1)
        lengths = lengths.dropna()
        if len(lengths) < 2:
            continue
        rows.append({"phase": phase, "kind": kinds[phase], **_spread(lengths), **_more(done, lengths)})
        rows[-1] |= _stake(rows[-1], lengths, per_leaf, booked, walls)
    if not rows:
        raise NotApplicable(message("rl.one_rank"))
    frame = pd.DataFrame(rows)

    def evidence(number: int) -> Sequence[Reference]:
        phase = str(frame["phase"].iloc[number])
        own, done = _of(per_leaf, phase), _of(work, phase).sum(min_count=1).dropna()
        told: list[dict[str, Scalar]] = [
            {
                "rank": rank,
                "work": float(ns),
                "computing": under(own[rank].fillna(0.0), "compute"),
                "idle": under(own[rank].fillna(0.0), "idle"),
                "waiting": under(own[rank].fillna(0.0), *_WAITING),
            }
            for rank, ns in _pairs(done.sort_values(ascending=False, kind="stable"))
        ]
        return [Metric(message("rl.by_rank", phase=phase), told)]

    def ranks(number: int) -> Sequence[int]:
        loser, longest = int(frame["loser"].iloc[number]), int(frame["longest_rank"].iloc[number])
        if loser == longest:
            return [longest]
        others = _of(work, str(frame["phase"].iloc[number])).dropna(axis=1, how="all").columns.tolist()
        return [loser, *(rank for rank in map(int, others) if rank not in (loser, longest))]

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


def _more(work: pd.DataFrame, lengths: pd.Series) -> dict[str, Scalar]:
    """Of which leaf the longest rank has most above the median of all."""
    known = work[lengths.index].fillna(0.0)
    excess = known[_ends(lengths)[0]] - known.median(axis=1)
    return {"more_of": str(excess.idxmax()), "more_ns": float(excess.max())}


def _stake(
    found: Mapping[str, Scalar],
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
    outside = per_leaf[per_leaf.index.get_level_values("phase") != found["phase"]]
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
        loser, leaf = longest, str(found["more_of"]).partition("/")[0]
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


ADVISORS = (idle, balance)
