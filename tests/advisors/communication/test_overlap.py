"""CO001: communication that no computing covers."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.communication.scenes import staged, waiting


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
    assert [advice.kind for advice in found.first.advice] == ["collect", "collect", "investigate"]
