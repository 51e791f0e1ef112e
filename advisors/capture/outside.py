"""DQ015: work of the device outside of the steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api.advisors import Column, Interval, Observations, Params, Reference, Rows, advisor
from advisor_core.api.facts import (
    KERNELS,
    PROFILE,
    Facts,
    NotApplicable,
    backlog,
    kernel_list,
    start_up,
    steps,
    union,
    warm_up,
    work,
)
from advisors.measuring import DEVICE_LANE, LARGEST, row, share
from advisors.messages import message


@advisor(
    "capture.outside",
    needs=(PROFILE, steps, work),
    wants=(KERNELS, backlog, kernel_list, start_up, warm_up),
    columns=(
        Column(
            "outside_ns",
            "int",
            "ns",
            "device time with kernels or collectives before the first and after the last",
            zh="step 外",
        ),
        Column("before_ns", "int", "ns", "of this: before the first step", zh="之前"),
        Column("after_ns", "int", "ns", "of this: after the last step", zh="之后"),
        Column(
            "outside_share",
            "float",
            "ratio",
            "outside_ns over all device time with kernels or collectives",
            zh="step 外占比",
        ),
        Column("outside_tasks", "int", "count", "kernels and collectives outside of the steps", zh="step 外任务数"),
    ),
)
def outside(facts: Facts, params: Params) -> Observations:
    """Device time before the first and after the last step, where no figure of the report counts it."""
    windows, device = facts[steps], facts[work]
    if kernel_list in facts:
        raise NotApplicable(message("capture.no_loop"))
    if not (windows["step"] >= 0).any():
        raise NotApplicable(message("capture.no_steps"))
    if facts[PROFILE].selected_step is not None:
        raise NotApplicable(message("capture.chosen_step"))
    first, last = int(windows["start_ns"].min()), int(windows["end_ns"].max())
    if start_up in facts:  # told by a rule of its own
        first = min(first, facts[start_up].began_ns)
    if backlog in facts:  # so is this
        first = min(first, facts[backlog].began_ns)
    if warm_up in facts:  # and this
        first = min(first, facts[warm_up].start_ns)
    starts, ends = device["start_ns"].to_numpy(), device["end_ns"].to_numpy()
    before, after = (starts < first), (ends > last)
    parts = {
        "before": union(starts[before], np.minimum(ends[before], first)),
        "after": union(np.maximum(starts[after], last), ends[after]),
    }
    spent = {name: int((layer.ends - layer.starts).sum()) for name, layer in parts.items()}
    all_of_it = union(starts, ends)
    frame = row(
        outside_ns=sum(spent.values()),
        before_ns=spent["before"],
        after_ns=spent["after"],
        outside_share=share(sum(spent.values()), int((all_of_it.ends - all_of_it.starts).sum())),
        outside_tasks=int((before | after).sum()),
    )

    def evidence(number: int) -> Sequence[Reference]:
        found: list[Reference] = [
            Interval(text, int(layer.starts[0]), int(layer.ends[-1]), DEVICE_LANE)
            for text, layer in (
                (message("capture.before"), parts["before"]),
                (message("capture.after"), parts["after"]),
            )
            if len(layer)
        ]
        if KERNELS in facts:
            lengths = np.where(before | after, ends - starts, 0)
            longest = np.argsort(-lengths, kind="stable")[: min(LARGEST, int((before | after).sum()))]
            columns = ("name", "type", "core", "start_ns", "duration_ns")
            rows = device["row"].to_numpy()[longest]
            found.append(Rows(message("capture.longest_outside"), KERNELS, rows, columns))
        return found

    return Observations(frame, evidence)
