"""ME002: what the allocator reserves beyond what tensors take."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, Setting, advisor
from advisor_core.api.facts import (
    MEMORY_RECORD,
    MODULE_MEMORY,
    PROFILE,
    Facts,
    memory_capacity,
    memory_curve,
)
from advisors.measuring import row, share
from advisors.memory.capacity import CAPACITY, used_of_capacity
from advisors.memory.trend import PER_STEP, memory_trend, pace, per_step_table, until_full
from advisors.messages import message


@advisor(
    "memory.fragmentation",
    needs=(memory_curve, PROFILE),
    wants=(memory_trend, memory_capacity, MEMORY_RECORD, MODULE_MEMORY),
    params=("capacity",),
    columns=(
        *CAPACITY,
        Column("reserved_bytes", "float", "B", "most that the framework's allocator had reserved", zh="已预留"),
        Column("allocated_bytes", "float", "B", "most that tensors took of it", zh="已分配"),
        Column(
            "unused_bytes",
            "float",
            "B",
            "reserved_bytes less allocated_bytes: no tensor needed it at any moment",
            zh="未使用显存",
        ),
        Column("unused_share", "float", "ratio", "unused_bytes over reserved_bytes", zh="未使用占比"),
        Column("reserved_rise", "float", "B", "rise of the reserved memory per step", zh="预留每 step 增长"),
        Column(
            "allocated_rise",
            "float",
            "B",
            "rise per step of the most that was allocated in a step",
            zh="分配峰值每 step 增长",
        ),
        Column(
            "growing_steps",
            "float",
            "count",
            "steps in which more was reserved than in any before",
            zh="增长的 step 数",
        ),
        Column(
            "unfit",
            "float",
            "count",
            "reserved memory given back for a request, although more than that was free",
            zh="不合适而归还的次数",
        ),
        Column("steps_to_full", "float", "count", "steps until the device is full at this pace", zh="距占满的 step 数"),
    ),
    evidence=(
        *PER_STEP,
        Column("allocated", "float", "B", "memory of tensors at most", zh="已分配"),
        Column("unused", "float", "B", "reserved less allocated", zh="未使用"),
    ),
)
def fragmentation(facts: Facts, params: Params) -> Observations:
    """Memory that the allocator reserves beyond the tensors, and whether it grows."""
    curve, steps = facts[memory_curve], facts.get(memory_trend)
    profile = facts[PROFILE]
    reserved, allocated = float(curve["reserved_bytes"].max()), float(curve["allocated_bytes"].max())
    usage = used_of_capacity(facts, params)
    rise = climb = growing = np.nan
    if steps is not None:
        highest = steps["reserved_bytes"].to_numpy()
        rise, climb = pace(highest)[0], pace(steps["peak_bytes"].to_numpy())[0]
        growing = float((np.diff(np.maximum.accumulate(highest)) > 0).sum())
    frame = row(
        **usage,
        reserved_bytes=reserved,
        allocated_bytes=allocated,
        unused_bytes=reserved - allocated,
        unused_share=share(reserved - allocated, reserved),
        reserved_rise=rise,
        allocated_rise=climb,
        growing_steps=growing,
        unfit=_unfit(curve),
        steps_to_full=until_full(float(usage["capacity_bytes"]) - float(usage["used_bytes"]), rise),
    )

    def evidence(number: int) -> Sequence[Reference]:
        name = "PYTORCH_NPU_ALLOC_CONF"
        references: list[Reference] = [per_step_table(steps)] if steps is not None else []
        if name in profile.variables:
            file = profile.setting_files.get("variables", "")
            references.append(Setting(message("memory.setting"), name, profile.variables[name], file))
        most = [{"reserved": reserved, "allocated": allocated, "unused": reserved - allocated}]
        return [*references, Metric(message("memory.most"), most)]

    return Observations(frame, evidence)


def _unfit(curve: pd.DataFrame) -> float:
    """Number of times that the allocator gave reserved memory back when asked for less than it had free: in pieces that
    did not fit. (An allocation and a fall of what is reserved in the same row.)"""
    reserved, allocated = curve["reserved_bytes"].to_numpy(), curve["allocated_bytes"].to_numpy()
    requested, free = np.diff(allocated), (reserved - allocated)[:-1]
    return float(((np.diff(reserved) < 0) & (requested > 0) & (requested <= free)).sum())
