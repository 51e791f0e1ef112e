"""The computing of a rank within the profiled steps, and its longest kernels."""

from __future__ import annotations

import pandas as pd

from advisor_core.api.facts import KERNELS, PROFILE, Column, Facts, steps, work

_SHOWN = 10


LONGEST_KERNELS = (
    Column("row", "int", "", "row number in the table that work was read from"),
    Column("type", "text", "", "operator type"),
    Column("start_ns", "int", "ns", "start"),
    Column("duration_ns", "int", "ns", "duration"),
    Column("file", "text", "", "file that it was read from, '' unknown"),
    Column("line", "int", "", "where in the file: line, offset or rowid; -1 unknown"),
)


def computing_in_steps(facts: Facts) -> pd.DataFrame:
    """Computing within the steps."""
    windows, device = facts[steps], facts[work]
    inside = (device["start_ns"] >= windows["start_ns"].min()) & (device["start_ns"] < windows["end_ns"].max())
    computing: pd.DataFrame = device[inside & ~device["communication"]]
    return computing


def longest_kernels(facts: Facts, device: pd.DataFrame) -> pd.DataFrame:
    """The longest kernels, `LONGEST_KERNELS`, with where they stand in the profile."""
    longest = (device["end_ns"] - device["start_ns"]).rename("duration_ns").nlargest(_SHOWN)
    shown = device.loc[longest.index, ["row", "type", "start_ns"]].assign(duration_ns=longest)
    shown["type"] = shown["type"].astype(str)
    table = facts[PROFILE].tables.get("kernels")
    has_positions = facts.get(KERNELS) is not None and table is not None
    shown["file"] = table.source.file if has_positions and table is not None else ""
    shown["line"] = table.positions(shown["row"].to_numpy()) if has_positions and table is not None else -1
    return shown.reset_index(drop=True)
