"""The comparison of two results, and of several with the first of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from advisor_core.compare.amounts import amounts
from advisor_core.compare.apis import api_differences
from advisor_core.compare.baseline import accepted, against, run_of
from advisor_core.compare.causes import causes
from advisor_core.compare.comparability import obstacles, spoilt, trunks_as_a_whole
from advisor_core.compare.computed import computed_differences, side_by_side
from advisor_core.compare.difference import covered_shares, ledger_differences, memory_differences, phase_differences
from advisor_core.compare.drawings import drawn_differences
from advisor_core.compare.findings import Judged, finding_differences, judged
from advisor_core.compare.match import Match, matched
from advisor_core.compare.origins import origins
from advisor_core.compare.passes import pass_differences
from advisor_core.compare.promises import promises
from advisor_core.compare.verdict import verdict
from advisor_core.compare.work import changed, collective_differences, shape_differences, type_differences
from advisor_core.contracts.labels import HEADING
from advisor_core.contracts.ledger_paths import summed
from advisor_core.gates.baseline import Baseline
from advisor_core.result.comparison import ComparedRun, Comparison, ComparisonResult, Conclusion
from advisor_core.result.finding import SEVERITIES
from advisor_core.result.run import RunResult

T = TypeVar("T")


class CompareError(Exception):
    """A result that cannot be compared with anything; names it."""


def compare_all(
    names: Sequence[str], results: Sequence[RunResult], baseline: Baseline | None = None
) -> ComparisonResult:
    """Each result but the first compared with the first; with ``baseline`` all with that, whose name then stands first.
    ``names``: what to call them. Raises `CompareError` for one without a ledger, which has no step, and one of several
    runs."""
    own = names[1:] if baseline is not None else names
    if baseline is not None and baseline.step_ns is None:
        raise CompareError(f"{names[0]} has no step: there is nothing to compare with")
    for name, result in zip(own, results, strict=True):
        if not result.mean_steps:
            raise CompareError(f"{name} has no step whose time is known: there is nothing to compare")
        if result.profile.apart:
            raise CompareError(f"{name} has ranks that do not seem to be of one run: give each run by itself")
    labels = {key: text for result in results for key, text in result.labels.items() if not key.startswith(HEADING)}
    runs = [_run(name, result) for name, result in zip(own, results, strict=True)]
    if baseline is not None:
        runs.insert(0, run_of(names[0], baseline))
        compared = [_against(baseline, result, place) for place, result in enumerate(results, 1)]
    else:
        compared = [compare(results[0], result, place) for place, result in enumerate(results[1:], 1)]
    return ComparisonResult(tool=results[0].tool, runs=runs, comparisons=compared, labels=labels)


def compare(before: RunResult, after: RunResult, place: int = 1) -> Comparison:
    """Two results; ``place``: that of the later one among the runs. What an obstacle spoils is left empty."""
    return _compared(matched(before, after), judged(before), place)


def _against(baseline: Baseline, after: RunResult, place: int) -> Comparison:
    return _compared(against(baseline, after), accepted(baseline, after), place)


def _compared(match: Match, earlier: Judged, place: int) -> Comparison:
    before, after = match.before.result, match.after.result
    found = obstacles(match)
    withheld = spoilt(found)

    def unless(conclusion: Conclusion, told: list[T]) -> list[T]:
        return [] if conclusion in withheld else told

    told = verdict(match, found)
    ledger = unless("causes", ledger_differences(match, trunks_as_a_whole(found)))
    shapes = unless("operators", shape_differences(match))
    operators = changed(type_differences(shapes))
    collectives = unless("communication", collective_differences(match))
    findings = unless("findings", finding_differences(earlier, judged(after), told.before_ns))
    across = told.outcome == "across_vendors"
    rows = side_by_side(match) if across else {}
    explained = [] if across else causes(ledger, findings, operators, collectives, (before, after), told.before_ns)
    return Comparison(
        before=0,
        after=place,
        obstacles=found,
        withheld=withheld,
        verdict=told,
        ledger=ledger,
        causes=explained,
        rest_ns=0
        if across
        else sum(row.difference_ns for row in ledger) - sum(cause.difference_ns for cause in explained),
        ranks=unless("causes", match.ranks()),
        steps=[] if match.of_baseline else unless("causes", match.steps()),
        phases=[] if match.of_baseline else unless("causes", phase_differences(match)),
        operators=operators,
        operator_shapes=changed(shapes),
        collectives=collectives,
        covered=(None, None) if "communication" in withheld else covered_shares(match),
        apis=unless("operators", api_differences(match)),
        memory=unless("memory", memory_differences(match)),
        drawings=[
            # Parts of the model and modules have the names of the program, whoever made the device.
            *(
                drawn_differences(match, "layers")
                if across
                else unless("operators", drawn_differences(match, "layers"))
            ),
            *unless("memory", drawn_differences(match, "memory_peak")),
        ],
        settings={} if match.of_baseline or across else _settings(before, after),
        findings=findings,
        promises=None if "promises" in withheld else promises(before, after, findings, told),
        amounts=amounts(match, "causes" not in withheld) if across else None,
        origins=origins(rows, ledger) if across else [],
        computed=computed_differences(rows),
        passes=pass_differences(match) if across else [],
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
