"""Whether a run had nothing to say of its input."""

from __future__ import annotations

from collections import Counter

from advisor_core.result.run import RunResult


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
