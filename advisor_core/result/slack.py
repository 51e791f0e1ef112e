"""Slack: what the end of a step does not wait for."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.text.base import Model


class Slack(Model):
    """The kernels of an operator type, or the calls of a collective, that take 0.5 % of a step or more. Times are of
    one step, by the unchanged replay of the job."""

    kind: Literal["operator", "collective"]
    name: str = Field(description="type of the operator, its class where that is not recorded, or the collective")
    ns: int = Field(
        description="durations, mean over the ranks; of a collective that joins recorded ranks without the waiting for "
        "the last of them"
    )
    on_path_ns: int = Field(description="time that the end of a step waits for it, as in `critical_path`")
    least_ns: int | None = Field(
        description="any one of them could take so much longer, in every turn of a long run of the recorded steps, and "
        "these would take no longer: the one for which that is least; none where nothing waits for any of them"
    )
    middle_ns: int | None = Field(description="as `least_ns`, of the middle one")
