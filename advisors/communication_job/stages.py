"""CO011: pipeline stages that compute for different times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, KernelsTake, Metric, Observations, Params, Reference, job_advisor
from advisor_core.api.facts import JobFacts, ledger, steps
from advisors.columns import COMPUTING, KERNEL, LONGEST_STEP_NS, SAVEABLE_SHARE, WAITS
from advisors.communication_job.even_stages import EvenStages, even_stages
from advisors.communication_job.pipelines import Pipeline, PipelinePart, pipeline_of, pipeline_part
from advisors.measuring import records, share
from advisors.messages import message


@job_advisor(
    "communication_job.stages",
    needs=(pipeline_part, ledger, steps),
    about=(Column("stage", "int", "", "the stage that computes longest, from 0", zh="流水级"),),
    columns=(
        LONGEST_STEP_NS,
        Column("stages", "int", "count", "stages of the pipeline", zh="级数"),
        Column("stage_ranks", "text", "", "profiled ranks of this stage", zh="该级的 rank"),
        Column("is_last", "bool", "", "it is the last stage", zh="是否末级"),
        Column(
            "computing_ns",
            "float",
            "ns",
            "what it computes per step, without the optimizer, on its fastest rank",
            zh="计算",
        ),
        Column("mean_computing_ns", "float", "ns", "mean of the same over all stages", zh="平均计算"),
        Column("ratio", "float", "ratio", "computing_ns over mean_computing_ns", zh="比值"),
        Column(
            "slowness",
            "float",
            "ratio",
            "what kernels of the same type, shapes and dtypes take on it, over the mean of all stages; 1 unknown",
            zh="同样 kernel 的耗时比",
        ),
        Column("stage_layers", "text", "", "layers of each stage that are alike, '' unknown", zh="各级层数"),
        Column(
            "even_layers",
            "text",
            "",
            "the same, spread as evenly as whole layers can be, '' unknown",
            zh="均衡后各级层数",
        ),
        Column("micro_batches", "float", "count", "micro-batches per step, times virtual stages", zh="micro-batch 数"),
        Column("saveable_ns", "float", "ns", "by how much an even split would shorten a step", zh="可节省"),
        SAVEABLE_SHARE,
        Column("operator", "text", "", "operator type on which it spends most more than the others do", zh="算子"),
        Column(
            "operator_excess_ns", "float", "ns", "how much more than the mean of the others, per step", zh="算子多出"
        ),
        Column(
            "longest_wait_ns",
            "float",
            "ns",
            "longest waiting of a rank of another stage for its neighbours",
            zh="最长等待",
        ),
    ),
    evidence=(
        COMPUTING,
        WAITS,
        Column("this_stage", "float", "ns", "of the longest stage, per step", zh="该级"),
        Column("others", "float", "ns", "of the other stages, per step", zh="其他"),
        *KERNEL,
    ),
)
def stages(facts: JobFacts, params: Params) -> Observations:
    """Stages of a pipeline that compute for different times, and what an even split would save."""
    pipeline, parts = pipeline_of(facts), facts.ranks(pipeline_part)
    longest, mean = int(pipeline.computing.argmax()), float(pipeline.computing.mean())
    most, wall = float(pipeline.computing[longest]), pipeline.wall_ns
    longest_ranks = pipeline.stages[longest]
    other_ranks = [rank for number, stage in enumerate(pipeline.stages) if number != longest for rank in stage]
    # A step lasts as long as one micro-batch through all stages and the other m - 1 through the longest one, which gets
    # shorter.
    slots, even = pipeline.slots, even_stages(pipeline)
    saveable = (slots - 1) / slots * max(most - float(even.quickest.max()), 0.0)
    excess = _type_excess(parts, longest_ranks, other_ranks)
    losers = pipeline.losers(other_ranks)
    frame = pd.DataFrame(
        [
            {
                "stage": longest,
                "step_ns": wall,
                "stages": len(pipeline.stages),
                "stage_ranks": ", ".join(map(str, longest_ranks)),
                "is_last": longest == len(pipeline.stages) - 1,
                "computing_ns": most,
                "mean_computing_ns": mean,
                "ratio": share(most, mean),
                "slowness": float(even.slower[longest]),
                "stage_layers": "" if even.layers is None else ", ".join(map(str, even.layers)),
                "even_layers": "" if even.even is None else ", ".join(map(str, even.even)),
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
                "stage_ranks": ", ".join(map(str, stage)),
                "computing": float(pipeline.computing[place]),
                "waits": max(pipeline.waits[rank] for rank in stage),
            }
            for place, stage in enumerate(pipeline.stages)
        ]
        references: list[Reference] = [Metric(message("communication_job.per_stage"), per_stage)]
        if len(excess):
            rows = records(excess.reset_index(names="type"), type="type", this_stage="own", others="others")
            title = message("communication_job.more", stage=longest)
            references.append(Metric(title, rows))
        kernels = parts[longest_ranks[0]].longest
        rows = records(kernels, file="file", line="line", type="type", start="start_ns", duration="duration_ns")
        title = message("communication_job.longest", rank=longest_ranks[0])
        return [*references, Metric(title, rows)]

    return Observations(frame, evidence, lambda number: losers or longest_ranks, lambda number: _even(pipeline, even))


def _even(pipeline: Pipeline, even: EvenStages) -> KernelsTake:
    """Stages with even layers, each at its own speed; at most a stage that is slow gets less work."""
    return KernelsTake(_takes(pipeline, even.computing), most=KernelsTake(_takes(pipeline, even.quickest)))


def _takes(pipeline: Pipeline, computing: np.ndarray) -> dict[int, float]:
    """Rank to the share of their time that its kernels take where each stage computes for ``computing`` ns."""
    share = computing / np.maximum(pipeline.computing, 1)
    return {rank: float(share[n]) for n, stage in enumerate(pipeline.stages) for rank in stage if pipeline.computing[n]}


def _type_excess(
    parts: Mapping[int, PipelinePart], longest_ranks: Sequence[int], other_ranks: Sequence[int]
) -> pd.DataFrame:
    """Per operator type that takes longer on ``longest_ranks``: ns per step there, on ``other_ranks``, and the
    difference; largest first. Means over ranks."""
    per_rank = pd.DataFrame({rank: parts[rank].by_type for rank in (*longest_ranks, *other_ranks)}).fillna(0.0)
    excess = pd.DataFrame(
        {"own": per_rank[list(longest_ranks)].mean(axis=1), "others": per_rank[list(other_ranks)].mean(axis=1)}
    )
    excess["more"] = excess["own"] - excess["others"]
    return excess[excess["more"] > 0].sort_values("more", ascending=False, kind="stable")
