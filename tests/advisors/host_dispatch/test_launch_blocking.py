"""HD006, GHD005: launch blocking."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import GPU, Scene, judge_rule
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
    assert [advice.kind for advice in found.first.advice] == ["investigate", "investigate", "env"]
    unset = found.first.advice[-1]
    assert "memory" in unset.risk.en, "launches that do not wait take more of it"
    assert set(unset.hazards) == {"crash", "hang", "accuracy"}, "the task queue works again as well"


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


def on_a_gpu(*, waiting: int = 0, synchronised: int = 0, call: str = "cudaLaunchKernel") -> Scene:
    """Four kernels of 50 us, 200 us apart. The call that launches each of the first ``waiting`` returns 2 us after the
    kernel has ended; a synchronisation follows each of the first ``synchronised``."""
    scene = Scene(words=GPU).step(1, -20, 1000)
    for number in range(4):
        start = 200 * number
        scene.kernel(start, 50, launched=start - 5)
        launch = scene.rows["host_events"][-1]
        launch["name"] = call
        if number < waiting:
            launch["duration_us"] = start + 52 - launch["start_us"]
        if number < synchronised:
            scene.event("runtime", "cudaStreamSynchronize", start - 3, 60)
    return scene


@pytest.mark.parametrize("call", ["cudaLaunchKernel", "cuLaunchKernelEx", "hipExtModuleLaunchKernel"])
def test_launches_that_return_when_their_kernel_has_ended(call: str) -> None:
    """Three waits of 52 us lie between the four launches: a single step is as much shorter without them."""
    found = judge_rule("GHD005", on_a_gpu(waiting=4, call=call).store())
    assert found.state == "fail" and found.first.severity == "high"
    seen = found.first.observation
    assert (seen["waiting_share"], seen["synchronised_share"], seen["launches"]) == (1, 0, 4)
    assert seen["saved_ns"] == 3 * 52_000
    assert len(found.first.advice) > 1 and "CUDA_LAUNCH_BLOCKING" in found.first.advice[0].text.en


def test_synchronisations_behind_launches_on_a_gpu_are_not_a_variables() -> None:
    found = judge_rule("GHD005", on_a_gpu(synchronised=3).store())
    seen = found.first.observation
    assert (seen["waiting_share"], seen["synchronised_share"]) == (0, 0.75)
    assert not any("CUDA_LAUNCH_BLOCKING" in advice.text.en for advice in found.first.advice)
    assert "synchronises after every single operator" in found.first.advice[-1].text.en


def test_launches_on_a_gpu_that_do_not_wait() -> None:
    assert judge_rule("GHD005", on_a_gpu(waiting=2, synchronised=2).store()).state == "pass"
    assert judge_rule("GHD005", on_a_gpu().store("flows")).state == "cannot_answer"


def test_a_synchronisation_behind_the_replay_of_a_graph_is_none_behind_each_kernel() -> None:
    assert judge_rule("GHD005", on_a_gpu(synchronised=4, call="cudaGraphLaunch").store()).state == "pass"


def test_launches_on_a_gpu_are_handed_to_no_queue() -> None:
    """Without the synchronisations the launching calls still take their time on the thread that makes them."""
    found = judge_rule("GHD005", on_a_gpu(synchronised=4).store())
    # Between the launches lie 200 us, of which three synchronisations take 60 each.
    assert found.first.observation["saved_ns"] == 3 * 60_000
