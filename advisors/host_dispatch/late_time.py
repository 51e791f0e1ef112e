"""Idle time in which the host was too slow: in Python, in operators of the framework or in runtime calls."""

from __future__ import annotations

import pandas as pd

from advisor_core.api.facts import Facts, bookings, host_pauses, paused
from advisors.measuring import pieces_of

LATE_ACTIVITIES = ("python", "framework", "runtime")

LATE = tuple(f"idle/host/{activity}" for activity in LATE_ACTIVITIES)
"""Leaves in which the host was simply too slow; compiling, loading data, collecting garbage and allocating have
leaves and rules of their own."""


def late_pieces(facts: Facts) -> pd.DataFrame:
    """The pieces of idle time in which the host was too slow, less its rare long pauses (HD014)."""
    pieces = pieces_of(facts[bookings], *LATE)
    if host_pauses in facts:
        pauses = paused(facts[host_pauses])
        pieces["ns"] -= pauses.measure(pieces["end_ns"].to_numpy()) - pauses.measure(pieces["start_ns"].to_numpy())
    return pieces[pieces["ns"] > 0]
