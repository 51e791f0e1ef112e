"""Remarks of a run on stderr, and the conditions that decide its exit code."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor_core.result.run import RunResult


def remarks(result: RunResult, lang: str, at_least: str) -> list[str]:
    """The diagnostics about the input, of the severity ``at_least`` or above, as lines."""
    order = ("error", "warning", "info")
    lines = []
    for diagnostic in result.diagnostics:
        if diagnostic.about == "input" and order.index(diagnostic.severity) <= order.index(at_least):
            said = diagnostic.message.of(lang)
            rank, _, file = diagnostic.source.rpartition(": ")
            source = rank if said.startswith(file) else diagnostic.source  # many messages begin with the file
            where = ", ".join(filter(None, (diagnostic.role, source)))
            lines.append(": ".join(filter(None, (diagnostic.severity, where, said))))
    return lines


def nothing_judged(result: RunResult) -> str | None:
    """The reason if the input was read in vain: a report would have no ledger, no drawing, no finding; else None."""
    if result.ledger or result.views or result.findings:
        return None
    names = ", ".join(source.path for source in result.inputs)
    files = [file.name for source in result.inputs for file in source.files]
    errors = [error.message.en for error in result.diagnostics if error.severity == "error"]
    reasons = Counter(rule.reason.en for rule in result.rules if rule.state == "cannot_answer" and rule.reason)
    missing = dict.fromkeys([*(reason for reason, _ in reasons.most_common(1)), *errors])
    return (
        f"{names}: nothing can be judged; found: {', '.join(files) or 'no file of a known kind'}; "
        f"missing: {'; '.join(missing) or 'what rules need'} (advisor collect says what to record)"
    )


def crashed(result: RunResult, lang: str) -> list[str]:
    """The rules that crashed and did not judge, and (told as diagnostics already) plugins and rule files."""
    rules = [
        f"{outcome.rule}: {outcome.reason.of(lang)}"
        for outcome in result.rules
        if outcome.state == "error" and outcome.reason
    ]
    of_tool = [diagnostic for diagnostic in result.diagnostics if diagnostic.about == "tool"]
    tools = [f"{diagnostic.source}: {diagnostic.message.of(lang)}" for diagnostic in of_tool]
    return [*dict.fromkeys(rules), *tools]
