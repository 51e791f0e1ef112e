"""Conditions of ``--fail-on``, on results whose answer can be read off."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.contracts.ledger_paths import LedgerPaths
from advisor_core.gates.baseline import (
    Accepted,
    Baseline,
    BaselineError,
    baseline_of,
    baseline_text,
    read_baseline,
    with_run,
)
from advisor_core.gates.condition import GateError, UndecidableError, parse_gate
from advisor_core.result.run import RunResult
from tests import report_fixtures

PATHS = LedgerPaths({"matmul", "cast"})
TODAY = date(2026, 1, 15)


def training() -> RunResult:
    result: RunResult = report_fixtures.training()
    return result


def holds(text: str, result: RunResult, today: date = TODAY, *, accepted: RunResult | None = None) -> bool:
    baseline = baseline_of(accepted) if accepted else None
    return bool(parse_gate(text, PATHS, baseline is not None).met(result, baseline, today))


def test_a_severity_is_met_by_it_and_above() -> None:
    result = training()
    only_low = result.model_copy(
        update={"findings": [finding.model_copy(update={"severity": "low"}) for finding in result.findings]}
    )
    assert holds("high", result) and holds("low", result)
    assert not holds("medium", only_low) and holds("low", only_low)
    assert not holds("low", result.model_copy(update={"findings": []}))


def test_time_is_compared_in_its_unit() -> None:
    result = training()
    mean = result.mean_steps[0]
    idle = sum(ns for path, ns in mean.entries.items() if path.split("/")[0] == "idle")
    for limit, met in ((idle - 1, True), (idle, False), (idle + 1, False)):
        assert holds(f"idle > {limit} ns", result) is met
    assert holds(f"idle >= {idle} ns", result)
    assert holds(f"step_time > {mean.wall_ns / 1e6 - 0.001:.6f} ms", result)
    assert not holds(f"step_time > {mean.wall_ns / 1e6 + 0.001:.6f} ms", result)
    share = 100 * idle / mean.wall_ns
    assert holds(f"idle > {share - 0.01:.4f} %", result) and not holds(f"idle > {share + 0.01:.4f}%", result)


def slower(result: RunResult, percent: int) -> RunResult:
    """The result with every time of the mean step longer by so many percent."""
    mean = result.mean_steps[0]
    entries = {path: ns * (100 + percent) // 100 for path, ns in mean.entries.items()}
    changed = mean.model_copy(update={"entries": entries, "wall_ns": sum(entries.values())})
    return result.model_copy(update={"mean_steps": [changed, *result.mean_steps[1:]]})


@given(percent=st.integers(-50, 50), allowed=st.integers(0, 40))
def test_against_the_baseline(percent: int, allowed: int) -> None:
    before = training()
    after = slower(before, percent)
    if percent != allowed:  # rounding to whole ns decides at equality
        assert holds(f"step_time > baseline + {allowed} %", after, accepted=before) is (percent > allowed)
    if percent != -allowed:
        assert holds(f"step_time < baseline - {allowed} %", after, accepted=before) is (percent < -allowed)


def kept(*percents: int) -> Baseline:
    """A baseline, and further runs that take so many percent longer."""
    baseline = baseline_of(training())
    for percent in percents:
        baseline = with_run(baseline, slower(training(), percent))
    return baseline


@pytest.mark.parametrize(
    ("text", "percent", "met"),
    [
        # Runs of 0, 1, 2, 3 and 4 %: 2 at the median, 1 apart at the median; 3.5 x 1.4826 is 5.2.
        ("step_time > history", 7, False),
        ("step_time > history", 8, True),
        ("idle > history", 8, True),
        ("step_time > history + 3 %", 10, False),
        ("step_time > history + 3 %", 11, True),
        ("step_time < history", -3, False),
        ("step_time < history", -4, True),
    ],
)
def test_against_earlier_runs(text: str, percent: int, met: bool) -> None:
    gate = parse_gate(text, PATHS, True)
    assert bool(gate.met(slower(training(), percent), kept(1, 2, 3, 4), TODAY)) is met


def test_few_runs_are_no_history() -> None:
    with pytest.raises(UndecidableError, match="4 runs"):
        parse_gate("step_time > history", PATHS, True).met(training(), kept(1, 2, 3), TODAY)
    with pytest.raises(GateError, match="needs --baseline"):
        parse_gate("step_time > history", PATHS, False)
    with pytest.raises(GateError, match="nor a path"):
        parse_gate("idel > history", PATHS, True)


def test_a_history_has_runs_of_which_the_same_was_recorded() -> None:
    result = training()
    other = result.model_copy(update={"profile": result.profile.model_copy(update={"world_size": 64})})
    with pytest.raises(BaselineError, match="recorded otherwise"):
        with_run(baseline_of(result), other)
    assert len(kept(*range(50)).history) == 30
    again = baseline_of(slower(result, 5), kept(1, 2))
    assert len(again.runs()) == 3 and again.runs()[-1].step_ns == slower(result, 5).mean_steps[0].wall_ns
    assert baseline_of(other, kept(1, 2)).history == []


def test_what_is_accepted_is_not_new() -> None:
    result = training()
    assert not holds("new low", result, accepted=result)
    fewer = result.model_copy(update={"findings": result.findings[1:]})
    assert holds(f"new {result.findings[0].severity}", result, accepted=fewer)


def test_a_finding_that_got_worse_is_new() -> None:
    result = training()
    milder = result.model_copy(
        update={"findings": [finding.model_copy(update={"severity": "low"}) for finding in result.findings]}
    )
    assert holds("new high", result, accepted=milder)
    assert not holds("new low", milder, accepted=result)


def test_acceptance_expires_on_its_day() -> None:
    known = Accepted(fingerprint="x", rule="HD001", severity="high", title="", expires=date(2026, 1, 16))
    assert known.holds(date(2026, 1, 15)) and not known.holds(date(2026, 1, 16))


def test_rules_without_an_answer() -> None:
    result: RunResult = report_fixtures.every_state()
    unanswered = next(outcome for outcome in result.rules if outcome.state == "cannot_answer")
    assert holds(f"cannot_answer {unanswered.rule}", result) and holds(f"cannot_answer {unanswered.name}", result)
    assert holds(f"cannot_answer {unanswered.rule[:2]}*", result)
    assert not holds("cannot_answer XX*", result)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("severe", "no condition"),
        ("idel > 3 %", "neither step_time nor a path"),
        ("compute/matmull > 3 %", "neither step_time nor a path"),
        ("step_time > 3 %", "takes a time"),
        ("idle > 3 MB", "neither a unit of time nor %"),
        ("idle > baseline + 3 ms", "is no %"),
        ("new high", "needs --baseline"),
        ("step_time > baseline + 3 %", "needs --baseline"),
        ("idle > ", "no condition"),
    ],
)
def test_mistakes_are_named(text: str, said: str) -> None:
    with pytest.raises(GateError, match=said):
        parse_gate(text, PATHS, has_baseline="baseline +" in text and "ms" in text)


def test_without_a_step_nothing_is_decided() -> None:
    result = training().model_copy(update={"mean_steps": []})
    with pytest.raises(UndecidableError, match="no step"):
        holds("step_time > 1 ms", result)


@pytest.mark.parametrize(
    "text", ["step_time > baseline + 500 %", "idle > baseline + 3 %", "step_time > history", "new low"]
)
def test_a_baseline_of_another_vendor_decides_nothing(text: str) -> None:
    now = training()
    vendor = now.inputs[0].vendor
    other = now.model_copy(update={"inputs": [source.model_copy(update={"vendor": "gpu"}) for source in now.inputs]})
    with pytest.raises(UndecidableError, match=rf"another vendor \(gpu, now {vendor}\)"):
        holds(text, now, accepted=other)
    # What does not ask the baseline is judged.
    assert holds("step_time > 1 ns", now, accepted=other) and holds("low", now, accepted=other)


def test_a_baseline_survives_its_file(tmp_path: Path) -> None:
    kept = baseline_of(training())
    first = kept.findings[0].model_copy(update={"reason": "known: issue 7, 等待修复", "expires": date(2027, 1, 1)})
    edited = kept.model_copy(update={"findings": [first, *kept.findings[1:]]})
    file = tmp_path / "baseline.yaml"
    file.write_text(baseline_text(edited), "utf-8")
    assert read_baseline(file) == edited
    assert baseline_of(training(), read_baseline(file)) == edited


@pytest.mark.parametrize(("content", "said"), [("a: [", "not YAML"), ("a: 1", "no baseline"), ("", "no baseline")])
def test_a_file_that_is_no_baseline(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "baseline.yaml"
    file.write_text(content, "utf-8")
    with pytest.raises(BaselineError, match=said):
        read_baseline(file)
