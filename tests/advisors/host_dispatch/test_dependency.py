"""Idle time in which a stream waits for an event: the ledger's `idle/dependency`, with the stream and the wait."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule


def waiting(until: float, *, stream: int = 7, kind: str = "EVENT_WAIT_SQE") -> Scene:
    """Kernels from 0 to 1000 us and from 1300 to 2000 us, both launched before; a stream waits from 990 us on."""
    scene = Scene().step(1, -10, 2_020).kernel(0, 1_000, launched=-5)
    scene.kernel(1_300, 700, "Softmax", launched=900)
    times = {"start_us": 990, "duration_us": until - 990}
    return scene.add("device_tasks", name=kind, task_type=kind, stream=stream, **times)


def test_the_stream_that_waits_and_what_runs_afterwards() -> None:
    found = judge_rule("HD018", waiting(until=1_300).store())
    seen = found.first.observation
    assert found.state == "fail" and found.first.severity == "high"
    assert (seen["idle_ns"], seen["gaps"], seen["longest_ns"]) == (300_000, 1, 300_000)
    assert (seen["stream"], seen["next_task"]) == (7, "Softmax")
    assert found.first.impact_ns == 300_000


def test_only_the_part_of_the_gap_in_which_it_waits() -> None:
    seen = judge_rule("HD018", waiting(until=1_100).store()).first.observation
    assert seen["idle_ns"] == 100_000


def test_a_gap_without_a_wait_is_another_matter() -> None:
    assert judge_rule("HD018", waiting(until=995).store()).state == "pass"


def test_a_task_that_is_launched_late_does_not_wait_for_an_event() -> None:
    scene = Scene().step(1, -10, 2_020).kernel(0, 1_000, launched=-5).kernel(1_300, 700, launched=1_290)
    scene.add("device_tasks", name="w", task_type="EVENT_WAIT_SQE", stream=7, start_us=990, duration_us=310)
    assert judge_rule("HD018", scene.store()).state == "pass"
