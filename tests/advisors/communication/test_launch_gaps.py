"""CO009: between the tasks of a collective."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.communication.scenes import moving
from tests.advisors.cures import cure_of, saved, shorter


def test_launch_gaps_fire() -> None:
    scene = Scene().kernel(0, 600).collective(600, 400, [(600, 700, None), (900, 1000, None)])
    found = judge_rule("CO009", scene.store())
    assert found.first.impact_ns == 200_000 and found.first.severity == "high"


def test_launch_gaps_states() -> None:
    assert judge_rule("CO009", moving().store()).state == "pass"
    assert judge_rule("CO009", moving().store("communication_tasks")).state == "cannot_answer"
    assert judge_rule("CO009", Scene().kernel(0, 10).store()).state == "not_applicable"


def test_the_cure_leaves_the_gap_out_of_the_collective() -> None:
    scene = Scene().kernel(0, 600).collective(600, 400, [(600, 700, None), (900, 1000, None)])
    scene.kernel(1000, 100, launched=597)
    store = scene.store()
    cure = cure_of(judge_rule("CO009", store))
    assert shorter(store, cure) == {1: 200_000} and saved(store, cure) == 200_000
