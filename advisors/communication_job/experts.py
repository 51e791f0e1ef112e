"""CO012: experts that get different numbers of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, EvenWork, Metric, Observations, Params, Reference, job_advisor
from advisor_core.api.facts import (
    KERNELS,
    PROFILE,
    Facts,
    JobFacts,
    NotApplicable,
    Unavailable,
    collective_calls,
    fact,
    ledger,
    operator_types,
    per_text,
    shapes_of,
    steps,
    work,
)
from advisors.columns import COMPUTING, KERNEL, LONGEST_STEP_NS, RANK, SAVEABLE_SHARE, WAITS
from advisors.communication_job.computing import LONGEST_KERNELS, computing_in_steps, longest_kernels
from advisors.communication_job.groups import group_members, group_of_size
from advisors.measuring import records, share, step_count
from advisors.messages import message

_EXPERTS = "GroupedMatmul"

_FUSED = "MoeDistribute"
"""Kernels that send tokens to their experts and back by themselves, without an all-to-all of their own."""


@dataclass(frozen=True)
class ExpertPart:
    """The part of one rank in a group of experts. ``members``: ranks that share out the experts. ``phases_ns``: its
    grouped products between one exchange of tokens and the next, over all steps. ``rows``: of their first inputs per
    step, NaN unknown. ``wait_ns``: per step in exchanges, uncovered and not moving data. ``longest``: its longest
    grouped products with where they stand in the profile. ``types``: the operator types of these."""

    members: tuple[int, ...]
    phases_ns: np.ndarray
    rows: float
    wait_ns: float
    longest: pd.DataFrame
    types: frozenset[str]


@fact(
    "expert_part",
    needs=(PROFILE, steps, work),
    wants=(KERNELS, collective_calls),
    shared=True,
    frames={"longest": LONGEST_KERNELS},
)
def expert_part(facts: Facts) -> ExpertPart:
    """The experts of a rank: how long they compute between exchanges of tokens."""
    profile = facts[PROFILE]
    device, steps = computing_in_steps(facts), step_count(facts)
    kinds = operator_types(device).astype(str)
    if not kinds.all():
        raise Unavailable(message("kernels.untyped"), message("kernels.untyped.collect"), ("level1",))
    experts = device[kinds.str.contains(_EXPERTS, case=False)]
    if experts.empty:
        raise NotApplicable(message("communication_job.no_experts"))
    calls = facts.get(collective_calls)
    exchanges = pd.DataFrame()
    if calls is not None:
        sends = calls["operation"].str.contains("alltoall", case=False)
        exchanges = calls[sends & (calls["step"] >= 0)]
    fused = device[kinds.str.contains(_FUSED, case=False)]
    if exchanges.empty and fused.empty:
        raise NotApplicable(message("communication_job.no_experts"))
    borders = exchanges if len(exchanges) else fused
    recorded = group_members(exchanges["group"], profile, "ep") if len(exchanges) else group_of_size(profile, "ep")
    if len(recorded) < 2:
        raise Unavailable(message("communication_job.no_groups"), message("communication_job.no_groups.collect"))
    phase = np.searchsorted(np.sort(borders["start_ns"].to_numpy()), experts["start_ns"].to_numpy())
    lengths = (experts["end_ns"] - experts["start_ns"]).to_numpy()
    waiting = exchanges["uncovered_ns"] - exchanges["transmit_ns"] if len(exchanges) else pd.Series(dtype=float)
    return ExpertPart(
        recorded,
        np.bincount(phase, weights=lengths, minlength=len(borders) + 1),
        _rows(facts, experts) / steps,
        float(waiting.sum()) / steps,
        longest_kernels(facts, experts),
        frozenset(kinds[experts.index]),
    )


def _rows(facts: Facts, experts: pd.DataFrame) -> float:
    """Rows of the first inputs of grouped products, which are tokens."""
    if facts.get(KERNELS) is None:
        return float("nan")
    shapes = facts[KERNELS]["input_shapes"].iloc[experts["row"].to_numpy()]
    rows = per_text(shapes, lambda text: next((shape[0] for shape in shapes_of(text) if shape), -1))
    tokens = rows[rows > 0].astype(float)
    return float(tokens.sum()) if len(tokens) else float("nan")


@job_advisor(
    "communication_job.experts",
    needs=(expert_part, ledger, steps),
    about=(Column("group", "text", "", "ranks that share out the experts", zh="通信域"),),
    columns=(
        LONGEST_STEP_NS,
        Column("profiled", "int", "count", "of these ranks in the profile", zh="已采集"),
        Column("longest_rank", "int", "", "the rank whose experts compute longest", zh="耗时最长的 rank"),
        Column("computing_ns", "float", "ns", "grouped products of that rank, per step", zh="计算"),
        Column("mean_computing_ns", "float", "ns", "mean of the same over the profiled ranks", zh="平均计算"),
        Column(
            "ratio",
            "float",
            "ratio",
            "the longest over the mean of the ranks, in each phase, all phases together",
            zh="比值",
        ),
        Column("rows_ratio", "float", "ratio", "rows that its experts work on over the mean of all", zh="行数比"),
        Column(
            "exchanges",
            "float",
            "count",
            "phases between exchanges of tokens in which experts compute, per step",
            zh="交换阶段数",
        ),
        Column(
            "longest_wait_ns",
            "float",
            "ns",
            "longest waiting of another rank in exchanges of tokens, per step",
            zh="最长等待",
        ),
        Column("saveable_ns", "float", "ns", "longest less mean of each phase, summed, per step", zh="可节省"),
        SAVEABLE_SHARE,
    ),
    evidence=(
        RANK,
        COMPUTING,
        Column("rows", "float", "count", "rows of the grouped products per step", zh="行数"),
        WAITS,
        *KERNEL,
    ),
)
def experts(facts: JobFacts, params: Params) -> Observations:
    """Experts that get different numbers of tokens, and what even ones would save."""
    parts = facts.ranks(expert_part)
    groups = sorted({part.members for part in parts.values()})
    ranks_of_group = {group: sorted(rank for rank in parts if parts[rank].members == group) for group in groups}
    ranks_of_group = {group: ranks for group, ranks in ranks_of_group.items() if len(ranks) > 1}
    if not ranks_of_group:
        raise Unavailable(
            message("communication_job.experts_alone"), message("communication_job.stages.collect"), ("all_ranks",)
        )
    windows, ledgers = facts.ranks(steps), facts.ranks(ledger)
    walls = {rank: float(ledgers[rank]["ns"].sum()) / len(windows[rank]) for rank in parts}
    rows = []
    for group, ranks in ranks_of_group.items():
        count = len(windows[ranks[0]])
        totals = pd.Series({rank: float(parts[rank].phases_ns.sum()) / len(windows[rank]) for rank in ranks})
        tokens = pd.Series({rank: parts[rank].rows for rank in ranks})
        longest, wall = ranks[int(totals.to_numpy().argmax())], max(walls[rank] for rank in ranks)
        saveable = _evened(parts, ranks, totals, count)
        rows.append(
            {
                "group": ", ".join(map(str, group)),
                "step_ns": wall,
                "profiled": len(ranks),
                "longest_rank": longest,
                "computing_ns": totals[longest],
                "mean_computing_ns": totals.mean(),
                "ratio": 1 + share(saveable, totals.mean()),
                "rows_ratio": share(tokens[longest], tokens.mean()),
                "exchanges": float((parts[longest].phases_ns > 0).sum()) / count,
                "longest_wait_ns": max(parts[rank].wait_ns for rank in ranks if rank != longest),
                "saveable_ns": saveable,
                "saveable_share": share(saveable, wall),
            }
        )
    frame, subjects = pd.DataFrame(rows), list(ranks_of_group.values())

    def evidence(number: int) -> Sequence[Reference]:
        ranks, longest = subjects[number], int(frame["longest_rank"].iloc[number])
        shown: list[dict[str, Scalar]] = [
            {
                "rank": rank,
                "computing": float(parts[rank].phases_ns.sum()) / len(windows[rank]),
                "rows": parts[rank].rows,
                "waits": parts[rank].wait_ns,
            }
            for rank in ranks
        ]
        kernels = records(
            parts[longest].longest, file="file", line="line", type="type", start="start_ns", duration="duration_ns"
        )
        return [
            Metric(message("communication_job.per_expert_rank"), shown),
            Metric(message("communication_job.longest", rank=longest), kernels),
        ]

    def losers(number: int) -> Sequence[int]:
        longest = int(frame["longest_rank"].iloc[number])
        return sorted(
            (rank for rank in subjects[number] if rank != longest), key=lambda rank: (-parts[rank].wait_ns, rank)
        )

    def cure(number: int) -> EvenWork:
        ranks = subjects[number]
        return EvenWork(tuple(ranks), frozenset().union(*(parts[rank].types for rank in ranks)))

    return Observations(frame, evidence, losers, cure)


def _evened(parts: Mapping[int, ExpertPart], ranks: Sequence[int], totals: pd.Series, steps: int) -> float:
    """ns per step: in each phase all wait for the longest. Where the ranks do not have the same phases, of the sums."""
    if len({len(parts[rank].phases_ns) for rank in ranks}) > 1:
        return float(totals.max() - totals.mean())
    phases = np.stack([parts[rank].phases_ns for rank in ranks])
    return float((phases.max(axis=0) - phases.mean(axis=0)).sum()) / steps
