"""Collectives that run on the CPU, beside kernels and while the device is idle."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule

WORKER = 300


def between(start: float, duration: float) -> Scene:
    """Kernels from 0 to 400 and from 900 to 1000 us, and an all-reduce of gloo on a thread of its own."""
    made = Scene().step(1, -10, 1_020).kernel(0, 400).kernel(900, 100, launched=890)
    return made.event("user_annotation", "gloo:all_reduce", start, duration, thread=WORKER)


def test_only_the_time_in_which_the_device_is_idle_counts() -> None:
    found = judge_rule("HD016", between(300, 400).store())
    seen = found.first.observation
    assert found.state == "fail" and (seen["total_ns"], seen["idle_ns"]) == (400_000, 300_000)
    assert (seen["operation"], seen["calls"], seen["longest_ns"]) == ("gloo:all_reduce", 1, 400_000)
    assert seen["idle_share"] == 0.3 and found.first.impact_ns == 300_000


def test_beside_kernels_it_costs_nothing() -> None:
    assert judge_rule("HD016", between(50, 300).store()).state == "pass"


def test_without_such_collectives_or_outside_of_the_steps_nothing_is_said() -> None:
    assert judge_rule("HD016", Scene().step(1, -10, 420).kernel(0, 400).store()).state == "not_applicable"
    assert judge_rule("HD016", between(2_000, 300).store()).state == "not_applicable"
