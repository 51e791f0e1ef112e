"""GHD012 and GHD008: the start of a GPU within the recording, and calls about its memory in a running loop."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import GPU, Scene, judge_rule

SECOND = 1_000_000
"""us"""


def loop(*calls: tuple[int, float, str, float], pending: bool = False) -> Scene:
    """Three steps of 2 s each: a kernel of 50 ms, and one of 50 ms at the end. ``calls``: the step, the second within
    it, the name and the seconds of a call of the runtime. ``pending``: the first kernel runs for 1.9 s."""
    scene = Scene(words=GPU)
    for step in range(3):
        begin = 2 * SECOND * step
        scene.step(step, begin, 2 * SECOND)
        scene.kernel(begin + 20_000, 1_900_000 if pending else 50_000, step=step)
        scene.kernel(begin + 1_940_000, 50_000, step=step)
        for at, second, name, length in calls:
            if at == step:
                scene.event("runtime", name, begin + second * SECOND, length * SECOND)
    return scene


def test_a_free_in_every_step_is_no_start() -> None:
    scene = loop(*[(step, 0.5, "cudaFree", 0.9) for step in range(3)])
    assert judge_rule("GHD012", scene.store()).state == "pass"
    found = judge_rule("GHD008", scene.store())
    assert found.state == "fail"
    assert found.first.observation["idle_ns"] == 900_000_000 and found.first.observation["calls"] == 1


def test_the_start_is_left_out_of_the_loop_and_nothing_else() -> None:
    scene = loop((0, 0.2, "cudaFree", 0.7), *[(step, 1.0, "cudaMalloc", 0.3) for step in range(3)])
    start = judge_rule("GHD012", scene.store())
    assert start.state == "fail"
    assert start.first.observation["startup_ns"] == 700_000_000
    assert start.first.observation["idle_ns"] == pytest.approx(700_000_000 / 3)
    found = judge_rule("GHD008", scene.store()).first.observation
    assert (found["idle_ns"], found["total_ns"], found["longest_ns"]) == (300_000_000, 300_000_000, 300_000_000)
    assert judge_rule("GHD008", loop((0, 0.2, "cudaFree", 0.7)).store()).state == "pass"


def test_a_long_call_in_a_later_step_only_is_no_start() -> None:
    scene = loop((1, 0.5, "cudaFree", 0.9))
    assert judge_rule("GHD012", scene.store()).state == "pass"
    assert judge_rule("GHD008", scene.store()).state == "fail"


def test_a_free_behind_pending_kernels_is_no_start() -> None:
    """It waits for them, however long they take."""
    scene = loop((0, 0.5, "cudaFree", 1.43), pending=True)
    assert judge_rule("GHD012", scene.store()).state == "pass"


@pytest.mark.parametrize(
    "name", ["cudaHostAlloc", "cudaHostRegister", "cudaMallocHost", "cudaFreeHost", "hipHostMalloc"]
)
def test_memory_of_the_host_is_no_start(name: str) -> None:
    scene = loop((0, 0.5, name, 0.9))
    assert judge_rule("GHD012", scene.store()).state == "pass"
    assert judge_rule("GHD008", scene.store()).state == "pass"
