"""GNS003: the update of the parameters, kernel by kernel."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import HOST_EVENTS, Facts, Merging, NotApplicable, launches, union
from advisors.measuring import row
from advisors.messages import message
from advisors.optimizer_marks import mark_of, optimizer_marks
from advisors.step_kernels import call_stack, kernel_rows, named_kernels


@advisor(
    "network_structure.optimizer_step",
    needs=(named_kernels, launches, HOST_EVENTS),
    columns=(
        Column("optimizer", "text", "", "class of the optimizer, as PyTorch marks its step", zh="优化器"),
        Column("kernels", "float", "count", "kernels that it launches, per step", zh="kernel 数"),
        Column("kernel_ns", "float", "ns", "their time per step", zh="kernel"),
        Column("host_ns", "float", "ns", "time of the host in it, per step", zh="host 耗时"),
        Column("idle_ns", "float", "ns", "idle between its first and its last kernel, per step", zh="空闲"),
        Column("share_of_step", "float", "ratio", "idle_ns over the step", zh="占 step"),
    ),
)
def optimizer_step(facts: Facts, params: Params) -> Observations:
    """The update of the parameters: how many kernels it takes, and how long the device waits for their launches."""
    kernels = facts[named_kernels]
    marks = optimizer_marks(facts)
    if not len(marks):
        raise NotApplicable(message("optimizer_step.none"))
    number = mark_of(facts, kernels, marks)
    updates = np.flatnonzero(number >= 0)
    if not len(updates):
        raise NotApplicable(message("optimizer_step.none"))
    frame = kernels.frame.iloc[updates]
    idle_ns = 0
    for _, mark_kernels in frame.groupby(number[updates]):
        starts, ends = mark_kernels["start_ns"].to_numpy(), mark_kernels["end_ns"].to_numpy()
        overlapping = kernels.frame[(kernels.frame["end_ns"] > starts.min()) & (kernels.frame["start_ns"] < ends.max())]
        busy = union(overlapping["start_ns"].to_numpy(), overlapping["end_ns"].to_numpy()).clip(
            starts.min(), ends.max()
        )
        idle_ns += int(ends.max() - starts.min()) - busy.total()
    used_marks = marks.iloc[np.unique(number[updates])]
    result = row(
        optimizer=str(used_marks["name"].iloc[0]).partition("#")[2].removesuffix(".step") or "?",
        kernels=len(updates) / kernels.steps,
        kernel_ns=float(frame["duration_ns"].sum()) / kernels.steps,
        host_ns=float(used_marks["duration_ns"].sum()) / kernels.steps,
        idle_ns=idle_ns / kernels.steps,
        share_of_step=idle_ns / kernels.steps / kernels.wall_ns,
    )

    def evidence(_: int) -> Sequence[Reference]:
        columns = ("name", "start_ns", "duration_ns")
        calls = Rows(message("optimizer_step.calls"), HOST_EVENTS, used_marks.index.to_numpy(), columns)
        return [calls, kernel_rows(message("optimizer_step.rows"), frame), *call_stack(facts, frame)]

    return Observations(result, evidence, cure=lambda _: _one_kernel_each(frame, number[updates]))


def _one_kernel_each(updates: pd.DataFrame, marks: np.ndarray) -> Merging:
    """The kernels of each update as one that does the work of all: their time stays, their launches go."""
    chain = np.unique(marks, return_inverse=True)[1]
    total = np.bincount(chain, weights=updates["duration_ns"].to_numpy(dtype=np.float64)).astype(np.float64)
    return Merging(updates["work"].to_numpy(dtype=np.int64), chain, total, total)
