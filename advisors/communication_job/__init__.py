"""Communication compared between the ranks of a job: who is late, and how evenly the work is shared out.

Uneven parts make the other ranks wait, which looks like slow communication on their side.

Ranks are told apart by the recorded communication groups: the group in which a rank sends to and receives from its
neighbours is its pipeline, in order of stages; the group of its all-to-all operations shares out the experts.
"""

from __future__ import annotations

from advisors.communication_job import bubble, experts, late_rank, pipelines, stages, sums

FACTS = (
    pipelines.pipeline_part,
    experts.expert_part,
    sums.layout,
)
ADVISORS = (
    late_rank.late_rank,
    stages.stages,
    experts.experts,
    bubble.bubble,
    sums.sums,
)
