"""PB014: the clock of the cores over the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    FREQUENCY,
    Facts,
    Merging,
    Unavailable,
)
from advisors.messages import message
from advisors.step_kernels import kernel_rows, records, step_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

CUBE_CORES = ("AI_CORE", "MIX_AIC")
"""Cores whose time goes with the clock; the vector cores mostly wait for memory."""


@advisor(
    "pipeline_bound.clock",
    needs=(step_kernels, FREQUENCY),
    columns=(
        Column(
            "highest_mhz", "float", "MHz", "clock that the fastest tenth of the cube kernels reaches", zh="最高频率"
        ),
        Column("lowest_mhz", "float", "MHz", "clock of the slowest tenth", zh="最低频率"),
        Column("drop", "float", "ratio", "how far the lowest is below the highest", zh="降幅"),
        Column("slow_ns", "float", "ns", "kernel time per step at a clock this far below the highest", zh="慢"),
        Column("lost_ns", "float", "ns", "what the kernels would take less at the highest clock, per step", zh="损失"),
        Column("share_of_step", "float", "ratio", "lost_ns over the step", zh="占 step"),
    ),
    params=("drop",),
    evidence=(
        Column("mhz", "float", "MHz", "clock of the AI cores", zh="频率"),
        Column("kernels", "int", "count", "kernels that ran at it", zh="kernel 数"),
        Column("total_ns", "float", "ns", "their time", zh="合计"),
    ),
)
def clock(facts: Facts, params: Params) -> Observations:
    """The clock of the AI cores when kernels began, as it was recorded.

    The cycle counters cannot replace the record: the exporter computes the time of a core from its cycles and one
    fixed clock, so cycles over time is that clock whatever the chip did.
    """
    kernels = facts[step_kernels]
    cube_kernels = kernels.frame[kernels.frame["core"].isin(CUBE_CORES)]
    mhz = clock_at(facts[FREQUENCY], cube_kernels["start_ns"].to_numpy())
    if not np.isfinite(mhz).any():
        raise Unavailable(message("pipeline_bound.no_clock"))
    highest, lowest = (float(np.nanquantile(mhz, quantile)) for quantile in (0.9, 0.1))
    duration = cube_kernels["duration_ns"].to_numpy(dtype=np.float64)
    shortfall = np.nan_to_num(np.clip(1 - mhz / highest, 0.0, 1.0))
    is_slow = shortfall >= params["drop"]
    lost_ns = float((duration * shortfall)[is_slow].sum()) / kernels.steps
    row = {
        "highest_mhz": highest,
        "lowest_mhz": lowest,
        "drop": max(1 - lowest / highest, 0.0),
        "slow_ns": float(duration[is_slow].sum()) / kernels.steps,
        "lost_ns": lost_ns,
        "share_of_step": lost_ns / kernels.wall_ns,
    }

    def evidence(_: int) -> list[Reference]:
        columns = ("type", "start_ns", "duration_ns", "input_shapes", "block_dim", "aic_ns")
        grouped = pd.DataFrame({"mhz": np.round(mhz), "total_ns": duration}).groupby("mhz")["total_ns"]
        table = pd.DataFrame({"kernels": grouped.size(), "total_ns": grouped.sum()})
        longest = table.sort_values("total_ns", ascending=False, kind="stable").head(8).reset_index()
        return [
            Metric(message("pipeline_bound.clocks"), records(longest)),
            kernel_rows(message("pipeline_bound.slow_rows"), cube_kernels[is_slow], columns),
        ]

    at_highest = Merging.none(
        cube_kernels["work"].to_numpy(dtype=np.int64)[is_slow], duration[is_slow], (duration * (1 - shortfall))[is_slow]
    )
    return Observations(pd.DataFrame([row]), evidence, cure=lambda _: at_highest)


def clock_at(frequency: pd.DataFrame, moments: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The clock in MHz at each moment: that of the last change before it; NaN before the first."""
    changes = frequency.sort_values("time_ns", kind="stable")
    clocks = np.concatenate([[np.nan], changes["mhz"].to_numpy(dtype=np.float64)])
    return np.asarray(clocks[np.searchsorted(changes["time_ns"].to_numpy(), moments, side="right")], dtype=np.float64)
