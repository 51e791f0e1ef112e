"""The balance of a job: what each rank does in a step beside the others, and what it costs that they differ."""

from __future__ import annotations

from pydantic import Field

from advisor_core.text.base import Model, Text


class RankBalance(Model):
    """A mean step of a rank, by the ledger, and what the replay of the job tells of the rank; what is ``None`` is not
    known."""

    rank: int
    stage: int | None = Field(
        None, description="of the pipeline, from 0, by the recorded sizes of the layout; none where it has one only"
    )
    step_ns: int
    computing_ns: int
    communicating_ns: int = Field(description="while nothing computes and no rank is waited for")
    waiting_ns: int | None = Field(description="for other ranks, while nothing computes")
    idle_ns: int
    slowdown: float | None = Field(
        None,
        description="a step in which this rank is as recorded and each other one takes the mean of the ranks that do "
        "the same work, over one in which all do; told of the 16 ranks that take most longer than their peers",
    )
    slack_ns: int | None = Field(
        None, description="any one thing that it does could take so much longer, as `Slack.least_ns`"
    )
    on_path_ns: int | None = Field(None, description="time of a step that its end waits for this rank")


class StageBalance(Model):
    """``slowdown``: a step in which the kernels of this stage take as long as recorded and those of each other one the
    mean of all stages, over one in which all take that mean; not told of a stage that takes less than the mean."""

    stage: int
    ranks: list[int]
    slowdown: float | None = None


class Balance(Model):
    """``step_ns``: as of `Plan`; ``ideal_ns``: if in each part of its work each rank took the mean of those that do the
    same. What the ranks that are slower cost: ``slowdown``, of these the first over the second; ``waste_ns``: their
    difference on all ranks that are replayed together, time of devices in each step. ``tensor_ranks``: how many
    neighbouring ranks share each tensor, 1 where it is not recorded."""

    ranks: list[RankBalance]
    stages: list[StageBalance] = Field(default_factory=list)
    tensor_ranks: int = 1
    step_ns: int | None = None
    ideal_ns: int | None = None
    slowdown: float | None = None
    waste_ns: int | None = None
    unknown: Text | None = Field(None, description="why the slowdown is not known")
