"""What happens when data is missing: no finding may appear that was not there, and a rule that lost its data must say
that it cannot answer."""

from __future__ import annotations

from dataclasses import dataclass

from advisor_core.result.run import RunResult
from advisor_core.sample.export.recording import Level
from advisor_core.sample.scenarios import SCENARIOS
from tests.diagnosis.diagnosis import SERIOUS, analyse
from tests.diagnosis.expectations import allowed

FILES = (
    "trace_view.json",
    "kernel_details.csv",
    "step_trace_time.csv",
    "operator_details.csv",
    "operator_memory.csv",
    "memory_record.csv",
    "op_statistic.csv",
    "api_statistic.csv",
    "npu_module_mem.csv",
    "communication.json",
    "communication_matrix.json",
    "profiler_info",
    "profiler_metadata.json",
)
LEVELS: tuple[Level, ...] = ("level_none", "level0", "level2")


@dataclass(frozen=True)
class Loss:
    """What a missing file or another level changed. ``appeared``: serious findings of rules that had none and that no
    cause allows; ``kept_quiet``: rules that had a finding and now say that all is well; ``asked``: rules that had one
    and now say what they need."""

    scenario: str
    missing: str
    appeared: tuple[str, ...]
    kept_quiet: tuple[str, ...]
    asked: tuple[str, ...]
    error: str | None = None

    @property
    def honest(self) -> bool:
        return not (self.appeared or self.kept_quiet or self.error)


def losses(name: str) -> list[Loss]:
    """A scenario without each of its files, and at each level."""
    scenario = SCENARIOS[name]
    whole = analyse(scenario, 0)
    fine = allowed(scenario.causes)
    found = [_loss(name, f"without {file}", whole, fine, "level1", file) for file in FILES]
    return found + [_loss(name, f"at {level}", whole, fine, level) for level in LEVELS]


def _loss(name: str, missing: str, whole: RunResult, fine: frozenset[str], level: Level, *drop: str) -> Loss:
    try:
        part = analyse(SCENARIOS[name], 0, level, *drop)
    except Exception as error:  # an input error is an honest answer: it says that nothing can be read
        honest = type(error).__name__ == "InputError"
        return Loss(name, missing, (), (), (), None if honest else f"{type(error).__name__}: {error}")
    before = {finding.rule for finding in whole.findings}
    after = {finding.rule for finding in part.findings}
    serious = {finding.rule for finding in part.findings if finding.severity in SERIOUS}
    states = {outcome.rule: outcome.state for outcome in part.rules}
    gone = sorted(rule for rule in before - after if not rule.startswith("DQ"))
    return Loss(
        name,
        missing,
        tuple(sorted(serious - before - fine)),
        tuple(rule for rule in gone if states[rule] == "pass"),
        tuple(rule for rule in gone if states[rule] == "cannot_answer"),
        next((f"{rule} raised" for rule, state in states.items() if state == "error"), None),
    )
