"""CO013: the part of a pipeline's waiting that its schedule makes necessary."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from advisor_core.api import Scalar
from advisor_core.api.advisors import (
    Column,
    Metric,
    MoreMicroBatches,
    Observations,
    Params,
    Reference,
    job_advisor,
)
from advisor_core.api.facts import JobFacts, ledger, steps
from advisors.columns import COMPUTING, LONGEST_STEP_NS, RANK, SHARE_OF_STEP, WAITS
from advisors.communication_job.pipelines import pipeline_of, pipeline_part
from advisors.measuring import share
from advisors.messages import message


@job_advisor(
    "communication_job.bubble",
    needs=(pipeline_part, ledger, steps),
    columns=(
        LONGEST_STEP_NS,
        Column("stages", "int", "count", "stages of the pipeline", zh="级数"),
        Column("micro_batches", "float", "count", "micro-batches per step, times virtual stages", zh="micro-batch 数"),
        Column(
            "bubble_share",
            "float",
            "ratio",
            "slots without work, (p - 1) / (m + p - 1), however even the stages",
            zh="空泡占比",
        ),
        Column(
            "bubble_ns",
            "float",
            "ns",
            "time of these slots: (p - 1) times the mean computing of a micro-batch",
            zh="流水线空泡",
        ),
        Column("ns_share", "float", "ratio", "bubble_ns over wall time", zh="时间占比"),
        Column(
            "longest_wait_ns", "float", "ns", "longest waiting of a rank for its neighbours, per step", zh="最长等待"
        ),
    ),
    evidence=(
        Column("stage", "int", "", "stage of the pipeline, from 0", zh="流水级"),
        RANK,
        COMPUTING,
        WAITS,
        SHARE_OF_STEP,
    ),
)
def bubble(facts: JobFacts, params: Params) -> Observations:
    """The part of a pipeline's waiting that its schedule makes necessary."""
    pipeline = pipeline_of(facts)
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
        return [Metric(message("communication_job.per_stage"), rows)]

    lines = {part.members for part in facts.ranks(pipeline_part).values() if len(part.members) == count}
    cure = MoreMicroBatches(tuple(sorted(lines)))
    return Observations(frame, evidence, lambda number: losers, lambda number: cure)
