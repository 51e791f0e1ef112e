"""The subjects of the advisors of phases."""

from __future__ import annotations

from advisor_core.api.advisors import Column

PHASE = (
    Column("phase", "text", "", "the phase of the iteration, as it is marked or as its role is called", zh="阶段"),
)


KIND = Column("kind", "text", "", "the known phase that it is: rollout, log_prob, reward ..., '' unknown", zh="类别")
