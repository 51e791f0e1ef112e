"""The conditions that ``--fail-on`` takes, and whether a result meets them.

``high``, ``new high``: a finding of this severity or above; new is what the baseline does not accept.
``step_time > 200 ms``, ``idle > 15 %``, ``communication/wait > baseline + 3 %``: the mean step over all ranks, or what
the ledger books under a path of it, as a time, as a share of the step, or against that of the baseline.
``step_time > history``, ``idle > history + 3 %``: against the runs that the baseline keeps, beyond their scatter.
``cannot_answer HD*``: a rule that the recording gives no answer to, by id or name, with ``*`` for anything.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from statistics import median
from typing import Literal, TypeAlias, cast

from advisor_core.contracts.ledger_paths import LedgerPath, LedgerPaths
from advisor_core.gates.baseline import Baseline
from advisor_core.result.finding import SEVERITIES, Severity, at_least
from advisor_core.result.run import RunResult
from advisor_core.text.units import base_of, format_quantity, to_base

STEP_TIME = "step_time"

LEAST_RUNS = 5
"""A median and a spread of fewer runs say nothing; our choice, as of collectives (CO004)."""
SPREADS = 3.5
"""Limit of the modified z-score of Iglewicz and Hoaglin (NIST handbook, detection of outliers)."""

Sign = Literal[">", ">=", "<", "<="]
_COMPARE: dict[Sign, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class GateError(ValueError):
    """A text is no condition, or one needs a baseline and there is none."""


class UndecidableError(Exception):
    """A condition asks for what the result does not have, or for a baseline of another vendor."""


def _require_same_vendor(result: RunResult, baseline: Baseline) -> None:
    """Raises `UndecidableError` where the baseline is of a device of another vendor: a step on a GPU is no limit for
    one on an NPU, and findings of one are none of the other."""
    before = "" if baseline.recorded is None else baseline.recorded.vendor
    now = {source.vendor for source in result.inputs if source.vendor}
    if before and now and now != {before}:
        raise UndecidableError(
            f"the baseline is of another vendor ({before}, now {', '.join(sorted(now))}): `advisor compare` says where "
            "the difference of two vendors comes from"
        )


@dataclass(frozen=True)
class FindingGate:
    """Met by a finding of ``severity`` or above; with ``new`` only by one that the baseline does not accept."""

    severity: Severity
    new: bool

    def met(self, result: RunResult, baseline: Baseline | None, today: date) -> str:
        if self.new and baseline is not None:
            _require_same_vendor(result, baseline)
        count = sum(
            at_least(finding.severity, self.severity)
            and not (self.new and baseline and baseline.knows(finding.fingerprint, finding.severity, today))
            for finding in result.findings
        )
        return f"findings: {count}" if count else ""


@dataclass(frozen=True)
class TimeGate:
    """Compares what is booked under ``path`` of the mean step, or all of it. ``amount``: ns, or with ``of`` a ratio: of
    the step, or by how much it may differ from the baseline or, beyond their scatter, from the runs that were kept."""

    path: str
    sign: Sign
    amount: float
    of: Literal["", "step", "baseline", "history"]

    def met(self, result: RunResult, baseline: Baseline | None, today: date) -> str:
        mean = next(iter(result.mean_steps), None)
        if mean is None:
            raise UndecidableError("no step was recorded")
        if result.profile.apart:
            raise UndecidableError("the ranks do not seem to be of one run: there is no mean step")
        ns = _booked(self.path, mean.entries, mean.wall_ns)
        if self.of == "step":
            if mean.wall_ns == 0:
                raise UndecidableError("the step takes no time")
            share = ns / mean.wall_ns
            return f"it is {format_quantity(share, 'ratio')}" if _COMPARE[self.sign](share, self.amount) else ""
        limit, beside = self.amount, ""
        if self.of in ("baseline", "history") and baseline is not None:
            _require_same_vendor(result, baseline)
        if self.of == "baseline":
            assert baseline is not None  # `parse_gate` asks for one
            if baseline.step_ns is None:
                raise UndecidableError("the baseline has no step")
            before = _booked(self.path, baseline.ledger_ns, baseline.step_ns)
            limit, beside = before * (1 + self.amount), f", in the baseline {format_quantity(before, 'ns')}"
        if self.of == "history":
            assert baseline is not None
            runs = [_booked(self.path, run.ledger_ns, run.step_ns) for run in baseline.runs()]
            if len(runs) < LEAST_RUNS:
                raise UndecidableError(f"the baseline keeps {len(runs)} runs: at least {LEAST_RUNS} are needed")
            usual, scatter = _usual(runs)
            away = usual * self.amount + (scatter if self.sign in (">", ">=") else -scatter)
            limit, beside = usual + away, f", in {len(runs)} earlier runs {format_quantity(usual, 'ns')} at the median"
        return f"it is {format_quantity(ns, 'ns')}{beside}" if _COMPARE[self.sign](ns, limit) else ""


@dataclass(frozen=True)
class AnswerGate:
    """Met by a rule that cannot answer; ``pattern``: of its id or name."""

    pattern: str

    def met(self, result: RunResult, baseline: Baseline | None, today: date) -> str:
        rules = {
            outcome.rule
            for outcome in result.rules
            if outcome.state == "cannot_answer"
            and any(fnmatchcase(name, self.pattern) for name in (outcome.rule, outcome.name))
        }
        return f"rules: {', '.join(sorted(rules))}" if rules else ""


Gate: TypeAlias = FindingGate | TimeGate | AnswerGate
"""``met`` says in words what meets the condition, '' where nothing does. It raises `UndecidableError`."""

_FINDING = re.compile(rf"(?P<new>new\s+)?(?P<severity>{'|'.join(SEVERITIES)})")
_ANSWER = re.compile(r"cannot_answer\s+(?P<pattern>\S+)")
_AMOUNT = r"(?P<value>\d+(?:\.\d+)?)\s*(?P<unit>[^\s\d]+)"
_TIME = re.compile(
    rf"(?P<path>[\w/ ]+?)\s*(?P<sign>[<>]=?)\s*(?:(?P<against>baseline|history)\s*(?P<plus>[+-])\s*)?{_AMOUNT}"
)
_HISTORY = re.compile(r"(?P<path>[\w/ ]+?)\s*(?P<sign>[<>]=?)\s*history")


def parse_gate(text: str, paths: LedgerPaths, has_baseline: bool) -> Gate:
    """The condition in ``text``. Raises `GateError`. ``paths``: of the ledger, so that a misspelt one is an error."""
    stripped = text.strip()
    if found := _FINDING.fullmatch(stripped):
        new = found["new"] is not None
        _needs_baseline(text, new, has_baseline)
        return FindingGate(cast(Severity, found["severity"]), new)
    if found := _ANSWER.fullmatch(stripped):
        return AnswerGate(found["pattern"])
    if found := _HISTORY.fullmatch(stripped):
        _needs_baseline(text, True, has_baseline)
        return TimeGate(_path(text, found, paths), cast(Sign, found["sign"]), 0.0, "history")
    if found := _TIME.fullmatch(stripped):
        return _time_gate(text, found, paths, has_baseline)
    raise GateError(
        f"{text!r} is no condition: write a severity ({', '.join(SEVERITIES)}), 'new high', 'idle > 15 %', "
        "'step_time > 200 ms', 'step_time > baseline + 3 %', 'step_time > history' or 'cannot_answer HD*'"
    )


def _time_gate(text: str, found: re.Match[str], paths: LedgerPaths, has_baseline: bool) -> TimeGate:
    path = _path(text, found, paths)
    base, _ = base_of(found["unit"])
    against = found["against"] is not None
    _needs_baseline(text, against, has_baseline)
    if base not in ("ns", "ratio") or (against and base != "ratio"):
        raise GateError(f"{text!r}: {found['unit']!r} is {'no %' if against else 'neither a unit of time nor %'}")
    if base == "ratio" and not against and path == STEP_TIME:
        raise GateError(f"{text!r}: {STEP_TIME} takes a time, or % of the baseline")
    amount = float(to_base(float(found["value"]), found["unit"]))
    of = cast(Literal["", "step", "baseline", "history"], found["against"] or ("step" if base == "ratio" else ""))
    return TimeGate(path, cast(Sign, found["sign"]), -amount if found["plus"] == "-" else amount, of)


def _path(text: str, found: re.Match[str], paths: LedgerPaths) -> str:
    path = found["path"].strip()
    if path != STEP_TIME and path not in paths:
        raise GateError(f"{text!r}: {path!r} is neither {STEP_TIME} nor a path of the ledger")
    return path


def _usual(runs: list[int]) -> tuple[float, float]:
    """The median of earlier runs, and how far a run may lie from it by chance: `SPREADS` times the median distance,
    which is scaled to a standard deviation."""
    usual = median(runs)
    return usual, SPREADS * 1.4826 * median([abs(run - usual) for run in runs])


def _needs_baseline(text: str, needed: bool, has_baseline: bool) -> None:
    if needed and not has_baseline:
        raise GateError(f"{text!r} needs --baseline")


def _booked(path: str, ledger_ns: dict[str, int], step_ns: int) -> int:
    if path == STEP_TIME:
        return step_ns
    return sum(ns for leaf, ns in ledger_ns.items() if LedgerPath(path).covers(leaf))
