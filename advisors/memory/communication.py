"""ME005: buffers of communication."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    MEMORY_RECORD,
    MODULE_MEMORY,
    PROFILE,
    Facts,
    NotApplicable,
    memory_capacity,
)
from advisors.measuring import row, share
from advisors.memory.capacity import CAPACITY, used_of_capacity
from advisors.messages import message

_BUFFSIZE = 200 * 1024 * 1024
"""Bytes of HCCL_BUFFSIZE unless set; a communicator takes it twice, for what it sends and what it receives."""


@advisor(
    "memory.communication",
    needs=(MODULE_MEMORY, PROFILE),
    wants=(memory_capacity, MEMORY_RECORD, COLLECTIVES),
    params=("capacity",),
    columns=(
        *CAPACITY,
        Column("hccl_bytes", "float", "B", "most that HCCL held", zh="HCCL 占用"),
        Column("hccl_share", "float", "ratio", "hccl_bytes over capacity_bytes", zh="HCCL 占比"),
        Column("communicators", "float", "count", "communication groups that the profile knows of", zh="通信域数"),
        Column(
            "default_bytes",
            "float",
            "B",
            "what these take at the default of HCCL_BUFFSIZE, twice per group",
            zh="默认占用",
        ),
    ),
    evidence=(
        Column("hccl", "float", "B", "most that HCCL held", zh="HCCL 占用"),
        Column("default", "float", "B", "what the groups take at the default of HCCL_BUFFSIZE", zh="默认占用"),
    ),
)
def communication(facts: Facts, params: Params) -> Observations:
    """Memory of the device that the buffers of communication take."""
    modules = facts[MODULE_MEMORY]
    profile = facts[PROFILE]
    buffers = modules[modules["component"] == "HCCL"]
    most = float(buffers["reserved_bytes"].max()) if len(buffers) else 0.0
    if not most > 0:
        raise NotApplicable(message("memory.no_hccl"))
    collectives = facts.get(COLLECTIVES)
    groups = float(collectives["group"].nunique()) if collectives is not None and len(collectives) else np.nan
    groups = np.fmax(groups, float(len(profile.groups)) or np.nan)
    usage = used_of_capacity(facts, params)
    frame = row(
        **usage,
        hccl_bytes=most,
        hccl_share=share(most, float(usage["capacity_bytes"])),
        communicators=groups,
        default_bytes=2 * _BUFFSIZE * groups,
    )

    def evidence(number: int) -> Sequence[Reference]:
        highest = buffers["reserved_bytes"].idxmax()
        counted: list[dict[str, Scalar]] = [{"communicators": groups, "hccl": most, "default": 2 * _BUFFSIZE * groups}]
        columns = ("component", "time_ns", "reserved_bytes")
        return [
            Rows(message("memory.hccl"), MODULE_MEMORY, np.array([highest], dtype=np.int64), columns),
            Metric(message("memory.buffers"), counted),
        ]

    return Observations(frame, evidence)
