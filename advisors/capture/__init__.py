"""Capture quality of one rank: what the way of profiling hides or distorts, and what a recording is no sample of."""

from __future__ import annotations

from advisors.capture import (
    activities,
    backlog,
    clocks,
    completeness,
    damage,
    disagreement,
    launches,
    outside,
    settings,
    shapes,
    size,
    start_up,
    steps,
    warm_up,
)

ADVISORS = (
    settings.settings,
    activities.activities,
    steps.odd_steps,
    shapes.shapes,
    completeness.completeness,
    clocks.clocks,
    damage.damage,
    size.size,
    outside.outside,
    start_up.waiting_to_start,
    backlog.earlier_work,
    warm_up.first_uses,
    launches.launches,
    disagreement.disagreement,
)
