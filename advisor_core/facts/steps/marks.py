"""Steps by the marks of the framework's profiler, where the device tasks carry no step."""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column
from advisor_core.contracts.facts import Facts, fact
from advisor_core.contracts.missing import NotApplicable
from advisor_core.contracts.profile import PROFILE
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.device.work import work
from advisor_core.facts.host.launches import NO_TIME, launches
from advisor_core.facts.matching import matching
from advisor_core.text.messages import message

COLUMNS = (
    Column("step", "int", "", "step id, as the mark names it"),
    Column("start_ns", "int", "ns", "start of its first device task"),
    Column("last_ns", "int", "ns", "end of its last device task"),
)


@fact("step_marks", needs=(PROFILE, work, HOST_EVENTS), wants=(launches,), columns=COLUMNS)
def step_marks(facts: Facts) -> pd.DataFrame:
    """One row per marked step with device tasks, in order of time.

    A task belongs to the mark in which it was launched; where no launch is known, to that in which it starts. Not
    applicable where tasks carry steps, or no mark names one.
    """
    device, events = facts[work], facts[HOST_EVENTS]
    if (device["step"] >= 0).any():
        raise NotApplicable(message("steps.recorded"))
    marks = events[matching(events["name"], facts[PROFILE].vocabulary.step_mark)].copy()
    marks["step"] = pd.to_numeric(marks["name"].astype(str).str.extract(r"(\d+)$")[0], errors="coerce")
    marks = marks.dropna(subset="step").drop_duplicates("step").sort_values("start_ns")
    if marks.empty:
        raise NotApplicable(message("steps.unmarked"))
    launched = facts.get(launches)
    began = device["start_ns"].to_numpy()
    skew = 0
    if launched is not None:
        known = launched.frame["launch_ns"].to_numpy()
        began, skew = np.where(known == NO_TIME, began, known), launched.skew_ns
    starts = marks["start_ns"].to_numpy() - skew
    owner = np.searchsorted(starts, began, side="right") - 1
    owner[began >= (starts + marks["duration_ns"].to_numpy())[owner]] = -1
    inside = device[owner >= 0].assign(step=marks["step"].to_numpy(dtype=np.int64)[owner[owner >= 0]])
    if inside.empty:
        raise NotApplicable(message("steps.unmarked"))
    by_step = inside.groupby("step")
    spans = pd.DataFrame({"start_ns": by_step["start_ns"].min(), "last_ns": by_step["end_ns"].max()})
    return spans.sort_values("start_ns").reset_index()
