"""HD010: gaps before tasks that had been launched in time."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule


def switching(*, early: float) -> Scene:
    scene = Scene().step(1, -600, 1600)
    for number in range(5):
        start = number * 200
        scene.kernel(start, 110, launched=start - early, op="aten::mul")
    return scene


def test_task_switch_fires_with_low_confidence() -> None:
    found = judge_rule("HD010", switching(early=500).store(profiler={"l2_cache": True}))
    assert found.state == "fail" and found.first.confidence == "low"
    seen = found.first.observation
    assert seen["gaps"] == 4 and seen["median_ns"] == 90_000 and seen["spread_ns"] == 0
    assert seen["median_lead_ns"] == 500_000 and seen["l2_cache"] == "on"
    assert found.first.impact_ns == 4 * 90_000 and found.first.severity == "medium"


def test_task_switch_is_silent_when_the_launch_was_late() -> None:
    assert judge_rule("HD010", switching(early=5).store()).state == "pass"


def test_task_switch_without_arrows_cannot_answer() -> None:
    assert judge_rule("HD010", switching(early=500).store("flows")).state == "cannot_answer"
