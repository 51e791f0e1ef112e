"""Helpers for the tests of rules and plugins: small tables, a rank written down event by event, facts over them, and
one rule judged over it or on rows."""

from __future__ import annotations

from advisor_core.testing import (
    ASCEND,
    GPU,
    JudgedRule,
    Scene,
    SceneWords,
    fact_store,
    judge_rows,
    judge_rule,
    measure,
    profile,
    table,
)

__all__ = [
    "ASCEND",
    "GPU",
    "JudgedRule",
    "Scene",
    "SceneWords",
    "fact_store",
    "judge_rows",
    "judge_rule",
    "measure",
    "profile",
    "table",
]
