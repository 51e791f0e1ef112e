"""HD013: between steps."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.host_dispatch.scenes import late


def two_steps(*, pause: float) -> Scene:
    scene = Scene().step(1, -10, 120).kernel(0, 100, op="aten::mul")
    start = 110 + pause
    return scene.step(2, start, 130).kernel(start + 20, 100, launched=start + 10, op="aten::mul", step=2)


def test_step_boundary_fires() -> None:
    found = judge_rule("HD013", two_steps(pause=200).store())
    # The first step of the framework ends at 110 and the next begins at 310; divided by two steps.
    assert found.first.impact_ns == 100_000 and found.first.severity == "high"


def test_step_boundary_is_silent() -> None:
    assert judge_rule("HD013", two_steps(pause=0).store()).state == "pass"


def test_step_boundary_states() -> None:
    assert judge_rule("HD013", late().store()).state == "not_applicable"
    assert judge_rule("HD013", two_steps(pause=200).store("flows")).state == "cannot_answer"
