"""The memory of the device, and how much of it the process holds."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Params
from advisor_core.api.facts import (
    MEMORY_RECORD,
    MODULE_MEMORY,
    Facts,
    memory_capacity,
)
from advisors.measuring import share

CAPACITY = (
    Column("used_bytes", "float", "B", "most that the process held", zh="已使用显存"),
    Column("capacity_bytes", "float", "B", "memory of the device: as given, else by the kind of chip", zh="显存容量"),
    Column("used_share", "float", "ratio", "used_bytes over capacity_bytes", zh="使用占比"),
    Column("capacity_basis", "text", "", "how the capacity is known", zh="容量依据"),
)


def _capacity(facts: Facts, params: Params) -> tuple[float, str]:
    """Bytes and their basis; NaN where neither the user nor the chip tells."""
    set_by_user = float(params["capacity"])
    if set_by_user > 0:
        return set_by_user, "given"
    recorded = facts.get(memory_capacity)
    return (float(recorded.bytes), recorded.basis) if recorded is not None else (np.nan, "")


def _used(record: pd.DataFrame | None, modules: pd.DataFrame | None) -> float:
    """Most that the process held, in bytes: its own samples, else the sum of what its components held."""
    if record is not None:
        reserved = record.loc[record["component"] == "APP", "reserved_bytes"].max()
        if np.isfinite(reserved):
            return float(reserved)
    if modules is not None and len(modules):
        return float(modules.groupby("component", observed=True)["reserved_bytes"].max().sum())
    return float("nan")


def used_of_capacity(facts: Facts, params: Params) -> dict[str, float | str]:
    used = _used(facts.get(MEMORY_RECORD), facts.get(MODULE_MEMORY))
    capacity, basis = _capacity(facts, params)
    return {
        "used_bytes": used,
        "capacity_bytes": capacity,
        "used_share": share(used, capacity),
        "capacity_basis": basis,
    }
