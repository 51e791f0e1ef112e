"""HD008: garbage collection of Python."""

from __future__ import annotations

from advisor_core.api.facts import HOST_EVENTS, PROFILE, Facts, Unavailable
from advisors.host_dispatch.activity import activity_advisor
from advisors.messages import message


def _require_gc(facts: Facts) -> None:
    recorded = facts[PROFILE].profiler.get("gc_detect_threshold")
    if recorded is None and not (facts[HOST_EVENTS]["category"] == "gc").any():
        raise Unavailable(message("host_dispatch.no_gc"), message("host_dispatch.no_gc.collect"), ("gc",))


garbage = activity_advisor(
    "host_dispatch.gc",
    "Garbage collection of Python while the device waited.",
    "idle/host/gc",
    lambda events, words: (events["category"] == "gc").to_numpy(),
    _require_gc,
    recurs=False,
)
