"""Views that name the problems of the report, which are numbered only when all findings are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor_core.contracts.ledger_paths import covered
from advisor_core.result.finding import Finding
from advisor_core.result.problem import Problem
from advisor_core.result.view import TableView, View
from advisor_core.text.base import Text
from advisor_core.text.messages import message

NAMED = 6
"""Problems that a row names, those with most time; of the rest it says how many."""


def with_problems(view: View, problems: Sequence[Problem], findings: Sequence[Finding]) -> View:
    """The view with problems in its last column, where its rows say which entries of the ledger they are about: those
    that claim time there, on its rank and in its role."""
    if not isinstance(view, TableView) or not view.data.entries:
        return view
    numbers = {problem.findings[0]: problem.number for problem in problems}
    own = [finding for finding in findings if finding.role == view.role]
    rows = [
        [*row[:-1], _named(_claimed(own, view.rank, paths), numbers)]
        for row, paths in zip(view.data.rows, view.data.entries, strict=True)
    ]
    return view.model_copy(update={"data": view.data.model_copy(update={"rows": rows})})


def _claimed(findings: Sequence[Finding], rank: int | None, paths: Sequence[str]) -> dict[str, int]:
    """Fingerprint to ns that the finding claims at or below these entries."""
    sums: dict[str, int] = {}
    for finding in findings:
        for claim in finding.impact.claims:
            if claim.rank == rank and claim.ns > 0 and covered(claim.path, paths):
                sums[finding.fingerprint] = sums.get(finding.fingerprint, 0) + claim.ns
    return sums


def _named(claimed: Mapping[str, int], numbers: Mapping[str, str]) -> Text:
    if not claimed:
        return message("views.no_problem")
    largest = sorted(claimed, key=lambda key: (-claimed[key], numbers[key]))
    named = ", ".join(numbers[key] for key in largest[:NAMED])
    rest = len(largest) - NAMED
    return message("views.problems_and_more", named=named, rest=rest) if rest > 0 else Text(en=named, zh=named)
