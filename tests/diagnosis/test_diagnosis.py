"""A part of the grid on every change, and the scores themselves on outcomes made by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from advisor_core.sample.scenarios import SCENARIOS
from tests.diagnosis.abstention import Loss
from tests.diagnosis.diagnosis import SERIOUS, CauseOutcome, Outcome, Prediction, analyse, diagnose
from tests.diagnosis.expectations import EXPECTATIONS, expectation
from tests.diagnosis.grid import CATALOGUE, FAST, HELD_OUT, OTHER_SIZES
from tests.diagnosis.scores import by_cause, total
from tests.diagnosis.table import document
from tests.diagnosis.truth import truth_of


@pytest.mark.parametrize("name", FAST)
def test_what_costs_time_is_found_and_nothing_else(name: str) -> None:
    outcome = diagnose(SCENARIOS[name], 0)
    assert bool(outcome.causes) == (not name.startswith("healthy"))
    assert [cause.cause for cause in outcome.causes if cause.rule is None] == []
    assert outcome.ranked in (True, None)
    assert outcome.false_findings == ()


def test_a_profile_without_its_trace_gives_no_finding_about_the_host() -> None:
    whole, part = (analyse(SCENARIOS["slow-data-loader"], 0, "level1", *drop) for drop in ((), ("trace_view.json",)))
    assert "HD007" in {finding.rule for finding in whole.findings}
    states = {outcome.rule: outcome.state for outcome in part.rules}
    assert states["HD007"] == "cannot_answer"
    assert {f.rule for f in part.findings if f.severity in SERIOUS} <= {f.rule for f in whole.findings}


def test_every_cause_has_an_expectation() -> None:
    for scenario, _ in (*CATALOGUE, *OTHER_SIZES, *HELD_OUT):
        for cause in scenario.causes:
            assert expectation(cause).says
    assert set(EXPECTATIONS) >= {cause.name for scenario, _ in CATALOGUE for cause in scenario.causes}


def test_the_cost_of_a_cause_is_what_its_cure_saves() -> None:
    """A loader that needs 40 ms twice per step, behind about 54 ms of kernels, cannot cost more than 80 ms."""
    truth = truth_of(SCENARIOS["slow-data-loader"], 0)
    (cost,) = truth.costs
    assert 20e6 < cost.saved_ns < 80e6
    assert truth.worth_finding() == [cost]


def _outcome(
    *causes: CauseOutcome, first: bool | None = True, small: tuple[CauseOutcome, ...] = (), wrong: int = 0
) -> Outcome:
    false = tuple(("XX001", "wrong") for _ in range(wrong))
    return Outcome("made", 0, 100.0, causes, small, false, "XX001", first)


def _cause(name: str, rule: str | None, severity: str | None = "high", predicted: float = 10.0) -> CauseOutcome:
    prediction = Prediction("estimate", predicted, 10.0, predicted) if rule else None
    return CauseOutcome(name, 10.0, 0.1, rule, severity if rule else None, prediction)


@pytest.mark.parametrize(
    ("basis", "predicted", "kept"),
    [
        ("exact", 119.0, True),
        ("exact", 121.0, False),
        ("estimate", 81.0, True),
        ("estimate", 79.0, False),
        ("upper_bound", 300.0, True),
        ("upper_bound", 95.0, False),
    ],
)
def test_a_promise_depends_on_its_basis(basis: str, predicted: float, kept: bool) -> None:
    assert Prediction(basis, predicted, 100.0, 0.0).kept is kept


def test_scores_count_what_they_say() -> None:
    outcomes = [
        _outcome(_cause("a", "AA001"), _cause("b", None), first=True),
        _outcome(_cause("a", "AA001", "low", 5.0), first=False, wrong=1),
        _outcome(first=None, wrong=1),
        _outcome(first=None, small=(_cause("b", None),)),
    ]
    sums = total(outcomes)
    assert (sums.causes, sums.found, sums.serious, sums.false_positives) == (3, 2, 1, 2)
    assert sums.recall == pytest.approx(2 / 3)
    assert sums.precision == pytest.approx(1 / 3)
    assert sums.top1 == pytest.approx(1 / 2)
    assert (sums.healthy, sums.healthy_alarms, sums.kept) == (1, 1, 1)
    assert sums.median_error("estimate") == pytest.approx(0.25)
    assert math.isnan(sums.median_error("upper_bound"))
    first, second = by_cause(outcomes)
    assert (first.cause, first.present, first.found, first.serious, first.firsts) == ("a", 2, 2, 1, (1, 2))
    assert (second.present, second.found, second.quiet, second.missed_in) == (1, 0, 1, ("made",))


def test_a_risk_is_to_be_found_but_ranks_with_nobody() -> None:
    """A leak costs no time: it counts as found and as missed, never as the largest cause, and promises nothing."""
    leak, missed = (replace(_cause("leak", rule), prediction=None, risk=True) for rule in ("AA001", None))
    outcomes = [_outcome(leak, first=None), _outcome(missed, first=None), _outcome(_cause("a", "AA001"), leak)]
    sums = total(outcomes)
    assert (sums.causes, sums.found, sums.ranked, sums.rankable) == (4, 3, 1, 1)
    assert next(score.firsts for score in by_cause(outcomes) if score.cause == "leak") == (0, 0)
    page = document({"catalogue": outcomes}, [])
    assert "leak (a risk) is not found" in page and "leak (risk) AA001" in page


def test_the_truth_of_a_leak_is_a_risk() -> None:
    truth = truth_of(SCENARIOS["leak"], 0)
    assert truth.worth_finding() == []
    assert [cost.cause.name for cost in truth.risks()] == ["leak"]
    (cause,) = truth.costs
    assert abs(cause.saved_ns) < 0.001 * truth.step_ns


def test_the_page_names_every_shortfall() -> None:
    outcome = _outcome(_cause("a", None), first=False, wrong=1)
    page = document({"held out": [outcome]}, [Loss("made", "without x", ("YY001",), (), ())])
    assert "a (10 % of the step) is not found" in page
    assert "false finding XX001" in page
    assert "| made | without x | YY001 | - | 0 | - |" in page
    assert "0 of 1 without fault" in page
