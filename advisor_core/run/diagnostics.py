"""The diagnostics of a job: of the tool, of ranks that could not be read, and of each rank."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from advisor_core.contracts.profile import InputError, RankInput
from advisor_core.plugins.guarded_loaders import LoaderError
from advisor_core.plugins.host import Host
from advisor_core.result.run import Diagnostic
from advisor_core.rules.book import RuleBook
from advisor_core.run.rank_outcome import RankOutcome
from advisor_core.run.unequal_steps import unequal_steps
from advisor_core.text.messages import message

Failure = tuple[RankInput, InputError]
"""A rank that could not be read, and why."""


def diagnostics_of(
    host: Host,
    book: RuleBook,
    outcomes: Sequence[RankOutcome],
    failures: Sequence[Failure],
) -> list[Diagnostic]:
    """All of them, errors first; of several ranks each with its rank."""
    found = [
        Diagnostic(
            severity="error",
            source=plugin.name,
            about="tool",
            message=message("engine.plugin", plugin=f"{plugin.distribution} {plugin.version}", problem=plugin.problem),
        )
        for plugin in host.plugins
        if plugin.problem
    ]
    for plugin in host.plugins:
        for lack in plugin.lacks:
            text = message("engine.plugin_lacks", plugin=f"{plugin.distribution} {plugin.version}", problem=lack)
            found.append(Diagnostic(severity="error", source=plugin.name, about="tool", message=text))
    for problem in book.problems:
        name = Path(problem.file).name
        text = message("engine.rule_left_out", line=problem.line, problem=problem.message)
        found.append(Diagnostic(severity="error", source=name, message=text, about="tool"))
    for compiled in book:
        if compiled.replaces:
            file, other = Path(compiled.file).name, Path(compiled.replaces).name
            text = message("rule.replaced", rule=compiled.id, file=file, other=other)
            found.append(Diagnostic(severity="info", source=file, message=text))
    found += [unreadable(failure) for failure in failures]
    found += unequal_steps({outcome.rank: [step.step for step in outcome.steps] for outcome in outcomes})
    for outcome in outcomes:
        for diagnostic in outcome.diagnostics:
            where = f"rank {outcome.rank}: {diagnostic.source}" if len(outcomes) > 1 else diagnostic.source
            found.append(diagnostic.model_copy(update={"source": where}))
    order = ("error", "warning", "info")
    return sorted(found, key=lambda diagnostic: order.index(diagnostic.severity))


def unreadable(failure: Failure) -> Diagnostic:
    """The diagnostic of a rank that could not be read."""
    source, error = failure
    # a report leaves the machine: without the directories of this one
    reason = str(error).replace(str(source.directory), source.directory.name)
    text = message("engine.rank_unreadable", rank=source.rank, error=reason)
    about: Literal["input", "tool"] = "tool" if isinstance(error, LoaderError) else "input"
    return Diagnostic(severity="error", source=source.directory.name, message=text, about=about)
