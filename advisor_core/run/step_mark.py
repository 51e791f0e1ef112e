"""The mark of the framework's profiler around the only recorded step, beside what the report counts of it."""

from __future__ import annotations

import re

import numpy as np

from advisor_core.contracts.profile import Profile
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.host.launches import ahead_ns, launches
from advisor_core.facts.matching import matching
from advisor_core.facts.store import FactStore
from advisor_core.result.run import StepInfo


def marked(step: StepInfo, store: FactStore, profile: Profile) -> StepInfo:
    """The step with how long its mark on the host lasts, and how much of that lies before its first and behind its last
    device task; as it is where no mark of it is recorded.

    A step lasts from its first device task. With several of them the host's way to it is part of the step before; of a
    single one it is in none.
    """
    table = profile.tables.get(HOST_EVENTS.name)
    if table is None or step.step is None or step.start_ns is None or step.end_ns is None:
        return step
    events = table.frame
    rows = np.flatnonzero(matching(events["name"], profile.vocabulary.step_mark))
    own = [row for row in rows if re.search(rf"(?<!\d){step.step}$", str(events["name"].iloc[row]))]
    if len(own) != 1:
        return step
    launched = store.get(launches)
    start = int(events["start_ns"].iloc[own[0]]) - ahead_ns(launched)
    length = int(events["duration_ns"].iloc[own[0]])
    return step.model_copy(
        update={
            "mark_ns": length,
            "mark_before_ns": max(0, step.start_ns - start),
            "mark_after_ns": max(0, start + length - step.end_ns),
        }
    )
