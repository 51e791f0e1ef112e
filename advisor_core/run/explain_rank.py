"""The explanation of one rank: the files that were read, its step, its problems, and what stays open."""

from __future__ import annotations

from collections.abc import Iterator

from advisor_core.result.run import MeanStep, RunResult
from advisor_core.text.units import format_quantity

_LARGEST = 5
"""Entries of the ledger that are named."""


def explain_rank(result: RunResult, rank: int, lang: str) -> Iterator[str]:
    """Nothing where the report has no such rank; of several roles, each that has it."""
    for source in result.inputs:
        if source.rank != rank:
            continue
        role = f"role {source.role} " if source.role else ""
        level = f", level {source.level}" if source.level else ""
        yield f"{role}rank {rank}: {source.kind}{level}, {source.path}"
        yield from (f"  {line}" for line in _of_role(result, rank, source.role, lang))


def _of_role(result: RunResult, rank: int, role: str | None, lang: str) -> Iterator[str]:
    for mean in result.mean_steps:
        if (mean.role, mean.rank) == (role, rank):
            yield from _step(mean, lang)
    findings = {finding.fingerprint: finding for finding in result.findings}
    for problem in result.problems:
        finding = findings[problem.findings[0]]
        if finding.role == role and rank in finding.ranks:
            own = sum(claim.ns for claim in finding.impact.claims if claim.rank == rank)
            yield f"{problem.number} {format_quantity(own, 'ns', lang)} claimed here: {finding.title.of(lang)}"
    for entry in result.unexplained:
        if (entry.role, entry.rank) == (role, rank):
            yield f"unexplained {entry.path}: {_amount(entry.ns, entry.share_of_step, lang)}"
    for outcome in result.rules:
        for state in ("error", "cannot_answer"):
            if outcome.role == role and rank in outcome.ranks.get(state, ()):
                yield f"{outcome.rule} {state}: {outcome.title.of(lang)}"


def _step(mean: MeanStep, lang: str) -> Iterator[str]:
    of = "the only step" if mean.steps == 1 else f"mean of {mean.steps} steps"
    yield f"{of}: {format_quantity(mean.wall_ns, 'ns', lang)}"
    for path, ns in sorted(mean.entries.items(), key=lambda entry: (-entry[1], entry[0]))[:_LARGEST]:
        yield f"  {path} {_amount(ns, ns / mean.wall_ns if mean.wall_ns else 0.0, lang)}"


def _amount(ns: int, share: float, lang: str) -> str:
    return f"{format_quantity(ns, 'ns', lang)} ({format_quantity(share, 'ratio', lang)})"
