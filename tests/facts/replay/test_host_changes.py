"""What the device would have done had the host not waited, against hand-made timelines."""

from __future__ import annotations

import numpy as np
import pytest

from advisor_core.api.facts import HostChange, Replay, replay, union
from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.replay.changes import ENTRY_NS
from advisor_core.facts.steps.steps import steps


def items(count: int, *, kernel: float = 20, host: float = 60) -> Scene:
    """Each step of the loop launches a kernel of ``kernel`` us and reads its result; then Python takes ``host`` us to
    launch the next. A kernel starts 10 us after its launch, the host returns 5 us after its end."""
    scene = Scene().step(1, -20, 10_000)
    launch = 0.0
    for _ in range(count):
        start, end = launch + 10, launch + 10 + kernel
        scene.kernel(start, kernel, launched=launch, op="aten::norm")
        scene.event("cpu_op", "aten::item", launch + 1, end + 5 - launch - 1)
        scene.event("runtime", "AscendCL@aclrtSynchronizeStream", launch + 2, end + 3 - launch - 2)
        launch = end + 5 + host
    return scene


def test_reading_back_every_result_costs_the_lead_of_the_host() -> None:
    """Every turn takes 10 + 20 + 5 + 60 us, of which the host needs 61 by itself: nine turns save 34 us each."""
    seen = judge_rule("HD004", items(10).store()).first.observation
    assert seen["saved_ns"] == 9 * 34_000


def test_a_device_that_is_the_bottleneck_cannot_be_sped_up_beyond_its_work() -> None:
    """Nine gaps of 75 us lie between ten kernels of 100 us; without waiting they follow each other at once."""
    found = judge_rule("HD004", items(10, kernel=100).store())
    assert found.first.observation["saved_ns"] == 9 * 75_000
    assert found.first.severity == "high"


def test_a_collective_takes_as_long_as_it_did() -> None:
    """50 us of waiting go; the 400 us for which the collective waits for another rank stay."""
    scene = Scene().step(1, -20, 2_000).kernel(0, 100, op="aten::mul")
    scene.event("cpu_op", "aten::item", 50, 90).event("runtime", "AscendCL@aclrtSynchronizeStream", 55, 80)
    scene.kernel(150, 100, launched=145, op="aten::mm")
    scene.collective(250, 500, [(250, 650, 1), (650, 750, None)])
    assert judge_rule("HD004", scene.store()).first.observation["saved_ns"] == 50_000


def repeated(count: int, turns: int, *, kernel: int, host: int, pause: int = 0, sync: bool = False) -> Scene:
    """Steps of ``turns`` kernels each: the host works ``host`` us for each and launches it, the device takes ``kernel``
    us and starts no sooner than 10 us after the launch. A step begins with a data loader of ``pause`` us on the host,
    and ends, with ``sync``, with reading a result back, which returns 5 us after the device is done."""
    scene, now, device = Scene(), 0.0, 0.0
    for number in range(1, count + 1):
        begun = now
        if pause:
            scene.event("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", now, pause)
            now += pause
        for _ in range(turns):
            now += host
            start = max(device, now + 10)
            scene.kernel(start, kernel, launched=now, op="aten::mm", step=number)
            device = start + kernel
        now += 5
        if sync:
            until = max(now + 5, device + 5)
            scene.event("cpu_op", "aten::item", now, until - now)
            scene.event("runtime", "AscendCL@aclrtSynchronizeStream", now, until - now)
            now = until
        scene.step(number, begun, now - begun)
    return scene


def replayed(scene: Scene) -> Replay:
    found = scene.store()[replay]
    assert isinstance(found, Replay)
    return found


def loads(scene: Scene) -> HostChange:
    """Without the data loader."""
    rows = [row for row in scene.rows["host_events"] if "DataLoader" in row["name"]]
    times = np.array([[row["start_us"], row["start_us"] + row["duration_us"]] for row in rows])
    starts, ends = (1000 * times.T).astype(np.int64)
    return HostChange(union(starts, ends))


@pytest.mark.parametrize(
    ("kernel", "host", "pause", "sync"),
    [(20, 60, 300, False), (50, 20, 300, False), (50, 20, 100, False), (50, 20, 300, True), (20, 60, 0, True)],
)
def test_a_long_run_takes_what_many_more_steps_take(kernel: int, host: int, pause: int, sync: bool) -> None:
    """The plain loop above, run for long, is the reference: with the data loader and without."""

    def long_run(pause: int) -> float:
        ends = [
            max(row["start_us"] + row["duration_us"] for row in scene.rows["kernels"])
            for scene in (repeated(count, 8, kernel=kernel, host=host, pause=pause, sync=sync) for count in (30, 60))
        ]
        return float(ends[1] - ends[0]) / 30

    scene = repeated(3, 8, kernel=kernel, host=host, pause=pause, sync=sync)
    found = replayed(scene)
    # The first of all steps has no call before it, and what separates two steps is in the recorded steps once less.
    assert found.recorded_ns / 3 == pytest.approx(1000 * long_run(pause), rel=0.01)
    if pause:
        assert found.saved_by(loads(scene)) / 3 == pytest.approx(1000 * (long_run(pause) - long_run(0)), rel=0.01)


def test_nothing_left_out_is_the_recorded_step() -> None:
    scene = repeated(1, 8, kernel=50, host=20, pause=300)
    found = replayed(scene)
    window = scene.store()[steps]
    assert found.recorded_ns == int(window["end_ns"].iloc[0] - window["start_ns"].iloc[0])


def test_what_a_thread_of_its_own_would_do() -> None:
    """Each turn takes 60 us of the host, of which 40 are calls into CANN: with a queue the
    slower of both threads sets the pace, once the second task has been put into it."""
    scene = Scene()
    for turn in range(10):
        begun = 60.0 * turn
        scene.event("cpu_op", "aten::mm", begun, 60).event("runtime", "AscendCL@aclnnMatmul", begun + 15, 40)
        scene.kernel(begun + 60, 5, launched=begun + 50)
    scene.step(1, 0, 600)
    assert replayed(scene).steps == 1
    begins, ends = (1000 * (np.arange(10, dtype=np.int64) * 60 + offset) for offset in (15, 55))
    calls = HostChange(handed_over=union(begins, ends))
    filling = 20_000 + 2 * ENTRY_NS
    assert replayed(scene).saved_by(calls) == 9 * (60_000 - 40_000) - filling
