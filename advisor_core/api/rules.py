"""For authors of rules: loading rule files, and judging rows by them."""

from __future__ import annotations

from advisor_core.contracts.ledger_paths import LedgerPaths
from advisor_core.contracts.problems import Problem, RuleFileError
from advisor_core.rules.files.check import check_rules

__all__ = ["LedgerPaths", "Problem", "RuleFileError", "check_rules"]
