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


def test_copies_that_computing_covers_are_told() -> None:
    scene = Scene().step(1, -20, 640).kernel(0, 100, op="aten::mul").kernel(300, 300, launched=95, op="aten::conv2d")
    scene.event("runtime", "AscendCL@aclrtMemcpyAsync", 90, 5)
    # 10 us under the first kernel, 190 us alone, 20 us under the second one; before the step none count.
    for start, duration in ((90, 30), (110, 210), (-40, 10)):
        scene.add(
            "device_tasks", name="MEMCPY_ASYNC", task_type="SDMA_SQE", stream=3, start_us=start, duration_us=duration
        )
    seen = judge_rule("HD012", scene.store()).first.observation
    assert (seen["copy_ns"], seen["covered_ns"], seen["on_device_ns"]) == (230_000, 30_000, 200_000)


def test_what_a_collective_moves_is_no_copy() -> None:
    scene = Scene().step(1, -20, 640).kernel(0, 100, op="aten::mul").collective(100, 150, operation="allReduce")
    scene.kernel(400, 200, launched=95, op="aten::conv2d").event("runtime", "AscendCL@aclrtMemcpy", 50, 300)
    for start, stream in ((110, 4), (130, 4), (120, 3), (300, 3)):
        scene.add("device_tasks", name="x", task_type="SDMA", stream=stream, start_us=start, duration_us=20)
    seen = judge_rule("HD012", scene.store()).first.observation
    assert (seen["copy_ns"], seen["covered_ns"]) == (40_000, 0)


def test_without_tasks_of_the_device_copies_are_not_told() -> None:
    scene = Scene().step(1, -20, 940).kernel(0, 100, op="aten::mul", launched=-10)
    scene.event("runtime", "AscendCL@aclrtMemcpy", 50, 200).kernel(260, 300, launched=255, op="aten::conv2d")
    seen = judge_rule("HD012", scene.store("device_tasks")).first.observation
    assert seen["copy_ns"] is None and seen["covered_ns"] is None
