"""Launching calls that return only when what they launched has ended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from advisor_core.api.facts import HOST_EVENTS, PROFILE, Facts, Layer, launches, matching, union, work


@dataclass(frozen=True)
class WaitingLaunches:
    """``linked``: launching calls of which the trace tells what they launched. ``rows``: those of them (rows of
    ``host_events``) that return when all of it has ended. ``waits``: in device time, from when the first of it starts
    until the call returns; what comes before is the launch itself."""

    linked: int
    rows: np.ndarray
    waits: Layer


def waiting_launches(facts: Facts) -> WaitingLaunches:
    """The launching calls that wait; none are linked where the trace does not tell what calls launched."""
    none = np.zeros(0, dtype=np.int64)
    if not facts.knows(HOST_EVENTS, launches, work):
        return WaitingLaunches(0, none, union(none, none))
    launched, device, events = facts[launches], facts[work], facts[HOST_EVENTS]
    tasks = pd.DataFrame({"call": launched.frame["call_row"], "begun": device["start_ns"], "ended": device["end_ns"]})
    caused = tasks[tasks["call"] >= 0].groupby("call").agg({"begun": "min", "ended": "max"})
    named = events["name"].iloc[caused.index.to_numpy()]
    caused = caused[matching(named, facts[PROFILE].vocabulary.launching_calls)]
    rows = caused.index.to_numpy()
    calls = events.iloc[rows]
    returned = calls["start_ns"].to_numpy() + calls["duration_ns"].to_numpy() - launched.skew_ns
    waits = returned >= caused["ended"].to_numpy()
    return WaitingLaunches(len(rows), rows[waits], union(caused["begun"].to_numpy()[waits], returned[waits]))
