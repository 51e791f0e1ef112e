"""CO016: AIV expansion of collectives beside fused kernels that communicate themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from advisor_core.api.advisors import Column, Observations, Params, Reference, Setting, advisor
from advisor_core.api.facts import PROFILE, Facts, NotApplicable, Unavailable, matching, steps, work
from advisors.fused_communication import FUSED_COMMUNICATION
from advisors.measuring import next_kernels, row, step_count
from advisors.messages import message

_VARIABLE: Final = "HCCL_OP_EXPANSION_MODE"


@advisor(
    "communication.expansion",
    needs=(PROFILE, steps, work),
    columns=(
        Column("mode", "text", "", "recorded value of HCCL_OP_EXPANSION_MODE, '' unset", zh="展开模式"),
        Column("vector_cores", "bool", "", "it expands collectives on the vector cores", zh="在 AIV 上展开"),
        Column("fused_calls", "float", "count", "fused kernels that communicate, per step", zh="融合通信次数"),
        Column("operator", "text", "", "type of most of them", zh="算子"),
    ),
)
def expansion(facts: Facts, params: Params) -> Observations:
    """The processor on which collectives are expanded, in a job that has fused kernels which communicate themselves."""
    device, profile = facts[work], facts[PROFILE]
    rows = matching(device["type"], FUSED_COMMUNICATION)
    if not rows.any():
        raise NotApplicable(message("communication.no_fused"))
    if not profile.variables:
        raise Unavailable(message("communication.no_variables"), message("communication.no_variables.collect"))
    mode = profile.variables.get(_VARIABLE, "")
    frame = row(
        mode=mode,
        vector_cores="AIV" in mode.upper(),
        fused_calls=float(rows.sum()) / step_count(facts),
        operator=str(device["type"][rows].astype(str).mode().iloc[0]),
    )

    def evidence(number: int) -> Sequence[Reference]:
        setting = Setting(
            message("communication.variable"), _VARIABLE, mode, profile.setting_files.get("variables", "")
        )
        return [setting, *next_kernels(facts, rows.nonzero()[0].tolist())]

    return Observations(frame, evidence)
