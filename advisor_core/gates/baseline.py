"""A baseline: the step and the findings of a run that a team has accepted, as a YAML file that people edit."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from pydantic import Field, ValidationError

from advisor_core.contracts.profile import HOST_SLOWING_OPTIONS
from advisor_core.result.finding import Severity, at_least
from advisor_core.result.run import UNANSWERED, RunResult
from advisor_core.text.base import Model, Scalar

KEPT = 30
"""Earlier runs that a file keeps, the newest; our choice."""


class BaselineError(ValueError):
    """A file is no baseline; the message names it and says what is wrong."""


class Accepted(Model):
    """A finding that is known. ``expires``: the first day on which it counts as new again; ``ns``: per step, as
    its rule measured it, ``None`` in files of earlier versions; ``role``: as of the finding."""

    fingerprint: str
    rule: str
    severity: Severity
    title: str
    title_zh: str = ""
    ns: int | None = None
    role: str | None = None
    reason: str = Field("", description="why it may stay; for people to fill in")
    expires: date | None = Field(None, description="the first day on which it counts as new again")

    def holds(self, today: date) -> bool:
        return self.expires is None or today < self.expires


class Recorded(Model):
    """The recorded settings, as far as they decide with what a baseline can be compared. ``profiler``: options that
    slow the host."""

    kind: str
    roles: dict[str, str] = Field(default_factory=dict)
    vendor: str = ""
    level: str | None = None
    ranks: list[int]
    world_size: int | None = None
    parallel: dict[str, int] = Field(default_factory=dict)
    chip: dict[str, Scalar] = Field(default_factory=dict)
    profiler: dict[str, Scalar] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)


class Earlier(Model):
    """The mean step of a run that is kept beside: as in `Baseline`."""

    step_ns: int
    ledger_ns: dict[str, int]


class Baseline(Model):
    """``step_ns``: mean step over all ranks, ``None`` where no step was recorded; ``ledger_ns``: ledger path to its ns
    of that step; ``steps_ns``: the steps that it is the mean of, each the mean over the ranks. ``judged``: ids of the
    rules that had an answer, with blanks between them. ``history``: further runs of which the same was recorded, the
    newest last. Files of earlier versions lack the last four."""

    tool: str
    step_ns: int | None
    ledger_ns: dict[str, int]
    findings: list[Accepted]
    steps_ns: list[int] = Field(default_factory=list)
    recorded: Recorded | None = None
    judged: str = ""
    history: list[Earlier] = Field(default_factory=list)

    def runs(self) -> list[Earlier]:
        """All runs that were kept, this one last."""
        own = [] if self.step_ns is None else [Earlier(step_ns=self.step_ns, ledger_ns=self.ledger_ns)]
        return [*self.history, *own]

    def knows(self, fingerprint: str, severity: Severity, today: date) -> bool:
        """Whether a finding is accepted still: it is listed with this severity or a higher one, and has not expired."""
        return any(
            known.fingerprint == fingerprint and known.holds(today) and at_least(known.severity, severity)
            for known in self.findings
        )


def baseline_of(result: RunResult, earlier: Baseline | None = None, steps_ns: Sequence[int] = ()) -> Baseline:
    """The baseline that accepts a result as it is. Reasons and expiry come from ``earlier``, by fingerprint; its
    history, too, where the same was recorded on the same devices. ``steps_ns``: as of `Baseline`."""
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
                title_zh=finding.title.zh,
                ns=finding.impact.gross_ns_per_step,
                role=finding.role,
                reason=before.reason if before else "",
                expires=before.expires if before else None,
            )
        )
    recorded = _recorded(result)
    alike = earlier is not None and earlier.recorded is not None and _alike(earlier.recorded, recorded)
    return Baseline(
        tool=f"{result.tool.name} {result.tool.version}",
        step_ns=mean.wall_ns if mean else None,
        ledger_ns=dict(sorted(mean.entries.items())) if mean else {},
        findings=findings,
        steps_ns=list(steps_ns),
        recorded=recorded,
        judged=" ".join(sorted(_judged(result))),
        history=earlier.history if earlier is not None and alike else [],
    )


def with_run(earlier: Baseline, result: RunResult) -> Baseline:
    """The same baseline with one more run in its history. Raises `BaselineError` for a run without a mean step, or one
    of which something else was recorded."""
    now = baseline_of(result)
    if now.step_ns is None:
        raise BaselineError("the run has no mean step that could be kept")
    if earlier.recorded is None or now.recorded is None or not _alike(earlier.recorded, now.recorded):
        raise BaselineError("the run was recorded otherwise than the baseline, or on other devices")
    run = Earlier(step_ns=now.step_ns, ledger_ns=now.ledger_ns)
    return earlier.model_copy(update={"history": [*earlier.history, run][-KEPT:]})


def _alike(one: Recorded, other: Recorded) -> bool:
    """Whether the steps of two runs can differ by chance alone: what they ran on and what was recorded is the same."""
    changing = {"versions"}
    return one.model_dump(exclude=changing) == other.model_dump(exclude=changing)


def _recorded(result: RunResult) -> Recorded:
    profile, settings = result.profile, result.environment.profiler
    versions = {name: text for source in reversed(result.inputs) for name, text in source.versions.items()}
    return Recorded(
        kind=profile.kind,
        roles=dict(profile.roles),
        vendor=_one({source.vendor for source in result.inputs}) or "",
        level=_one({source.level for source in result.inputs}),
        ranks=profile.ranks,
        world_size=profile.world_size,
        parallel=dict(profile.parallel),
        chip=dict(result.environment.chip),
        profiler={name: settings[name] for name in HOST_SLOWING_OPTIONS if name in settings},
        versions=versions,
    )


def _one(values: set[str | None] | set[str]) -> str | None:
    """The value that all inputs have; ``None`` where they differ."""
    return next(iter(values)) if len(values) == 1 else None


def _judged(result: RunResult) -> set[str]:
    """The rules that had an answer in every role that has them."""
    rules = {outcome.rule for outcome in result.rules}
    return rules - {outcome.rule for outcome in result.rules if outcome.state in UNANSWERED}


def is_baseline(path: Path) -> bool:
    """Whether a path is a file that can only be a baseline, by its name."""
    return path.suffix in (".yaml", ".yml") and path.is_file()


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
