"""CO015: the rank that is late, from the sums of every rank where nothing else is recorded.

Ranks that work in step end their steps together. Of ranks that do the same work, each communicates as long as the data
move, and waits beside that for the last to arrive: the last waits for nobody, so it communicates least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, job_advisor
from advisor_core.api.facts import PROFILE, Facts, JobFacts, NotApplicable, Unavailable, fact, rank_summary
from advisors.columns import COMPUTING, IDLE, RANK
from advisors.measuring import records, share
from advisors.messages import message

_PARTS = ["computing_ns", "uncovered_ns", "idle_ns"]


@dataclass(frozen=True)
class Layout:
    """``stages``: of the pipeline, 1 for none; ``world``: ranks of the job, 0 unknown."""

    stages: int
    world: int


@fact("layout", needs=(PROFILE,), shared=True)
def layout(facts: Facts) -> Layout:
    """The layout of the job as one rank records it."""
    profile = facts[PROFILE]
    return Layout(profile.parallel.get("pp", 1), profile.world_size or 0)


@job_advisor(
    "communication_job.sums",
    needs=(rank_summary, layout),
    about=(Column("late", "int", "", "the rank that communicates least", zh="迟到"),),
    columns=(
        Column("step_ns", "float", "ns", "mean wall time of a step of the ranks", zh="step"),
        Column("uneven", "float", "ratio", "longest over shortest step of the ranks, less one", zh="step 差异"),
        Column("ranks", "int", "count", "other ranks that do the same work", zh="rank 数"),
        Column("coarse", "bool", "", "of some of these ranks only sums are recorded", zh="仅有汇总"),
        Column(
            "late_coarse",
            "bool",
            "",
            "of the rank that communicates least only sums are recorded",
            zh="该 rank 仅有汇总",
        ),
        Column("longest_wait_ns", "float", "ns", "what the rank that waits longest communicates more", zh="最长等待"),
        Column("wait_ns", "float", "ns", "what the others communicate more, mean per step", zh="等待"),
        Column("wait_share", "float", "ratio", "longest_wait_ns over the step", zh="等待占比"),
        Column("saveable_ns", "float", "ns", "what the next rank communicates more, per step", zh="可节省"),
        Column("saveable_share", "float", "ratio", "saveable_ns over the step", zh="可节省占比"),
        Column(
            "computing_excess_ns", "float", "ns", "its computing less the median of the others, per step", zh="计算多出"
        ),
        Column("idle_excess_ns", "float", "ns", "its idle time less the median of the others, per step", zh="空闲多出"),
        Column("by_idle", "bool", "", "it idles longer than the others by more than it computes longer", zh="因空闲"),
    ),
    evidence=(
        RANK,
        Column("communicating", "float", "ns", "uncovered communication per step", zh="通信"),
        COMPUTING,
        IDLE,
    ),
)
def sums(facts: JobFacts, params: Params) -> Observations:
    """The rank that communicates least among those that do the same work, and what it has more of."""
    summaries = facts.ranks(rank_summary)
    parts = pd.DataFrame({rank: totals[_PARTS].mean() for rank, totals in sorted(summaries.items())}).T
    layouts = facts.ranks(layout).values()
    stages, world = max(one.stages for one in layouts), max(one.world for one in layouts)
    if stages > 1 and (world < stages or world % stages):
        raise Unavailable(message("communication_job.sums.stages"), message("communication_job.sums.stages.collect"))
    # Ranks of one pipeline stage do the same work: stages are the outermost dimension, as Megatron numbers ranks.
    stage = parts.index // (world // stages) if stages > 1 else parts.index * 0
    coarse = {rank for rank, totals in summaries.items() if (totals["source"] == "exporter").any()}
    groups = [parts[stage == number] for number in sorted(set(stage))]
    rows = [_row(group, coarse) for group in groups if len(group) > 1]
    if not rows:
        raise NotApplicable(message("communication_job.one_rank"))
    frame = pd.DataFrame(rows)

    def evidence(number: int) -> Sequence[Reference]:
        late = frame["late"].iloc[number]
        group = next(group for group in groups if late in group.index)
        table = group.assign(rank=group.index).sort_values("uncovered_ns", kind="stable")
        shown = records(
            table, len(table), rank="rank", communicating="uncovered_ns", computing="computing_ns", idle="idle_ns"
        )
        return [Metric(message("communication_job.sums.ranks"), shown)]

    def losers(number: int) -> Sequence[int]:
        late = frame["late"].iloc[number]
        group = next(group for group in groups if late in group.index)
        return [int(rank) for rank in group["uncovered_ns"].sort_values(ascending=False, kind="stable").index[:-1]]

    return Observations(frame, evidence, losers)


def _row(group: pd.DataFrame, coarse: set[int]) -> dict[str, object]:
    ordered = group["uncovered_ns"].sort_values(kind="stable")
    late = int(ordered.index[0])
    sums_of_others, walls = group.drop(late), group.sum(axis=1)
    more = sums_of_others["uncovered_ns"] - ordered.iloc[0]
    excess = {name: float(group[name][late] - sums_of_others[name].median()) for name in ("computing_ns", "idle_ns")}
    wall = float(walls.mean())
    return {
        "late": late,
        "step_ns": wall,
        "uneven": float(walls.max() / walls.min()) - 1 if walls.min() > 0 else float("inf"),
        "ranks": len(sums_of_others),
        "coarse": bool(coarse & set(group.index)),
        "late_coarse": late in coarse,
        "longest_wait_ns": float(more.max()),
        "wait_ns": float(more.mean()),
        "wait_share": share(float(more.max()), wall),
        "saveable_ns": float(more.min()),
        "saveable_share": share(float(more.min()), wall),
        "computing_excess_ns": excess["computing_ns"],
        "idle_excess_ns": excess["idle_ns"],
        "by_idle": excess["idle_ns"] > excess["computing_ns"],
    }
