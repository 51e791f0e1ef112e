"""HD004: synchronising calls."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.ledger.totals import ledger
from tests.advisors.build import ACL_THREAD
from tests.advisors.host_dispatch.scenes import synchronised


def test_sync_blames_the_rest_of_the_call_and_the_refilling_it_owes() -> None:
    found = judge_rule("HD004", synchronised(held=60).store())
    seen = found.first.observation
    assert seen["operator"] == "aten::item" and seen["place"] == "/train/train.py(42): log"
    assert seen["held_ns"] == 60_000
    assert seen["idle_ns"] == 50_000 + 60_000
    assert found.first.severity == "high"
    assert seen["places"] == 1 and "stops the host: 1." in found.first.why.en


def test_without_call_stacks_the_number_of_places_is_not_known() -> None:
    found = judge_rule("HD004", explicit("aclrtSynchronizeDevice", within="aten::item").store())
    assert found.first.observation["places"] is None
    assert "stops the host: unknown." in found.first.why.en and "位置数：未知" in found.first.why.zh


def test_sync_that_only_waits_for_a_busy_device_is_silent() -> None:
    scene = Scene().step(1, -20, 640).kernel(0, 500, op="aten::mul").kernel(501, 99, launched=20)
    scene.event("cpu_op", "aten::item", 30, 469).event("runtime", "AscendCL@aclrtSynchronizeStream", 31, 467)
    assert judge_rule("HD004", scene.store()).state == "pass"


def test_sync_without_a_trace_cannot_answer() -> None:
    assert judge_rule("HD004", synchronised(held=60).store("host_events")).state == "cannot_answer"


def queued(*, sync: bool) -> Scene:
    """The main thread puts a task into the queue at 110 and, with ``sync``, waits for the device from 120 to 450; the
    other thread takes until 390 to launch it. The device is idle from 100 to 400."""
    scene = Scene().step(1, -10, 520).kernel(0, 100, op="aten::mul")
    scene.event("cpu_op", "aten::add", 60, 60)
    scene.event("enqueue", "Enqueue", 110, 3, correlation=1)
    scene.event("dequeue", "Dequeue@aclnnAdd", 115, 285, thread=ACL_THREAD, correlation=1)
    scene.event("runtime", "AscendCL@aclnnAdd", 120, 275, thread=ACL_THREAD)
    scene.add("kernels", type="Add", name="Add", core="AI_VECTOR_CORE", stream=2, step=1, start_us=400, duration_us=100)
    for end, time, thread, device in (("s", 390, ACL_THREAD, False), ("f", 400, 2, True)):
        row = {"kind": "host_to_device", "end": end, "flow": 99, "time_us": time}
        scene.add("flows", thread=thread, device=device, **row)
    scene.event("runtime", "Node@launch", 389, 3, thread=ACL_THREAD, item="Add")
    if sync:
        scene.event("cpu_op", "aten::item", 119, 332).event("runtime", "AscendCL@aclrtSynchronizeStream", 120, 330)
    return scene


@pytest.mark.parametrize("sync", [False, True])
def test_a_task_in_the_queue_is_held_up_by_the_thread_that_empties_it(sync: bool) -> None:
    booked = queued(sync=sync).store()[ledger].set_index("path")["ns"]
    assert booked["idle/host/framework"] == 10_000
    assert booked["idle/host/runtime"] == 390_000 - 110_000
    assert booked["idle/launch_latency"] == 10_000
    assert "idle/sync" not in booked


def explicit(call: str, *, within: str = "") -> Scene:
    """Two kernels of 500 us; the host waits in ``call`` up to 100 us after the first, and launches the second then."""
    scene = Scene().step(1, -20, 1_300).kernel(0, 500, op="aten::mul")
    scene.event("runtime", f"AscendCL@{call}", 30, 570)
    if within:
        scene.event("cpu_op", within, 25, 580)
    return scene.kernel(640, 500, launched=620)


def test_a_call_that_waits_for_the_whole_device_is_told_to_wait_for_less() -> None:
    found = judge_rule("HD004", explicit("aclrtSynchronizeDeviceWithTimeout").store(framework="pytorch"))
    assert found.state == "fail" and found.first.observation["whole_device"]
    assert "waits for all streams" in found.first.advice[-1].text.en
    assert found.first.advice[-1].hazards == ["accuracy"]


@pytest.mark.parametrize(
    "scene", [explicit("aclrtSynchronizeStreamWithTimeout"), explicit("aclrtSynchronizeDevice", within="aten::item")]
)
def test_a_stream_that_is_waited_for_or_an_operator_that_waits_is_not(scene: Scene) -> None:
    found = judge_rule("HD004", scene.store(framework="pytorch"))
    assert found.state == "fail" and not found.first.observation["whole_device"]
    assert not [advice for advice in found.first.advice if "waits for all streams" in advice.text.en]


def read_twice(count: int) -> Scene:
    """Each turn launches a kernel of 20 us and reads its result at two places, one right behind the other; then Python
    takes 60 us. A kernel starts 10 us after its launch, the first call returns 5 us after its end, the second takes
    5 us."""
    scene, launch = Scene().step(1, -20, 10_000), 0.0
    for _ in range(count):
        end = launch + 30
        scene.kernel(launch + 10, 20, launched=launch, op="aten::norm")
        for line, since, until in ((1, launch, end + 5), (2, end + 5, end + 10)):
            scene.event("cpu_op", "aten::item", since, until - since, call_stack=f"/train/train.py({line}): read;")
            scene.event("runtime", "AscendCL@aclrtSynchronizeStream", since, until - since)
        launch = end + 10 + 60
    return scene


def test_a_place_that_another_one_covers_is_told_with_what_both_save() -> None:
    """Nine turns of 100 us take 90 each without the first place, as the host then waits at the second until the kernel
    is done, and 95 without the second. Without both the host needs 60 us, more than the kernel: 360 us are saved."""
    found = judge_rule("HD004", read_twice(10).store())
    assert found.verdict is not None
    seen = {str(one.observation["place"]): one.observation for one in found.verdict.rows}
    assert {place: (one["saved_ns"], one["as_last_ns"], one["places"]) for place, one in seen.items()} == {
        "/train/train.py(1): read": (90_000, 360_000 - 45_000, 2),
        "/train/train.py(2): read": (45_000, 360_000 - 90_000, 2),
    }
