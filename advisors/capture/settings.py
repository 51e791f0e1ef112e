"""DQ001 to DQ004: the options that the profile was taken with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from advisor_core.api.advisors import Column, Observations, Params, Reference, Rows, Setting, advisor
from advisor_core.api.facts import (
    HOST_EVENTS,
    HOST_SLOWING_OPTIONS,
    KERNELS,
    PROFILE,
    Facts,
    rank_summary,
)
from advisors.capture.schedule import SCHEDULE, steps_before
from advisors.columns import PROFILED_STEPS
from advisors.measuring import row
from advisors.messages import message


@advisor(
    "capture.settings",
    needs=(PROFILE,),
    wants=(KERNELS, rank_summary, HOST_EVENTS),
    columns=(
        Column("level", "text", "", "level of the profiler, as recorded", zh="级别"),
        Column("kernels", "int", "count", "kernels in kernel_details.csv", zh="kernel 数"),
        Column(
            "untyped_share", "float", "ratio", "of the kernels that compute: recorded without a type", zh="无类型占比"
        ),
        Column(
            "unshaped_share",
            "float",
            "ratio",
            "of the kernels that compute: recorded without shapes of inputs",
            zh="无 shape 占比",
        ),
        Column(
            "unmeasured_share",
            "float",
            "ratio",
            "of the kernels that compute: recorded without pipe times",
            zh="未测占比",
        ),
        Column(
            "shapes_asked", "bool", "", "the profiler was told to record shapes", nullable=True, zh="已要求记录 shape"
        ),
        Column(
            "inflating",
            "int",
            "count",
            "options that make the host slower while profiling; unknown where none of them is recorded",
            nullable=True,
            zh="拖慢 host",
        ),
        Column("inflating_options", "text", "", "which options these are", zh="拖慢 host 的选项"),
        PROFILED_STEPS,
        Column("marked", "bool", "", "steps are told apart; else all of the recording counts as one", zh="已标记 step"),
        Column(
            "warm_up_steps",
            "float",
            "count",
            "steps before the first profiled one, unknown if not recorded",
            zh="预热步数",
        ),
    ),
)
def settings(facts: Facts, params: Params) -> Observations:
    """The settings with which the profile was collected."""
    profile = facts[PROFILE]
    kernels, totals = facts.get(KERNELS), facts.get(rank_summary)
    computing = kernels[kernels["core"] != "COMMUNICATION"] if kernels is not None else None
    known = computing is not None and len(computing) > 0
    untimed = computing["aic_ns"].isna() & computing["aiv_ns"].isna() if computing is not None else None
    options = [name for name in HOST_SLOWING_OPTIONS if profile.profiler.get(name) is True]
    frame = row(
        level=profile.level,
        kernels=len(kernels) if kernels is not None else 0,
        untyped_share=float((computing["type"] == "").mean()) if known and computing is not None else np.nan,
        unshaped_share=_unshaped(computing) if known and computing is not None else np.nan,
        unmeasured_share=float(untimed.mean()) if known and untimed is not None else np.nan,
        shapes_asked=_shapes_asked(facts),
        inflating=len(options) if any(name in profile.profiler for name in HOST_SLOWING_OPTIONS) else None,
        inflating_options=", ".join(options),
        steps=len(totals) if totals is not None else 0,
        marked=totals is not None and bool((totals["step"] >= 0).any()),
        warm_up_steps=steps_before(profile),
    )

    def evidence(number: int) -> Sequence[Reference]:
        file = profile.setting_files.get("profiler", "")
        recorded = (*options, *(f"schedule.{name}" for name in SCHEDULE))
        found: list[Reference] = [
            Setting(message("capture.setting"), name, profile.profiler[name], file)
            for name in recorded
            if name in profile.profiler
        ]
        if profile.level is not None or not found:
            found.insert(0, Setting(message("capture.setting"), "level", profile.level, file))
        if computing is not None and frame["untyped_share"].iloc[0] > 0:
            missing = computing.index[computing["type"] == ""].to_numpy()
            found.append(Rows(message("capture.kernels"), KERNELS, missing, ("name", "type", "core", "duration_ns")))
        return found

    return Observations(frame, evidence)


def _shapes_asked(facts: Facts) -> bool | None:
    """Whether the profiler was told to record shapes: as recorded, else it was where operators of the framework have
    them; `None` where neither tells."""
    recorded = facts[PROFILE].profiler.get("record_shapes")
    if isinstance(recorded, bool):
        return recorded
    events = facts.get(HOST_EVENTS)
    return True if events is not None and bool((events["input_shapes"] != "").any()) else None


def _unshaped(kernels: pd.DataFrame) -> float:
    """The part of the kernels of which neither what they read nor what they write is known (a fill reads nothing)."""
    return float(((kernels["input_shapes"] == "") & (kernels["output_shapes"] == "")).mean())
