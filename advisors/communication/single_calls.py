"""CO023: operations without peers of their size that take longer per byte than smaller ones of their group.

A larger message uses a link at least as well as a smaller one: its fixed costs count for less. So what two smaller
operations of the same kind and group reached, a larger one reaches too, unless something held it up. All-to-all and
what goes to single ranks are left out: their time follows from what other ranks send, and from where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Interval, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    COLLECTIVES,
    KERNELS,
    Facts,
    Groups,
    Merging,
    NotApplicable,
    collective_calls,
    collective_state,
    steps,
)
from advisors.columns import STEP_NS
from advisors.communication.calls import ELAPSE, ONE_CALL, all_to_all, call_rows, moving_calls, point_to_point, shorter
from advisors.measuring import DEVICE_LANE, LARGEST, records, step_count, step_ns
from advisors.messages import message

if TYPE_CHECKING:
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"

WITNESSES = 2
"""Smaller operations that must have been as quick: one alone may be measured wrongly. Our choice."""


@advisor(
    "communication.single_calls",
    needs=(steps, collective_calls, collective_state),
    wants=(KERNELS, COLLECTIVES),
    params=("min_samples",),
    about=ONE_CALL,
    columns=(
        STEP_NS,
        Column("operation", "text", "", "kind of operation", zh="通信算子"),
        Column("moved_bytes", "float", "B", "data of the operation", zh="搬运字节"),
        Column("active_ns", "float", "ns", "its time without waiting", zh="活跃时间"),
        Column("at_their_rate_ns", "float", "ns", "that time at the rate which two smaller ones reached", zh="预期"),
        Column("ratio", "float", "ratio", "active_ns over at_their_rate_ns", zh="比值"),
        Column("smaller", "int", "count", "smaller operations of the same kind and group", zh="较小的操作数"),
        Column("excess_ns", "float", "ns", "uncovered time that it took more than expected, per step", zh="多出"),
        Column("excess_share", "float", "ratio", "excess_ns over wall time", zh="多出占比"),
    ),
    evidence=(
        Column("active", "float", "ns", "part of it in which it moves data", zh="活跃时间"),
        Column("size", "float", "B", "data of the operation", zh="大小"),
        ELAPSE,
    ),
)
def single_calls(facts: Facts, params: Params) -> Observations:
    """Operations with few others of their size that move data for longer, by byte, than two smaller ones of their kind
    and group did."""
    calls, steps, wall = moving_calls(facts), step_count(facts), step_ns(facts)
    operations = calls["operation"].astype(str)
    of_all = ~(all_to_all(operations) | point_to_point(operations))
    calls = calls[(of_all & (calls["bytes"] > 0) & (calls["moving_ns"] > 0)).to_numpy()].reset_index(drop=True)
    sizes = Groups(calls, ("operation", "group", "bytes"))
    kinds = Groups(calls, ("operation", "group"))
    per_byte, smaller = _reached(calls, kinds.codes)
    calls["at_their_rate_ns"] = per_byte * calls["bytes"].to_numpy()
    calls["smaller"] = smaller
    judged = (sizes.sizes[sizes.codes] < params["min_samples"]) & np.isfinite(per_byte)
    calls, kind = calls[judged].reset_index(drop=True), kinds.codes[judged]
    if calls.empty:
        raise NotApplicable(message("communication.no_smaller", least=WITNESSES))
    longer = np.minimum(np.maximum(calls["active_ns"] - calls["at_their_rate_ns"], 0), calls["uncovered_ns"])
    frame = pd.DataFrame(
        {
            "name": calls["name"],
            "step_number": calls["step"],
            "step_ns": wall,
            "operation": calls["operation"],
            "moved_bytes": calls["bytes"].astype(np.float64),
            "active_ns": calls["active_ns"],
            "at_their_rate_ns": calls["at_their_rate_ns"],
            "ratio": calls["active_ns"] / calls["at_their_rate_ns"],
            "smaller": calls["smaller"],
            "excess_ns": longer / steps,
            "excess_share": longer / steps / wall,
        }
    )

    def evidence(number: int) -> Sequence[Reference]:
        call = calls.iloc[number]
        alike = calls[kind == kind[number]].sort_values("bytes", kind="stable", ascending=False)
        rows = records(alike, LARGEST, operation="name", size="bytes", active="active_ns", elapse="elapse_ns")
        return [
            Interval(message("communication.outlier"), int(call["start_ns"]), int(call["end_ns"]), DEVICE_LANE),
            Metric(message("communication.kind_by_size"), rows),
            *call_rows(facts, calls.iloc[[number]]),
        ]

    def cure(number: int) -> Merging:
        return shorter(calls.iloc[[number]], longer.iloc[[number]])

    return Observations(frame, evidence, cure=cure)


def _reached(calls: pd.DataFrame, kind: npt.NDArray[np.int64]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Of each call ns per byte that `WITNESSES` smaller ones of its kind reached, NaN where there are fewer, and how
    many smaller ones there are. ``kind``: operation and group of each call, as a number."""
    took, size = calls["active_ns"].to_numpy(dtype=np.float64), calls["bytes"].to_numpy(dtype=np.float64)
    best, count = np.full(len(calls), np.nan), np.zeros(len(calls), dtype=np.int64)
    for one in np.unique(kind).tolist():
        rows = np.flatnonzero(kind == one)
        rows = rows[np.argsort(size[rows], kind="stable")]
        rate = took[rows] / size[rows]
        # The second least so far: the greater one of the least before and the next, where that is less.
        least = np.concatenate([[np.inf], np.minimum.accumulate(rate)[:-1]])
        second = np.minimum.accumulate(np.maximum(least, rate))
        before = np.searchsorted(size[rows], size[rows], side="left")
        known = before >= WITNESSES
        best[rows[known]] = second[before[known] - 1]
        count[rows] = before
    return best, count
