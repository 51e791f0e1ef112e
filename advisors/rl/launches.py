"""RL004: a rollout that waits for launches, and what it would save to replay its passes as graphs."""

from __future__ import annotations

from advisor_core.api.advisors import Observations, Params, advisor
from advisor_core.api.facts import HOST_EVENTS, PROFILE, Facts, host_activity, judged_parts, launches, replay
from advisors.host_dispatch.capture import captured_engine
from advisors.rl.columns import PHASE
from advisors.rl.phase_idle import COLUMNS, EVIDENCE, NEEDS, WANTS, PhaseIdle


@advisor(
    "rl.launches",
    needs=(*NEEDS, PROFILE),
    wants=(*WANTS, HOST_EVENTS, launches, host_activity, replay, judged_parts),
    about=PHASE,
    columns=COLUMNS,
    evidence=EVIDENCE,
)
def rollout_launches(facts: Facts, params: Params) -> Observations:
    """Idle time of the device in each phase; of a rollout with what graphs of its passes would save."""
    found = PhaseIdle(facts)
    return Observations(found.frame, found.evidence, cure=lambda _: captured_engine(facts))
