"""Remarks of a run on stderr, and the conditions that decide its exit code."""

from __future__ import annotations

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
