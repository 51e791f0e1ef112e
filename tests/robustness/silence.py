"""Whether a run on a damaged recording answers otherwise than on the whole one, and whether it says so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from advisor_core.contracts.profile import InputError
from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions

Ending = Literal["same", "told", "open", "refused", "silent"]
"""``told``: a diagnostic or a finding about the recording itself says what is wrong; ``open``: totals are the same, and
each rule that finds nothing any more says what it lacks; ``refused``: exit code 3."""

TOLERANCE = 0.005
"""Totals that are this close are the same: the tolerance of the checks on whole recordings."""
ABOUT_THE_RECORDING = ("DQ", "GDQ")
"""How the ids of rules begin that judge the recording, not the job."""


@dataclass(frozen=True)
class Judged:
    """``why``: what differs where the ending is ``silent``, else what was said."""

    ending: Ending
    why: str


def analysed(path: Path) -> RunResult | None:
    """The result, None where the input is refused."""
    try:
        return run([path], RunOptions(), jobs=1)
    except InputError:
        return None


def judged(whole: RunResult, damaged: RunResult | None) -> Judged:
    """How the run on the damaged recording ended."""
    if damaged is None:
        return Judged("refused", "exit code 3")
    if said := sorted(_said(damaged) - _said(whole)):
        return Judged("told", "; ".join(said))
    if apart := _apart(whole, damaged):
        return Judged("silent", "; ".join(apart))
    # by fingerprint: a finding of the same rule on another operator is another answer
    found = [{(finding.rule, finding.fingerprint) for finding in result.findings} for result in (whole, damaged)]
    rules = {rule for rule, _ in found[0] ^ found[1]}
    lacking = {rule.rule for rule in damaged.rules if rule.state == "cannot_answer"}
    if unsaid := sorted(rules - lacking):
        return Judged("silent", f"findings of {', '.join(unsaid)}")
    return Judged("open", f"{', '.join(sorted(rules))} cannot be answered") if rules else Judged("same", "")


def _apart(whole: RunResult, damaged: RunResult) -> list[str]:
    """Which totals differ."""
    before, after = totals(whole), totals(damaged)
    step = max(sum(before.values()), 1)
    return [
        f"{name} {before[name] / 1e6:.3f} -> {after[name] / 1e6:.3f} ms"
        for name in sorted(before | after)
        if abs(before[name] - after[name]) > TOLERANCE * step
    ]


def totals(result: RunResult) -> Counter[str]:
    """ns of all steps and ranks by leaf of the ledger."""
    found: Counter[str] = Counter()
    for step in result.ledger:
        for entry in step.entries:
            found[entry.path] += entry.ns
    return found


def _said(result: RunResult) -> set[str]:
    """What the result says is wrong with the recording."""
    warnings = {f"{said.severity}: {said.message.en}" for said in result.diagnostics if said.severity != "info"}
    own = {finding.rule for finding in result.findings if finding.rule.startswith(ABOUT_THE_RECORDING)}
    return warnings | {f"finding {rule}" for rule in own}
