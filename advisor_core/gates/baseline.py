"""A baseline: the step and the findings of a run that a team has accepted, as a YAML file that people edit."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from pydantic import Field, ValidationError

from advisor_core.result.finding import Severity, at_least
from advisor_core.result.run import RunResult
from advisor_core.text.base import Model


class BaselineError(ValueError):
    """A file is no baseline; the message names it and says what is wrong."""


class Accepted(Model):
    """A finding that is known. ``expires``: the first day on which it counts as new again."""

    fingerprint: str
    rule: str
    severity: Severity
    title: str
    reason: str = Field("", description="why it may stay; for people to fill in")
    expires: date | None = Field(None, description="the first day on which it counts as new again")

    def holds(self, today: date) -> bool:
        return self.expires is None or today < self.expires


class Baseline(Model):
    """``step_ns``: mean step over all ranks, ``None`` where no step was recorded; ``ledger_ns``: ledger path to its ns
    of that step."""

    tool: str
    step_ns: int | None
    ledger_ns: dict[str, int]
    findings: list[Accepted]

    def knows(self, fingerprint: str, severity: Severity, today: date) -> bool:
        """Whether a finding is accepted still: it is listed with this severity or a higher one, and has not expired."""
        return any(
            known.fingerprint == fingerprint and known.holds(today) and at_least(known.severity, severity)
            for known in self.findings
        )


def baseline_of(result: RunResult, earlier: Baseline | None = None) -> Baseline:
    """The baseline that accepts a result as it is. Reasons and expiry come from ``earlier``, by fingerprint."""
    kept = {known.fingerprint: known for known in earlier.findings} if earlier else {}
    mean = None if result.profile.apart else next(iter(result.mean_steps), None)
    findings = []
    for finding in result.findings:
        before = kept.get(finding.fingerprint)
        findings.append(
            Accepted(
                fingerprint=finding.fingerprint,
                rule=finding.rule,
                severity=finding.severity,
                title=finding.title.en,
                reason=before.reason if before else "",
                expires=before.expires if before else None,
            )
        )
    return Baseline(
        tool=f"{result.tool.name} {result.tool.version}",
        step_ns=mean.wall_ns if mean else None,
        ledger_ns=dict(sorted(mean.entries.items())) if mean else {},
        findings=findings,
    )


def read_baseline(path: Path) -> Baseline:
    """The baseline in a file. Raises `BaselineError`."""
    import yaml

    try:
        return Baseline.model_validate(yaml.safe_load(path.read_text("utf-8")))
    except OSError as error:
        raise BaselineError(f"{path}: {error.strerror or error}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BaselineError(f"{path} is not YAML: {str(error).splitlines()[0]}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise BaselineError(f"{path} is no baseline: {where}: {first['msg']}") from None


def baseline_text(baseline: Baseline) -> str:
    """The file, in the order of the fields."""
    import yaml

    return yaml.safe_dump(baseline.model_dump(), sort_keys=False, allow_unicode=True, width=120)
