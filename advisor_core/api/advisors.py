"""What advisors are made of: declaring one, its observations and their evidence."""

from __future__ import annotations

from advisor_core.contracts.advisor import (
    Advisor,
    Column,
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
)

__all__ = [
    "Advisor",
    "Column",
    "Interval",
    "Metric",
    "Observations",
    "Params",
    "Reference",
    "Rows",
    "Scope",
    "Setting",
    "Stack",
    "advisor",
]
