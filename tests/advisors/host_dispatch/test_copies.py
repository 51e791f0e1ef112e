"""HD012: copies."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.contracts.tables import DEVICE_TASKS
from tests.advisors.cures import cure_of, saved


def test_copy_on_the_device_alone_counts() -> None:
    scene = Scene().step(1, -20, 640).kernel(0, 100, op="aten::mul")
    scene.event("runtime", "AscendCL@aclrtMemcpyAsync", 90, 5)
    scene.add("device_tasks", name="MEMCPY_ASYNC", task_type="SDMA_SQE", stream=3, start_us=110, duration_us=150)
    scene.kernel(300, 300, launched=95, op="aten::conv2d")
    found = judge_rule("HD012", scene.store())
    assert found.first.observation["on_device_ns"] == 150_000
    assert any(getattr(reference, "table", None) is DEVICE_TASKS for reference in found.evidence())


def test_without_a_blocking_copy_the_host_launches_sooner() -> None:
    """The kernel behind a copy of 200 us is launched 200 us sooner, and then waits for the kernel before it."""
    scene = Scene().step(1, -20, 940).kernel(0, 100, op="aten::mul", launched=-10)
    scene.event("runtime", "AscendCL@aclrtMemcpy", 50, 200).kernel(260, 300, launched=255, op="aten::conv2d")
    store = scene.store()
    found = judge_rule("HD012", store)
    assert found.first.observation["on_host_ns"] == 150_000
    assert saved(store, cure_of(found)) == 160_000
