"""The parts of an advisor: its declaration, its observations and their evidence."""

from __future__ import annotations

from advisor_core.contracts.advisor import (
    Advisor,
    Interval,
    Metric,
    Observations,
    Params,
    Reference,
    Rows,
    Scope,
    Setting,
    Stack,
    advisor,
    job_advisor,
)
from advisor_core.contracts.columns import Column
from advisor_core.contracts.cure import AsPeers, Cure, EvenWork, HigherClock, KernelsTake, MoreMicroBatches
from advisor_core.contracts.drawing import Drawing, drawing

__all__ = [
    "Advisor",
    "AsPeers",
    "Column",
    "Cure",
    "Drawing",
    "EvenWork",
    "HigherClock",
    "Interval",
    "KernelsTake",
    "Metric",
    "MoreMicroBatches",
    "Observations",
    "Params",
    "Reference",
    "Rows",
    "Scope",
    "Setting",
    "Stack",
    "advisor",
    "drawing",
    "job_advisor",
]
