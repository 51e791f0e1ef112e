"""What a rank computes within the profiled steps, and its longest kernels."""

from __future__ import annotations

import pandas as pd

from advisor_core.api.facts import KERNELS, PROFILE, Facts, steps, work

_SHOWN = 10


def computing_in_steps(facts: Facts) -> pd.DataFrame:
    """Computing within the steps."""
    windows, device = facts[steps], facts[work]
    inside = (device["start_ns"] >= windows["start_ns"].min()) & (device["start_ns"] < windows["end_ns"].max())
    own: pd.DataFrame = device[inside & ~device["communication"]]
    return own


def longest_kernels(facts: Facts, device: pd.DataFrame) -> pd.DataFrame:
    """The longest kernels: ``file``, ``line`` (rowid of a DB), ``type``, ``start_ns``, ``duration_ns``."""
    longest = (device["end_ns"] - device["start_ns"]).rename("duration_ns").nlargest(_SHOWN)
    shown = device.loc[longest.index, ["row", "type", "start_ns"]].assign(duration_ns=longest)
    shown["type"] = shown["type"].astype(str)
    table = facts[PROFILE].tables.get("kernels")
    known = facts.get(KERNELS) is not None and table is not None
    shown["file"] = table.source.file if known and table is not None else ""
    shown["line"] = table.positions(shown["row"].to_numpy()) if known and table is not None else -1
    return shown.reset_index(drop=True)
