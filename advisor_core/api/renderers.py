"""The parts of a renderer: the result of a run, and numbers with units."""

from __future__ import annotations

from advisor_core.contracts.registry import Renderer
from advisor_core.result.evidence import Evidence, Source
from advisor_core.result.finding import SEVERITIES, Advice, Basis, Finding, Severity
from advisor_core.result.run import Diagnostic, LedgerEntry, LedgerStep, PhaseTime, RuleOutcome, RunResult, State
from advisor_core.result.view import View
from advisor_core.text.units import format_quantity

__all__ = [
    "SEVERITIES",
    "Advice",
    "Basis",
    "Diagnostic",
    "Evidence",
    "Finding",
    "LedgerEntry",
    "LedgerStep",
    "PhaseTime",
    "Renderer",
    "RuleOutcome",
    "RunResult",
    "Severity",
    "Source",
    "State",
    "View",
    "format_quantity",
]
