"""A baseline as the earlier side of a comparison: the part of a result that it holds."""

from __future__ import annotations

from collections import Counter

from advisor_core.compare.findings import Found, Judged
from advisor_core.compare.match import Match, Side, whole
from advisor_core.contracts.ledger_paths import summed
from advisor_core.gates.baseline import Baseline, Recorded
from advisor_core.result.comparison import ComparedRun
from advisor_core.result.finding import SEVERITIES
from advisor_core.result.run import Environment, Input, MeanStep, Profile, RunResult, Tool
from advisor_core.text.base import Text


def against(baseline: Baseline, after: RunResult) -> Match:
    """A baseline beside all ranks of a result."""
    return Match(Side(_result(baseline), [], baseline.steps_ns), whole(after), [])


def accepted(baseline: Baseline, after: RunResult) -> Judged:
    """The findings of the baseline, by conditions that are not known."""
    answered = set(baseline.judged.split())
    return Judged(
        [
            Found(
                (known.rule, known.role),
                known.fingerprint,
                Text(en=known.title, zh=known.title_zh or known.title),
                known.severity,
                ns=known.ns,
            )
            for known in baseline.findings
        ],
        frozenset((one.rule, one.role) for one in after.rules if one.rule in answered),
    )


def run_of(name: str, baseline: Baseline) -> ComparedRun:
    """What stands of it in the list of runs."""
    recorded = baseline.recorded or Recorded(kind="unknown", ranks=[])
    severities = Counter(known.severity for known in baseline.findings)
    chip = recorded.chip.get("name")
    return ComparedRun(
        name=name,
        vendor=recorded.vendor,
        kind=recorded.kind,
        chip=chip if isinstance(chip, str) else "",
        ranks=recorded.ranks,
        world_size=recorded.world_size,
        steps=len(baseline.steps_ns),
        step_ns=baseline.step_ns or 0,
        parts=summed(baseline.ledger_ns.items(), lambda path: path.trunk),
        findings={severity: severities[severity] for severity in SEVERITIES if severities[severity]},
    )


def _result(baseline: Baseline) -> RunResult:
    recorded = baseline.recorded or Recorded(kind="unknown", ranks=[])
    name, _, version = baseline.tool.partition(" ")
    step = MeanStep(
        role=None, rank=None, steps=len(baseline.steps_ns), wall_ns=baseline.step_ns or 0, entries=baseline.ledger_ns
    )
    source = Input(
        path="",
        kind="",
        vendor=recorded.vendor,
        rank=0,
        level=recorded.level,
        framework=None,
        versions=recorded.versions,
        sha256="",
    )
    return RunResult(
        tool=Tool(name=name, version=version),
        inputs=[source],
        environment=Environment(chip=recorded.chip, profiler=recorded.profiler),
        profile=Profile(
            kind=recorded.kind,
            ranks=recorded.ranks,
            world_size=recorded.world_size,
            steps=[],
            parallel=recorded.parallel,
            roles=recorded.roles,
        ),
        ledger=[],
        mean_steps=[step],
        findings=[],
        rules=[],
        views=[],
        diagnostics=[],
    )
