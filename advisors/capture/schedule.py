"""The recorded schedule of the profiler: which steps ran before the first profiled one."""

from __future__ import annotations

import numpy as np

from advisor_core.api.advisors import Reference, Setting
from advisor_core.api.facts import Profile
from advisors.messages import message

_FIRST = ("skip_first", "wait", "warmup")
SCHEDULE = (*_FIRST, "active")


def steps_before(profile: Profile) -> float:
    """Steps that ran before the first profiled one by the recorded schedule; NaN if none is recorded."""
    schedule = [profile.profiler.get(f"schedule.{name}") for name in _FIRST]
    before = [count for count in schedule if isinstance(count, int)]
    return float(sum(before)) if before else np.nan


def schedule_evidence(profile: Profile) -> list[Reference]:
    """Evidence: the recorded settings of the profiler's schedule."""
    file = profile.setting_files.get("profiler", "")
    names = [f"schedule.{name}" for name in SCHEDULE]
    recorded = profile.profiler
    return [Setting(message("capture.setting"), name, recorded[name], file) for name in names if name in recorded]
