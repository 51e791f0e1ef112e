"""HD006: launch blocking."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.host_dispatch.scenes import busy


def blocking(*, synchronised: int) -> Scene:
    scene = Scene().step(1, -20, 1000)
    for number in range(4):
        start = 200 * number
        scene.kernel(start, 50, launched=start - 5, op="aten::mul")
        if number < synchronised:
            scene.event("runtime", "AscendCL@aclrtSynchronizeStreamWithTimeout", start - 3, 60)
    return scene


def test_launch_blocking_is_inferred_from_synchronisations() -> None:
    found = judge_rule("HD006", blocking(synchronised=3).store())
    assert found.state == "fail" and found.first.severity == "high"
    assert found.first.observation["synchronised_share"] == 0.75
    assert found.first.observation["recorded"] == "unknown"
    assert [advice.kind for advice in found.first.advice] == ["env", "investigate"]
    assert "memory" in found.first.advice[0].risk.en, "launches that do not wait take more of it"


def test_launch_blocking_is_taken_from_the_record() -> None:
    store = busy().store("host_events", "flows", variables={"ASCEND_LAUNCH_BLOCKING": "1"})
    found = judge_rule("HD006", store)
    assert found.state == "fail" and found.first.observation["recorded"] == "on"


def test_launch_blocking_is_silent() -> None:
    assert judge_rule("HD006", blocking(synchronised=2).store()).state == "pass"
    store = busy().store("host_events", "flows", variables={"ASCEND_LAUNCH_BLOCKING": ""})
    assert judge_rule("HD006", store).state == "pass"


def test_launch_blocking_unrecorded_and_without_calls_cannot_answer() -> None:
    assert judge_rule("HD006", busy().store("host_events", "flows")).state == "cannot_answer"
