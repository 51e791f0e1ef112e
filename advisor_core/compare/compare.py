"""The comparison of two results, and of several with the first of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count
from typing import TypeVar

from advisor_core.compare.causes import causes
from advisor_core.compare.comparability import obstacles, spoilt, trunks_as_a_whole
from advisor_core.compare.difference import ledger_differences, memory_differences, phase_differences
from advisor_core.compare.findings import finding_differences
from advisor_core.compare.match import matched
from advisor_core.compare.promises import promises
from advisor_core.compare.verdict import verdict
from advisor_core.compare.work import changed, collective_differences, shape_differences, type_differences
from advisor_core.contracts.labels import HEADING
from advisor_core.contracts.ledger_paths import summed
from advisor_core.result.comparison import ComparedRun, Comparison, ComparisonResult, Conclusion
from advisor_core.result.finding import SEVERITIES
from advisor_core.result.run import RunResult

T = TypeVar("T")


class CompareError(Exception):
    """A result that cannot be compared with anything; names it."""


def compare_all(names: Sequence[str], results: Sequence[RunResult]) -> ComparisonResult:
    """Each result but the first compared with the first. ``names``: what to call them. Raises `CompareError` for one
    without a ledger, which has no step, and one of several runs."""
    for name, result in zip(names, results, strict=True):
        if not result.mean_steps:
            raise CompareError(f"{name} has no step whose time is known: there is nothing to compare")
        if result.profile.apart:
            raise CompareError(f"{name} has ranks that do not seem to be of one run: give each run by itself")
    labels = {key: text for result in results for key, text in result.labels.items() if not key.startswith(HEADING)}
    return ComparisonResult(
        tool=results[0].tool,
        runs=[_run(name, result) for name, result in zip(names, results, strict=True)],
        comparisons=[compare(results[0], result, place) for place, result in zip(count(1), results[1:], strict=False)],
        labels=labels,
    )


def compare(before: RunResult, after: RunResult, place: int = 1) -> Comparison:
    """Two results; ``place``: that of the later one among the runs. What an obstacle spoils is left empty."""
    match = matched(before, after)
    found = obstacles(match)
    withheld = spoilt(found)

    def unless(conclusion: Conclusion, told: list[T]) -> list[T]:
        return [] if conclusion in withheld else told

    told = verdict(match, found)
    ledger = unless("causes", ledger_differences(match, trunks_as_a_whole(found)))
    shapes = unless("operators", shape_differences(match))
    operators = changed(type_differences(shapes))
    collectives = unless("communication", collective_differences(match))
    findings = unless("findings", finding_differences(before, after, told.before_ns))
    explained = causes(ledger, findings, operators, collectives, (before, after), told.before_ns)
    return Comparison(
        before=0,
        after=place,
        obstacles=found,
        withheld=withheld,
        verdict=told,
        ledger=ledger,
        causes=explained,
        rest_ns=sum(row.difference_ns for row in ledger) - sum(cause.difference_ns for cause in explained),
        ranks=unless("causes", match.ranks()),
        steps=unless("causes", match.steps()),
        phases=unless("causes", phase_differences(match)),
        operators=operators,
        operator_shapes=changed(shapes),
        collectives=collectives,
        memory=unless("memory", memory_differences(match)),
        settings=_settings(before, after),
        findings=findings,
        promises=None if "promises" in withheld else promises(before, after, findings, told),
    )


def _run(name: str, result: RunResult) -> ComparedRun:
    whole = result.mean_steps[0]
    severities = Counter(finding.severity for finding in result.findings)
    chip = result.environment.chip.get("name")
    lanes = Counter((step.role, step.rank) for step in result.ledger)
    return ComparedRun(
        name=name,
        vendor=", ".join(sorted({source.vendor for source in result.inputs if source.vendor})),
        kind=result.profile.kind,
        chip=chip if isinstance(chip, str) else "",
        ranks=result.profile.ranks,
        world_size=result.profile.world_size,
        steps=min(lanes.values()),
        step_ns=whole.wall_ns,
        parts=summed(whole.entries.items(), lambda path: path.trunk),
        findings={severity: severities[severity] for severity in SEVERITIES if severities[severity]},
    )


def _settings(before: RunResult, after: RunResult) -> dict[str, tuple[str | None, str | None]]:
    """The environment variables that either side records and that are not the same."""
    old, new = before.environment.variables, after.environment.variables
    return {name: (old.get(name), new.get(name)) for name in sorted(old | new) if old.get(name) != new.get(name)}
