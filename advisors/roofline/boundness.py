"""The bound of a part of a step: computing, memory, copies, host, communication, or nothing in particular.

The scheme and its numbers are those of a published guide to torch_npu.profiler, whose shares of the step are taken as
they are (docs/sources.md#classes-of-boundness). Its bandwidths (good above 250, poor below 150 of 300 GB/s) are of
another device, and count as shares of the peak of the chip here, as its use of the cube does (good above 75 %, poor
below 50 %).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from advisors.roofline.bounds import Part

COPIES_SHARE = 0.5
COMPUTING_SHARE = 0.6
MEMORY_SHARE = 0.4
WAITING_SHARE = 0.2
"""Shares of the time from which the guide calls a step bound by copies, computing, memory, and waiting."""

GOOD_COMPUTING = 0.75
GOOD_MEMORY = 250 / 300
POOR = 0.5
"""Of the bound, from which the guide calls the use of cube and memory good, and below which both poor."""


class Bound(StrEnum):
    """What most of the time goes to; unknown where kernels without a bound could decide it."""

    COMPUTING = "computing"
    MEMORY = "memory"
    COMMUNICATION = "communication"
    HOST = "host"
    IDLE = "idle"
    COPIES = "copies"
    BALANCED = "balanced"
    UNKNOWN = "unknown"


class Grade(StrEnum):
    """How near the kernels come to their bounds."""

    GOOD = "good"
    FAIR = "fair"
    POOR = "poor"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Waiting:
    """Time per step in ns in which nothing computes: ``communication`` runs, or the device is ``idle``; ``untold``: of
    the idle time, that of which no cause was recorded. The guide calls idle time the host's; where most of it has no
    recorded cause that would be a guess. ``copies``: on the device, or between it and the host while it is idle."""

    communication: float = 0.0
    idle: float = 0.0
    untold: float = 0.0
    copies: float = 0.0


NOT_WAITING = Waiting()


def bound_of(part: Part, waiting: Waiting = NOT_WAITING) -> Bound:
    """What bounds a part, in the order of the guide: the first share that is large enough decides, of the two kinds of
    waiting the longer."""
    if not part.wall_ns:
        return Bound.UNKNOWN
    idle = Bound.IDLE if waiting.untold > waiting.idle / 2 else Bound.HOST
    if waiting.copies > COPIES_SHARE * part.wall_ns:
        return Bound.COPIES
    shares = (
        (Bound.COMPUTING, part.by_computing_ns, COMPUTING_SHARE),
        (Bound.MEMORY, part.by_memory_ns, MEMORY_SHARE),
        (Bound.COMMUNICATION, waiting.communication, WAITING_SHARE),
        (idle, waiting.idle, WAITING_SHARE),
    )
    found = [bound for bound, ns, least in shares if ns > least * part.wall_ns]
    if found[:1] == [Bound.COMMUNICATION] and waiting.idle > waiting.communication:
        return idle
    untold = part.kernel_ns - part.known_ns
    return found[0] if found else Bound.UNKNOWN if untold > WAITING_SHARE * part.wall_ns else Bound.BALANCED


def grade_of(part: Part) -> Grade:
    """How near the kernels of a part come to their bounds together; unknown where most of their time has no bound."""
    reached = part.reached
    if not reached >= 0 or part.known_ns < part.kernel_ns / 2:
        return Grade.UNKNOWN
    good = GOOD_COMPUTING if part.by_computing_ns > part.by_memory_ns else GOOD_MEMORY
    return Grade.GOOD if reached > good else Grade.POOR if reached < POOR else Grade.FAIR
