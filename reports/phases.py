"""The phases of an iteration as a report calls them."""

from __future__ import annotations

from advisor_core.api.renderers import MeanStep, PhaseSummary, RunResult
from reports.labels import Labels
from reports.ledgers import Ledger


def phase_label(phase: PhaseSummary, labels: Labels) -> str:
    """What a phase is beside its name; that it is time outside of all marks."""
    if not phase.phase:
        return labels("phases.outside")
    return labels(f"phase.{phase.kind}") if f"phase.{phase.kind}" in labels else ""


def phase_ledgers(result: RunResult) -> dict[str, Ledger]:
    """The mean of each phase that marks name, by name in the order of the result."""
    return {
        phase.phase: Ledger(
            MeanStep(role=None, rank=None, steps=1, wall_ns=sum(phase.entries.values()), entries=phase.entries)
        )
        for phase in result.phase_summaries
        if phase.phase
    }
