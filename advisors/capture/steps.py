"""DQ006, DQ007: first and last steps that differ from the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api import Scalar
from advisor_core.api.advisors import Column, Metric, Observations, Params, Reference, advisor
from advisor_core.api.facts import (
    Facts,
    NotApplicable,
    Unavailable,
    kernel_list,
    steps,
    work,
)
from advisors.columns import PROFILED_STEPS, TASKS
from advisors.measuring import row, share
from advisors.messages import message

_COMPARED = 3
"""Two steps cannot tell which of them is the odd one."""

_LISTED = 10


@advisor(
    "capture.steps",
    needs=(steps, work),
    wants=(kernel_list,),
    columns=(
        PROFILED_STEPS,
        Column(
            "first_over_rest",
            "float",
            "ratio",
            "wall time of the first step over the median of the others",
            zh="首个 step 与其余之比",
        ),
        Column(
            "last_task_share",
            "float",
            "ratio",
            "tasks of the last step over those of the step with fewest before it",
            zh="末个 step 任务占比",
        ),
    ),
    evidence=(
        Column("step", "int", "", "id of the step", zh="step"),
        Column("wall", "int", "ns", "wall time of the step", zh="墙钟时间"),
        TASKS,
    ),
)
def odd_steps(facts: Facts, params: Params) -> Observations:
    """The first and the last profiled step, compared with the others."""
    if kernel_list in facts:
        raise NotApplicable(message("capture.no_loop"))
    windows = facts[steps]
    if len(windows) < _COMPARED:
        raise Unavailable(
            message("capture.few_steps", count=len(windows)), message("capture.few_steps.collect"), ("steps",)
        )
    walls = (windows["end_ns"] - windows["start_ns"]).to_numpy()
    began = facts[work]["start_ns"].to_numpy()
    owner = np.searchsorted(windows["start_ns"].to_numpy(), began, side="right") - 1
    inside = (owner >= 0) & (began < int(windows["end_ns"].iloc[-1]))
    tasks = np.bincount(owner[inside], minlength=len(windows))
    frame = row(
        steps=len(windows),
        first_over_rest=share(float(walls[0]), float(np.median(walls[1:]))),
        last_task_share=share(float(tasks[-1]), float(tasks[:-1].min())),
    )

    def evidence(number: int) -> Sequence[Reference]:
        rows: list[dict[str, Scalar]] = [
            {"step": int(step), "wall": int(wall), "tasks": int(count)}
            for step, wall, count in zip(windows["step"].to_numpy(), walls, tasks, strict=True)
        ]
        return [Metric(message("capture.per_step"), rows[: _LISTED - 1] + rows[_LISTED - 1 :][-1:])]

    return Observations(frame, evidence)
