"""The judge of predictions: that its truth is one, that it counts right, and that its page can be written in parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from advisor_core.sample.causes import Cause
from advisor_core.sample.scenario import Scenario
from advisor_core.sample.scenarios import SCENARIOS
from tests.diagnosis import kept_files
from tests.diagnosis.__main__ import counterfactuals, in_turn, section_of, with_section
from tests.diagnosis.counterfactuals import measure
from tests.diagnosis.counterfactuals.jobs import DOSES, Case, cases
from tests.diagnosis.counterfactuals.measure import Counterfactual, measured
from tests.diagnosis.counterfactuals.page import HEADING, section
from tests.diagnosis.counterfactuals.predictions import Prediction, Range
from tests.diagnosis.counterfactuals.scores import Errors, score
from tests.diagnosis.expectations import expectation
from tests.diagnosis.truth import PRECISE, step_ns

CASES = cases()


def job(name: str) -> Case:
    return next(case for case in CASES if case.scenario.name == name and case.dose == 1 and not case.unshared)


def test_the_jobs_are_of_all_kinds_and_sizes_and_a_part_is_held_out() -> None:
    whole = [case for case in CASES if case.dose == 1 and not case.unshared]
    assert {type(case.scenario.training).__name__ for case in whole} == {
        "Training", "Serving", "Reinforcement", "VisionTraining", "RecordedTraining",
        "RecordedServing", "RecordedReinforcement",
    }  # fmt: skip
    assert min(case.scenario.ranks for case in whole) == 1 and max(case.scenario.ranks for case in whole) == 16
    seen, held_out = ({case.scenario.name for case in whole if case.part == part} for part in ("seen", "held out"))
    assert seen and held_out and not seen & held_out
    assert len(seen) + len(held_out) == len(whole)
    assert {case.dose for case in CASES} == {1.0, *DOSES}
    for case in whole:
        assert len(case.scenario.causes) >= 2
        assert all(expectation(cause).says for cause in case.scenario.causes)


def test_every_job_can_have_its_causes_in_every_dose_and_any_of_them_taken_away() -> None:
    for case in CASES:
        whole = case.scenario.setup
        assert all(case.scenario.cured(*cures).setup != whole for cures in case.cures)


def test_each_cause_any_two_and_all_are_taken_away() -> None:
    counts = {name: [len(cures) for cures in job(name).cures] for name in ("dense-kernels", "two-late-ranks")}
    assert counts == {"dense-kernels": [1] * 4 + [2] * 6 + [4], "two-late-ranks": [1, 1, 2]}
    with pytest.raises(ValueError, match="no job nonsense; there are: dense-one"):
        cases(["nonsense"])


def test_what_most_figures_are_of_is_measured_first() -> None:
    turns = [CASES[place] for place in in_turn(CASES)]
    assert sorted(in_turn(CASES)) == list(range(len(CASES)))
    kinds = [(case.unshared, case.dose < 1) for case in turns]
    assert kinds == sorted(kinds) and set(kinds) == {(False, False), (False, True), (True, False)}
    whole = [case.scenario.ranks for case in turns if case.dose == 1 and not case.unshared]
    assert whole == sorted(whole, reverse=True)


def test_when_the_time_is_up_the_page_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_files, "FOLDER", tmp_path)
    assert f"the time was up: {len(CASES)}" in counterfactuals(CASES, minutes=0)
    assert "the time was up" not in section([_made(76.0)])


def test_the_physics_of_a_case_is_what_the_job_runs_with() -> None:
    shared, unshared = (
        next(case for case in CASES if case.scenario.name == "dense-two" and case.unshared is unshared)
        for unshared in (False, True)
    )
    assert shared.scenario.job.physics.contention == (0.0, 0.0)
    assert unshared.scenario.job.physics.contention == (0.1, 0.4)
    assert [unshared.scenario.job.physics.clock_offset_ns(rank) for rank in (0, 1)] == [0, 1_700_000]


@pytest.mark.parametrize("unshared", [False, True])
def test_the_step_of_the_report_is_the_step_of_the_simulation(unshared: bool) -> None:
    """But for what few recorded steps have by chance: else an error of a prediction would be one of definitions."""
    (case,) = [c for c in cases(["prefill-one"]) if c.dose == 1 and c.unshared is unshared]
    assert Prediction(case.scenario, 0).reported_ns == pytest.approx(step_ns(case.scenario, 0), rel=0.02)


def test_on_parallel_paths_one_cure_hides_behind_the_other() -> None:
    scenario = job("two-late-ranks").scenario
    loader, clock = scenario.causes
    step, alone, other, both = (
        step_ns(scenario.cured(*cures), 0) for cures in ((), (loader,), (clock,), (loader, clock))
    )
    assert step - other < PRECISE * step
    assert alone - both > 0.1 * step


@pytest.fixture(scope="module")
def late() -> Prediction:
    """Of two late ranks."""
    return Prediction(job("two-late-ranks").scenario, 0)


def test_two_late_ranks_win_together_what_neither_of_them_wins_alone(late: Prediction) -> None:
    scenario = job("two-late-ranks").scenario
    loader, clock = scenario.causes
    for cures in ((loader,), (loader, clock)):
        assert late.step_ns(cures) == pytest.approx(step_ns(scenario.cured(*cures), 0), rel=0.05)
    alone = late.step_ns([clock])
    assert alone is not None and alone > 0.98 * late.reported_ns, "the other one still holds the job up"


def test_a_prediction_is_of_what_the_findings_change_or_nothing(late: Prediction) -> None:
    scenario = job("two-late-ranks").scenario
    prediction, truth = late, step_ns(scenario.cured(*scenario.causes), 0)
    step = prediction.reported_ns
    assert prediction.step_ns(()) == step and prediction.range_ns(()) == (step, step)
    assert prediction.step_ns(scenario.causes) == pytest.approx(truth, rel=0.05)
    unnamed = (*scenario.causes, *SCENARIOS["leak"].causes)
    assert prediction.step_ns(unnamed) is None and prediction.range_ns(unnamed) is None
    assert prediction.promised(unnamed) == scenario.causes


def test_rules_about_other_causes_change_no_prediction() -> None:
    """But for those that they ask about: one here asks whether launches are blocking."""
    case = job("queue-one")
    own, whole = Prediction(case.scenario, 0), Prediction(case.scenario, 0, ())
    left_out, none = ({one.rule for one in found.result.rules if one.state == "left_out"} for found in (own, whole))
    assert left_out and not none and all(own.promised((cause,)) for cause in case.scenario.causes[::2])
    for cures in case.cures:
        assert own.step_ns(cures) == whole.step_ns(cures)
        assert own.range_ns(cures) == whole.range_ns(cures)


def test_a_case_is_measured_with_the_prediction_that_it_is_given() -> None:
    found = measured(replace(job("prefill-one"), dose=0.5), lambda prediction, without: 1e8 * len(without))
    assert [one.cures for one in found] == [("unfused-rotary",), ("unfused-rotary", "format-conversions")]
    assert [one.predicted_ns for one in found] == [1e8, 2e8]
    assert all(one.true_ns < one.step_ns and one.noise < PRECISE for one in found)


def _made(predicted: float | None, true: float = 80.0, cures: int = 1, **changes: object) -> Counterfactual:
    made = Counterfactual(
        "made", "seen", False, 1.0, ("a",) * cures, 2, 100.0, true, true * 0.01, 100.0, predicted,
        None if predicted is None else (predicted - 5, predicted + 5),
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def test_errors_are_of_the_step_and_of_the_saving_where_there_is_one() -> None:
    one = _made(76.0)
    assert one.step_error == pytest.approx(-0.05) and one.saving_error == pytest.approx(0.2) and one.inside
    assert one.noise == pytest.approx(0.01)
    assert _made(90.0, true=98.0).saving_error is None  # 2 % of the step are not worth it
    assert _made(86.0).inside is False
    assert one.width == pytest.approx(10 / 20) and _made(90.0, true=98.0).width is None
    unknown = _made(None)
    assert (unknown.step_error, unknown.saving_error, unknown.inside, unknown.width) == (None,) * 4
    assert [_made(76.0, cures=count, of=of).kind for count, of in ((1, 3), (2, 3), (3, 3), (2, 2))] == [
        "alone", "two", "all", "all",
    ]  # fmt: skip


def test_a_recording_is_like_a_long_run_within_2_percent() -> None:
    assert _made(76.0).sampling_error == 0 and _made(76.0).representative
    unlike = _made(100.0, reported_ns=97.0)
    assert unlike.sampling_error == pytest.approx(-0.03) and not unlike.representative
    s = score([_made(76.0), unlike, _made(None)])
    assert s.steps.p95 == pytest.approx(0.25) and s.alike.values == pytest.approx((0.05,))


def test_a_promise_for_which_more_steps_are_asked_is_told_apart() -> None:
    s = score([_made(76.0), _made(100.0, steps_wanted=40), _made(None)])
    assert s.steps.p95 == pytest.approx(0.25) and s.steady.values == pytest.approx((0.05,))


def test_a_job_that_is_recorded_again_as_asked_is_told_apart() -> None:
    again = _made(100.0, steps_wanted=40, again_ns=84.0, again_range_ns=(79.0, 85.0))
    assert again.step_error == pytest.approx(0.25) and again.error_as_asked == pytest.approx(0.05)
    assert again.inside is False and again.inside_as_asked is True
    s = score([_made(79.2), again, _made(None)])
    assert s.steps.p95 == pytest.approx(0.25) and s.asked.values == pytest.approx((0.01, 0.05))
    assert (s.inside, s.inside_asked) == (1, 2)


def test_a_job_is_recorded_again_with_as_many_steps_as_its_report_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what decides that is taken from the report: how many steps each recording has."""
    recorded: list[int] = []

    class Asks(Prediction):
        def __init__(self, scenario: Scenario, seed: int) -> None:
            recorded.append(scenario.steps)
            self.steps = scenario.steps

        reported_ns = 1e8

        def step_ns(self, without: Sequence[Cause]) -> float:
            return 1e6 * self.steps

        def range_ns(self, without: Sequence[Cause]) -> Range:
            return (0.0, 1e9)

        def promised(self, without: Sequence[Cause]) -> tuple[Cause, ...]:
            return tuple(without)

        def steps_wanted(self, without: Sequence[Cause]) -> int | None:
            return {1: None, 2: 12}[len(without)]

    monkeypatch.setattr(measure, "Prediction", Asks)
    case = job("prefill-one")
    found = measured(case, Asks.step_ns)
    assert recorded == [case.scenario.steps, 12]
    alone, both = ([one for one in found if len(one.cures) == count] for count in (1, 2))
    assert all(one.again_ns is None and one.predicted_ns == 1e6 * case.scenario.steps for one in alone)
    assert all(one.again_ns == 12e6 and one.predicted_ns == 1e6 * case.scenario.steps for one in both)
    measured(replace(case, dose=0.5), Asks.step_ns)
    assert recorded[2:] == [case.scenario.steps]


def test_silence_is_right_where_nothing_is_won() -> None:
    right, wrong = _made(None, unpromised_ns=2.0), _made(None, unpromised_ns=7.0)
    assert (right.rightly_silent, wrong.rightly_silent, _made(76.0).rightly_silent) == (True, False, None)
    s = score([right, wrong, _made(76.0)])
    assert (s.predicted, s.silent) == (1, 1)


def test_scores_count_what_they_say() -> None:
    found = [_made(76.0), _made(80.0), _made(100.0), _made(None)]
    s = score(found)
    assert (s.count, s.predicted, s.inside, s.near) == (4, 3, 2, 2)
    assert s.steps.median == pytest.approx(0.05) and s.steps.p95 == pytest.approx(0.25)
    assert s.savings.median == pytest.approx(0.2)
    assert s.widths.median == pytest.approx(10 / 20)
    assert math.isnan(Errors.of([None]).median) and math.isnan(Errors.of([]).p95)
    assert Errors.of([-number / 100 for number in range(1, 101)]).p95 == 0.95


def test_the_part_of_the_page_is_replaced_and_the_rest_stays() -> None:
    page = "# Page\n\n## In short\n\na\n\n## By cause, catalogue\n\nb\n"
    part = section([_made(76.0), _made(None, cures=2), _made(90.0, unshared=True), _made(90.0, dose=0.5)])
    once = with_section(page, part)
    assert section_of(page) == "" and section_of(once).strip() == part.strip()
    assert with_section(once, part) == once and with_section(once, "") == page
    assert with_section(once, f"{HEADING}\n\nother\n") == page.replace("## By", f"{HEADING}\n\nother\n\n## By")
    assert "| made | a | 0.0 ms | 0.0 ms | +0.0 % | 0.0 ms | 0.0 ms | -5.0 % | +20.0 % | - |" in once
