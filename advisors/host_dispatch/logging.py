"""HD011: the log level of CANN."""

from __future__ import annotations

from advisor_core.api.advisors import Column, Observations, Params, advisor
from advisor_core.api.facts import PROFILE, Facts
from advisors.host_dispatch.host_events import recorded_variable
from advisors.measuring import row


@advisor(
    "host_dispatch.logging",
    needs=(PROFILE,),
    columns=(Column("log_level", "text", "", "ASCEND_GLOBAL_LOG_LEVEL as recorded, '' = unset", zh="日志级别"),),
)
def logging(facts: Facts, params: Params) -> Observations:
    """The log level of CANN."""
    profile = facts[PROFILE]
    frame = row(log_level=profile.variables.get("ASCEND_GLOBAL_LOG_LEVEL"))
    return Observations(frame, lambda number: [recorded_variable(profile, "ASCEND_GLOBAL_LOG_LEVEL")])
