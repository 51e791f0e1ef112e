"""CO001: communication that no computing covers."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.communication.scenes import staged, waiting
from tests.facts.test_judged_parts import serving
from tests.facts.test_parts import DECODE, PREFILL


def test_overlap_fires_and_says_what_it_is() -> None:
    found = judge_rule("CO001", waiting().store())
    seen = found.first.observation
    assert found.state == "fail" and found.first.severity == "high"
    assert seen["uncovered_ns"] == 500_000 and seen["overlap_ratio"] == 0
    assert seen["waiting_share"] == pytest.approx(0.8) and seen["moving_share"] == pytest.approx(0.18)


def test_waiting_in_a_pipeline_is_judged_by_its_own_rules() -> None:
    found = judge_rule("CO001", staged(wait=400).store(parallel={"pp": 2}))
    assert found.first.observation["pipeline_share"] == pytest.approx(400 / 920) and found.first.severity == "low"


def test_overlap_is_silent_when_computing_covers_it() -> None:
    assert judge_rule("CO001", waiting(covered=True).store()).state == "pass"


def test_overlap_states() -> None:
    assert judge_rule("CO001", Scene().kernel(0, 10).store()).state == "not_applicable"
    assert (
        judge_rule("CO001", waiting().store("kernels", "device_tasks", "communication_tasks")).state == "cannot_answer"
    )


def test_overlap_of_unknown_kind_asks_for_level_1() -> None:
    scene = Scene().kernel(0, 500).collective(500, 500, None)
    found = judge_rule("CO001", scene.store())
    assert found.first.observation["unknown_share"] == 1
    advice = found.first.advice
    assert [one.kind for one in advice] == ["collect", "collect", "investigate", "investigate"]
    assert "Find out first" in advice[2].text.en
    known = judge_rule("CO001", waiting().store()).first.advice
    assert not [one.text.en for one in known if "Find out first" in one.text.en]


def test_communication_of_decode_is_judged_apart_from_that_of_prefill() -> None:
    """A collective of 30 us before each kernel of decode but the first, none in prefill."""
    scene = serving((PREFILL, 1000, 0), *[(DECODE, 10, 40)] * 3)
    for number in range(1, 21):
        scene.collective(7000 + 50 * number + 5, 30, None)
    found = judge_rule("CO001", scene.store())
    seen = found.first.observation
    assert found.state == "fail" and found.verdict is not None and len(found.verdict.rows) == 1
    assert (seen["recorded_part"], seen["uncovered_ns"], seen["calls"]) == ("decode", 600_000, 20)
    assert seen["uncovered_share"] == pytest.approx(600 / 1010) and found.first.impact_ns == 600_000
    assert seen["uncovered_ns"] < 0.1 * seen["step_ns"] and found.first.severity == "low"
    assert "of decode is communication" in found.first.title.en


def test_a_rank_that_only_trains_says_nothing_of_parts() -> None:
    found = judge_rule("CO001", waiting().store())
    assert "recorded_part" not in found.first.observation and "of the step is communication" in found.first.title.en
