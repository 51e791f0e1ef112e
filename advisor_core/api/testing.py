"""Helpers for the tests of plugins: small tables, facts over them, rules judged on rows."""

from __future__ import annotations

from advisor_core.testing import fact_store, judge_rows, measure, profile, table

__all__ = ["fact_store", "judge_rows", "measure", "profile", "table"]
