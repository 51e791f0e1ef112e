"""Capture quality: what the way of profiling hides or distorts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor_core.api import Column, Facts, Observations, Params, Profile, Reference, Rows, Setting, advisor
from advisors.measuring import row
from advisors.messages import message

_INFLATING = ("with_stack", "with_modules", "record_shapes", "profile_memory")
_FIRST = ("skip_first", "wait", "warmup")


@advisor(
    "capture.settings",
    needs=("profile",),
    wants=("kernels", "steps"),
    columns=(
        Column("level", "text", "", "level of the profiler, as recorded"),
        Column("kernels", "int", "count", "kernels in kernel_details.csv"),
        Column("untyped_share", "float", "ratio", "of the kernels that compute: recorded without a type"),
        Column("unmeasured_share", "float", "ratio", "of the kernels that compute: recorded without pipe times"),
        Column("inflating", "int", "count", "options that make the host slower while profiling"),
        Column("inflating_options", "text", "", "which options these are"),
        Column("steps", "int", "count", "profiled steps"),
        Column("warm_up_steps", "float", "count", "steps before the first profiled one, unknown if not recorded"),
    ),
)
def settings(facts: Facts, params: Params) -> Observations:
    """How the profile was collected."""
    profile: Profile = facts["profile"]
    kernels = facts.get("kernels")
    computing = kernels[kernels["core"] != "COMMUNICATION"] if kernels is not None else None
    known = computing is not None and len(computing) > 0
    untimed = computing["aic_ns"].isna() & computing["aiv_ns"].isna() if computing is not None else None
    options = [name for name in _INFLATING if profile.profiler.get(name) is True]
    schedule = [profile.profiler.get(f"schedule.{name}") for name in _FIRST]
    before = [count for count in schedule if isinstance(count, int)]
    frame = row(
        level=profile.level,
        kernels=len(kernels) if kernels is not None else 0,
        untyped_share=float((computing["type"] == "").mean()) if known and computing is not None else np.nan,
        unmeasured_share=float(untimed.mean()) if known and untimed is not None else np.nan,
        inflating=len(options),
        inflating_options=", ".join(options),
        steps=len(facts["steps"]) if "steps" in facts else 0,
        warm_up_steps=float(sum(before)) if before else np.nan,
    )

    def evidence(number: int) -> Sequence[Reference]:
        file = profile.setting_files.get("profiler", "")
        recorded = (*options, *(f"schedule.{name}" for name in (*_FIRST, "active")))
        found: list[Reference] = [
            Setting(message("capture.setting"), name, profile.profiler[name], file)
            for name in recorded
            if name in profile.profiler
        ]
        found.insert(0, Setting(message("capture.setting"), "level", profile.level, file))
        if computing is not None and frame["untyped_share"].iloc[0] > 0:
            missing = computing.index[computing["type"] == ""].to_numpy()
            found.append(Rows(message("capture.kernels"), "kernels", missing, ("name", "type", "core", "duration_ns")))
        return found

    return Observations(frame, evidence)


ADVISORS = (settings,)
