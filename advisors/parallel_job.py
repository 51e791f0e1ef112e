"""Balance of pipeline stages and of expert groups between ranks. Uneven parts make the other ranks wait, which looks
like slow communication on their side.

Ranks are told apart by the recorded communication groups: the group in which a rank sends to and receives from its
neighbours is its pipeline, in order of stages; the group of its all-to-all operations shares out the experts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, job_advisor
from advisor_core.api.facts import (
    KERNELS,
    POINT_TO_POINT,
    PROFILE,
    Facts,
    JobFacts,
    NotApplicable,
    Profile,
    Unavailable,
    collective_calls,
    fact,
    ledger,
    per_text,
    shapes_of,
    steps,
    work,
)
from advisors.measuring import records, share, step_count
from advisors.messages import message

_OPTIMIZER = "compute/optimizer"
_P2P_WAIT = ("communication/wait/pipeline", "communication/unknown")
_SHOWN = 10
_CONTROL = 0.01
"""A message below this part of the largest carries shapes or flags, not activations."""


@dataclass(frozen=True)
class PipelinePart:
    """The part of one rank in its pipeline. ``members``: the ranks of its pipeline in order of stages.
    ``operations``: send and receive operations per step, ``sends`` of which only send. ``by_type``: computing per step
    by operator type (class where types are not recorded), ns. ``longest``: its longest kernels with where they stand
    in the profile."""

    members: tuple[int, ...]
    operations: float
    sends: float
    by_type: pd.Series
    longest: pd.DataFrame


@fact(
    "pipeline_part",
    needs=(PROFILE, steps, work, collective_calls),
    wants=(KERNELS,),
    shared=True,
)
def pipeline_part(facts: Facts) -> PipelinePart:
    """The pipeline that a rank belongs to, and what the rank computes."""
    profile = facts[PROFILE]
    calls = facts[collective_calls]
    between = calls["operation"].str.contains(POINT_TO_POINT.pattern, case=False, regex=True)
    own = calls[between & (calls["step"] >= 0)]
    size = profile.parallel.get("pp")
    if own.empty or size == 1:  # context parallelism in a ring sends and receives as well
        raise NotApplicable(message("parallel_job.no_pipeline"))
    own = own[~((own["bytes"] > 0) & (own["bytes"] < _CONTROL * own["bytes"].max()))]
    steps = step_count(facts)
    members = _members(own["group"], profile, "pp")
    if size is not None and len(members) != size:
        members = _by_order(profile)
    if len(members) < 2 or profile.rank not in members:
        raise Unavailable(message("parallel_job.no_groups"), message("parallel_job.no_groups.collect"))
    sends = own["operation"].str.fullmatch("send", case=False).sum()
    device = _in_steps(facts)
    return PipelinePart(members, len(own) / steps, sends / steps, _by_type(device, steps), _longest(facts, device))


def _members(groups: pd.Series, profile: Profile, dimension: str) -> tuple[int, ...]:
    """The recorded group in which most of the operations took place; of several those of the size recorded for this
    dimension first."""
    counts, size = groups.value_counts(), profile.parallel.get(dimension)
    found = [
        (size is not None and len(ranks) == size, int(count), tuple(ranks))
        for group, count in zip(counts.index.tolist(), counts.tolist(), strict=True)
        for key, ranks in profile.groups.items()
        if group and key.endswith(str(group))
    ]
    return max(found, default=(False, 0, ()))[2]


def _by_order(profile: Profile) -> tuple[int, ...]:
    """Without recorded groups, from the sizes: stages are the outermost dimension, as Megatron numbers ranks."""
    stages, world = profile.parallel.get("pp", 1), profile.world_size or 0
    if stages < 2 or world % stages:
        return ()
    stride = world // stages
    return tuple(range(profile.rank % stride, world, stride))


def _in_steps(facts: Facts) -> pd.DataFrame:
    """Computing within the steps."""
    windows, device = facts[steps], facts[work]
    inside = (device["start_ns"] >= windows["start_ns"].min()) & (device["start_ns"] < windows["end_ns"].max())
    own: pd.DataFrame = device[inside & ~device["communication"]]
    return own


def _by_type(device: pd.DataFrame, steps: int) -> pd.Series:
    kinds = device["type"].astype(str)
    kinds = kinds.where(kinds != "", device["operator_class"].astype(str))
    return (device["end_ns"] - device["start_ns"]).groupby(kinds).sum() / steps


def _longest(facts: Facts, device: pd.DataFrame) -> pd.DataFrame:
    """The longest kernels: ``file``, ``line`` (rowid of a DB), ``type``, ``start_ns``, ``duration_ns``."""
    longest = (device["end_ns"] - device["start_ns"]).rename("duration_ns").nlargest(_SHOWN)
    shown = device.loc[longest.index, ["row", "type", "start_ns"]].assign(duration_ns=longest)
    shown["type"] = shown["type"].astype(str)
    table = facts[PROFILE].tables.get("kernels")
    known = facts.get(KERNELS) is not None and table is not None
    shown["file"] = table.source.file if known and table is not None else ""
    shown["line"] = table.positions(shown["row"].to_numpy()) if known and table is not None else -1
    return shown.reset_index(drop=True)


@dataclass(frozen=True)
class _Pipeline:
    """``stages``: ranks of each stage that were profiled. ``computing``: ns per step of each stage, on the fastest of
    its ranks: what the stage has to do, not what a slow rank makes of it. ``slots``: micro-batches per step (times
    virtual stages), NaN unknown. ``waits``: ns per step and rank."""

    stages: list[list[int]]
    computing: np.ndarray
    slots: float
    waits: dict[int, float]
    walls: dict[int, float]

    @property
    def wall_ns(self) -> float:
        return max(self.walls.values())

    def losers(self, ranks: Sequence[int]) -> list[int]:
        """Those of ``ranks`` that wait, longest first."""
        return sorted((rank for rank in ranks if self.waits[rank] > 0), key=lambda rank: (-self.waits[rank], rank))


def _pipeline(facts: JobFacts) -> _Pipeline:
    parts = facts.ranks(pipeline_part)
    length = max(len(part.members) for part in parts.values())
    stages = [
        sorted(rank for rank, part in parts.items() if len(part.members) == length and part.members.index(rank) == n)
        for n in range(length)
    ]
    if not all(stages):
        raise Unavailable(message("parallel_job.stages"), message("parallel_job.stages.collect"), ("all_ranks",))
    ranks = [rank for stage in stages for rank in stage]
    booked, windows = facts.ranks(ledger), facts.ranks(steps)
    per_leaf = {rank: booked[rank].groupby("path")["ns"].sum() / len(windows[rank]) for rank in ranks}
    computes = {
        rank: float(leaf[leaf.index.str.startswith("compute/") & (leaf.index != _OPTIMIZER)].sum())
        for rank, leaf in per_leaf.items()
    }
    return _Pipeline(
        stages,
        np.array([min(computes[rank] for rank in stage) for stage in stages]),
        _slots(parts, stages),
        {rank: float(leaf.reindex(_P2P_WAIT, fill_value=0).sum()) for rank, leaf in per_leaf.items()},
        {rank: float(leaf.sum()) for rank, leaf in per_leaf.items()},
    )


def _slots(parts: Mapping[int, PipelinePart], stages: list[list[int]]) -> float:
    """Micro-batches per step, from what the last stage exchanges with the one before it: it receives each and sends
    its gradient back. Batched, the gradient of one goes together with the next: one operation more than micro-batches.
    """
    last = parts[stages[-1][0]]
    slots = last.sends if last.sends else last.operations - 1
    return float(slots) if slots >= 1 else float("nan")


# --- CO011: uneven stages


@job_advisor(
    "communication_job.stages",
    needs=(pipeline_part, ledger, steps),
    about=(Column("stage", "int", "", "the stage that computes longest, from 0"),),
    columns=(
        Column("step_ns", "float", "ns", "wall time of a step of the rank with the longest"),
        Column("stages", "int", "count", "stages of the pipeline"),
        Column("stage_ranks", "text", "", "profiled ranks of this stage"),
        Column("is_last", "bool", "", "it is the last stage"),
        Column("computing_ns", "float", "ns", "what it computes per step, without the optimizer, on its fastest rank"),
        Column("mean_computing_ns", "float", "ns", "mean of the same over all stages"),
        Column("ratio", "float", "ratio", "computing_ns over mean_computing_ns"),
        Column("micro_batches", "float", "count", "micro-batches per step, times virtual stages"),
        Column("saveable_ns", "float", "ns", "by how much an even split would shorten a step"),
        Column("saveable_share", "float", "ratio", "saveable_ns over wall time"),
        Column("operator", "text", "", "operator type on which it spends most more than the others do"),
        Column("operator_excess_ns", "float", "ns", "how much more than the mean of the others, per step"),
        Column("longest_wait_ns", "float", "ns", "longest waiting of a rank of another stage for its neighbours"),
    ),
)
def stages(facts: JobFacts, params: Params) -> Observations:
    """Stages of a pipeline that compute for different times, and what an even split would save."""
    pipeline, parts = _pipeline(facts), facts.ranks(pipeline_part)
    longest, mean = int(pipeline.computing.argmax()), float(pipeline.computing.mean())
    most, wall = float(pipeline.computing[longest]), pipeline.wall_ns
    own = pipeline.stages[longest]
    others = [rank for number, stage in enumerate(pipeline.stages) if number != longest for rank in stage]
    # A step lasts as long as one micro-batch through all stages and the other m - 1 through the longest one; with even
    # stages all of that takes the mean.
    slots = pipeline.slots
    saveable = (slots - 1) / slots * (most - mean)
    excess = _type_excess(parts, own, others)
    losers = pipeline.losers(others)
    frame = pd.DataFrame(
        [
            {
                "stage": longest,
                "step_ns": wall,
                "stages": len(pipeline.stages),
                "stage_ranks": ", ".join(map(str, own)),
                "is_last": longest == len(pipeline.stages) - 1,
                "computing_ns": most,
                "mean_computing_ns": mean,
                "ratio": share(most, mean),
                "micro_batches": slots,
                "saveable_ns": saveable,
                "saveable_share": share(saveable, wall),
                "operator": excess.index[0] if len(excess) else None,
                "operator_excess_ns": float(excess["more"].iloc[0]) if len(excess) else np.nan,
                "longest_wait_ns": pipeline.waits[losers[0]] if losers else 0.0,
            }
        ]
    )

    def evidence(number: int) -> Sequence[Reference]:
        per_stage: list[dict[str, Scalar]] = [
            {
                "stage": place,
                "ranks": ", ".join(map(str, stage)),
                "computing": float(pipeline.computing[place]),
                "waits": max(pipeline.waits[rank] for rank in stage),
            }
            for place, stage in enumerate(pipeline.stages)
        ]
        units = {"computing": "ns", "waits": "ns"}
        found: list[Reference] = [Metric(message("parallel_job.per_stage"), per_stage, units)]
        if len(excess):
            rows = records(excess.reset_index(names="type"), type="type", this_stage="own", others="others")
            title = message("parallel_job.more", stage=longest)
            found.append(Metric(title, rows, {"this_stage": "ns", "others": "ns"}))
        kernels = parts[own[0]].longest
        rows = records(kernels, file="file", line="line", type="type", start="start_ns", duration="duration_ns")
        title = message("parallel_job.longest", rank=own[0])
        return [*found, Metric(title, rows, {"start": "ns", "duration": "ns"})]

    return Observations(frame, evidence, lambda number: losers or own)


def _type_excess(parts: Mapping[int, PipelinePart], own: Sequence[int], others: Sequence[int]) -> pd.DataFrame:
    """Per operator type that takes longer on ``own``: ns per step there, on ``others``, and the difference; largest
    first. Means over ranks."""
    per_rank = pd.DataFrame({rank: parts[rank].by_type for rank in (*own, *others)}).fillna(0.0)
    found = pd.DataFrame({"own": per_rank[list(own)].mean(axis=1), "others": per_rank[list(others)].mean(axis=1)})
    found["more"] = found["own"] - found["others"]
    return found[found["more"] > 0].sort_values("more", ascending=False, kind="stable")


# --- CO013: few micro-batches


@job_advisor(
    "communication_job.bubble",
    needs=(pipeline_part, ledger, steps),
    columns=(
        Column("step_ns", "float", "ns", "wall time of a step of the rank with the longest"),
        Column("stages", "int", "count", "stages of the pipeline"),
        Column("micro_batches", "float", "count", "micro-batches per step, times virtual stages"),
        Column("bubble_share", "float", "ratio", "slots without work, (p - 1) / (m + p - 1), however even the stages"),
        Column("bubble_ns", "float", "ns", "time of these slots: (p - 1) times the mean computing of a micro-batch"),
        Column("ns_share", "float", "ratio", "bubble_ns over wall time"),
        Column("longest_wait_ns", "float", "ns", "longest waiting of a rank for its neighbours, per step"),
    ),
)
def bubble(facts: JobFacts, params: Params) -> Observations:
    """The part of a pipeline's waiting that its schedule makes necessary."""
    pipeline = _pipeline(facts)
    count, slots, wall = len(pipeline.stages), pipeline.slots, pipeline.wall_ns
    empty = (count - 1) * float(pipeline.computing.mean()) / slots
    losers = pipeline.losers([rank for stage in pipeline.stages for rank in stage])
    frame = pd.DataFrame(
        [
            {
                "step_ns": wall,
                "stages": count,
                "micro_batches": slots,
                "bubble_share": (count - 1) / (slots + count - 1),
                "bubble_ns": empty,
                "ns_share": share(empty, wall),
                "longest_wait_ns": pipeline.waits[losers[0]] if losers else 0.0,
            }
        ]
    )

    def evidence(number: int) -> Sequence[Reference]:
        rows: list[dict[str, Scalar]] = [
            {
                "stage": place,
                "rank": rank,
                "computing": float(pipeline.computing[place]),
                "waits": pipeline.waits[rank],
                "share_of_step": share(pipeline.waits[rank], pipeline.walls[rank]),
            }
            for place, stage in enumerate(pipeline.stages)
            for rank in stage
        ]
        units = {"computing": "ns", "waits": "ns", "share_of_step": "ratio"}
        return [Metric(message("parallel_job.per_stage"), rows, units)]

    return Observations(frame, evidence, lambda number: losers)


# --- CO012: uneven experts

_EXPERTS = "GroupedMatmul"
_FUSED = "MoeDistribute"
"""Kernels that send tokens to their experts and back by themselves, without an all-to-all of their own."""


@dataclass(frozen=True)
class ExpertPart:
    """The part of one rank in a group of experts. ``members``: ranks that share out the experts. ``phases_ns``: its
    grouped products between one exchange of tokens and the next, over all steps. ``rows``: of their first inputs per
    step, NaN unknown. ``wait_ns``: per step in exchanges, uncovered and not moving data. ``longest``: its longest
    grouped products with where they stand in the profile."""

    members: tuple[int, ...]
    phases_ns: np.ndarray
    rows: float
    wait_ns: float
    longest: pd.DataFrame


@fact(
    "expert_part",
    needs=(PROFILE, steps, work),
    wants=(KERNELS, collective_calls),
    shared=True,
)
def expert_part(facts: Facts) -> ExpertPart:
    """The experts of a rank: how long they compute between exchanges of tokens."""
    profile = facts[PROFILE]
    device, steps = _in_steps(facts), step_count(facts)
    kinds = device["type"].astype(str)
    experts = device[kinds.str.contains(_EXPERTS, case=False)]
    if experts.empty:
        raise NotApplicable(message("parallel_job.no_experts"))
    calls = facts.get(collective_calls)
    exchanges = pd.DataFrame()
    if calls is not None:
        sends = calls["operation"].str.contains("alltoall", case=False)
        exchanges = calls[sends & (calls["step"] >= 0)]
    fused = device[kinds.str.contains(_FUSED, case=False)]
    if exchanges.empty and fused.empty:
        raise NotApplicable(message("parallel_job.no_experts"))
    borders = exchanges if len(exchanges) else fused
    recorded = _members(exchanges["group"], profile, "ep") if len(exchanges) else _of_size(profile, "ep")
    if len(recorded) < 2:
        raise Unavailable(message("parallel_job.no_groups"), message("parallel_job.no_groups.collect"))
    phase = np.searchsorted(np.sort(borders["start_ns"].to_numpy()), experts["start_ns"].to_numpy())
    lengths = (experts["end_ns"] - experts["start_ns"]).to_numpy()
    waiting = exchanges["uncovered_ns"] - exchanges["transmit_ns"] if len(exchanges) else pd.Series(dtype=float)
    return ExpertPart(
        recorded,
        np.bincount(phase, weights=lengths, minlength=len(borders) + 1),
        _rows(facts, experts) / steps,
        float(waiting.sum()) / steps,
        _longest(facts, experts),
    )


def _of_size(profile: Profile, dimension: str) -> tuple[int, ...]:
    """The only recorded group of the size of a dimension; empty where there is none, or several that differ."""
    size = profile.parallel.get(dimension)
    found = {tuple(ranks) for ranks in profile.groups.values() if len(ranks) == size}
    return found.pop() if len(found) == 1 else ()


def _rows(facts: Facts, experts: pd.DataFrame) -> float:
    """Rows of the first inputs of grouped products, which are tokens."""
    if facts.get(KERNELS) is None:
        return float("nan")
    shapes = facts[KERNELS]["input_shapes"].iloc[experts["row"].to_numpy()]
    rows = per_text(shapes, lambda text: next((shape[0] for shape in shapes_of(text) if shape), -1))
    known = rows[rows > 0].astype(float)
    return float(known.sum()) if len(known) else float("nan")


@job_advisor(
    "communication_job.experts",
    needs=(expert_part, ledger, steps),
    about=(Column("group", "text", "", "ranks that share out the experts"),),
    columns=(
        Column("step_ns", "float", "ns", "wall time of a step of the rank with the longest"),
        Column("profiled", "int", "count", "of these ranks in the profile"),
        Column("longest_rank", "int", "", "the rank whose experts compute longest"),
        Column("computing_ns", "float", "ns", "grouped products of that rank, per step"),
        Column("mean_computing_ns", "float", "ns", "mean of the same over the profiled ranks"),
        Column("ratio", "float", "ratio", "the longest over the mean of the ranks, in each phase, all phases together"),
        Column("rows_ratio", "float", "ratio", "rows that its experts work on over the mean of all"),
        Column("exchanges", "float", "count", "phases between exchanges of tokens in which experts compute, per step"),
        Column("longest_wait_ns", "float", "ns", "longest waiting of another rank in exchanges of tokens, per step"),
        Column("saveable_ns", "float", "ns", "longest less mean of each phase, summed, per step"),
        Column("saveable_share", "float", "ratio", "saveable_ns over wall time"),
    ),
)
def experts(facts: JobFacts, params: Params) -> Observations:
    """Experts that get different numbers of tokens, and what even ones would save."""
    parts = facts.ranks(expert_part)
    groups = sorted({part.members for part in parts.values()})
    found = {group: sorted(rank for rank in parts if parts[rank].members == group) for group in groups}
    found = {group: ranks for group, ranks in found.items() if len(ranks) > 1}
    if not found:
        raise Unavailable(message("parallel_job.experts_alone"), message("parallel_job.stages.collect"), ("all_ranks",))
    windows, ledgers = facts.ranks(steps), facts.ranks(ledger)
    walls = {rank: float(ledgers[rank]["ns"].sum()) / len(windows[rank]) for rank in parts}
    rows = []
    for group, ranks in found.items():
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
    frame, subjects = pd.DataFrame(rows), list(found.values())

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
        units = {"computing": "ns", "waits": "ns", "rows": "count"}
        kernels = records(
            parts[longest].longest, file="file", line="line", type="type", start="start_ns", duration="duration_ns"
        )
        return [
            Metric(message("parallel_job.per_expert_rank"), shown, units),
            Metric(message("parallel_job.longest", rank=longest), kernels, {"start": "ns", "duration": "ns"}),
        ]

    def losers(number: int) -> Sequence[int]:
        longest = int(frame["longest_rank"].iloc[number])
        return sorted(
            (rank for rank in subjects[number] if rank != longest), key=lambda rank: (-parts[rank].wait_ns, rank)
        )

    return Observations(frame, evidence, losers)


def _evened(parts: Mapping[int, ExpertPart], ranks: Sequence[int], totals: pd.Series, steps: int) -> float:
    """ns per step: in each phase all wait for the longest. Where the ranks do not have the same phases, of the sums."""
    if len({len(parts[rank].phases_ns) for rank in ranks}) > 1:
        return float(totals.max() - totals.mean())
    phases = np.stack([parts[rank].phases_ns for rank in ranks])
    return float((phases.max(axis=0) - phases.mean(axis=0)).sum()) / steps


FACTS = (pipeline_part, expert_part)
ADVISORS = (stages, experts, bubble)
