"""The mean step of both runs, as the ledgers that bars and tables show."""

from __future__ import annotations

from advisor_core.api.renderers import Comparison, MeanStep
from reports.ledgers import Ledger


def sides(comparison: Comparison) -> tuple[Ledger, Ledger]:
    """Before and after."""
    verdict = comparison.verdict
    before = {row.path: row.before_ns for row in comparison.ledger if row.before_ns}
    after = {row.path: row.after_ns for row in comparison.ledger if row.after_ns}
    return _ledger(verdict.steps[0], verdict.before_ns, before), _ledger(verdict.steps[1], verdict.after_ns, after)


def either(comparison: Comparison) -> Ledger:
    """Every entry of either side, at the larger of its times: the order in which entries are listed."""
    largest = {row.path: max(row.before_ns, row.after_ns) for row in comparison.ledger}
    return _ledger(1, sum(largest.values()), largest)


def _ledger(steps: int, wall_ns: int, entries: dict[str, int]) -> Ledger:
    return Ledger(MeanStep(role=None, rank=None, steps=steps, wall_ns=wall_ns, entries=entries))
