"""Operators on the CPU: those without a kernel for the device, and those between a copy to the host and one back."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule

MS = 1_000.0


def fallback(turns: int, name: str = "aten::isin") -> Scene:
    """Each turn: a product of 1 ms; an operator that is moved to the CPU 0.1 ms after it, with copies of 0.1 ms before
    and after 0.2 ms of work; 50 us later the next product."""
    scene, now = Scene(), 0.0
    scene.step(1, -50, turns * 1.56 * MS + 100)
    for _ in range(turns):
        scene.kernel(now, MS, launched=now - 5, op="aten::mm")
        at = now + 1.1 * MS
        scene.event("cpu_op", name, at, 400)
        scene.event("cpu_op", "aten::_to_cpu", at + 1, 100).event("runtime", "AscendCL@aclrtMemcpy", at + 2, 98)
        scene.event("cpu_op", "aten::to", at + 300, 100).event("runtime", "AscendCL@aclrtMemcpy", at + 302, 98)
        now = at + 450
    return scene.kernel(now, 10)


def test_an_operator_that_falls_back_counts_as_a_whole() -> None:
    found = judge_rule("HD017", fallback(4).store())
    seen = found.first.observation
    assert found.state == "fail" and found.first.severity == "high"
    assert (seen["operator"], seen["calls"], seen["fallbacks"]) == ("aten::isin", 4, 4)
    assert seen["idle_ns"] == seen["total_ns"] == 4 * 400_000 and seen["longest_ns"] == 400_000


def test_the_outer_call_of_an_operator_is_not_counted_beside_it() -> None:
    scene = fallback(1)
    scene.event("cpu_op", "model::search", 1.05 * MS, 460)
    assert judge_rule("HD017", scene.store()).first.observation["calls"] == 1


def test_beside_kernels_it_costs_nothing() -> None:
    scene = fallback(4).kernel(0, 8 * MS, stream=3)
    assert judge_rule("HD017", scene.store()).state == "pass"


def round_trip(operator: str, *, launch_between: bool = False, last_call: str = "AscendCL@aclrtMemcpy") -> Scene:
    """A product; a copy to the host, 2 ms of an operator, a copy to the device, a product."""
    scene = Scene().step(1, -50, 5 * MS).kernel(0, MS, op="aten::mm")
    scene.event("runtime", "AscendCL@aclrtMemcpy", MS, 50).event("cpu_op", operator, 1.1 * MS, 2 * MS)
    if launch_between:
        scene.kernel(3.2 * MS, 5, launched=3.15 * MS)
    return scene.event("runtime", last_call, 3.3 * MS, 50).kernel(4 * MS, MS, launched=3.9 * MS)


def test_an_operator_between_two_copies_runs_on_the_cpu() -> None:
    seen = judge_rule("HD017", round_trip("aten::masked_fill_").store()).first.observation
    assert (seen["operator"], seen["fallbacks"], seen["idle_ns"]) == ("aten::masked_fill_", 0, 2_000_000)


@pytest.mark.parametrize("operator", ["aten::view", "aten::_to_copy", "c10d::allreduce_", "record_param_comms"])
def test_what_computes_nothing_is_not_counted(operator: str) -> None:
    assert judge_rule("HD017", round_trip(operator).store()).state == "pass"


def test_before_a_launch_it_is_no_round_trip() -> None:
    """What an operator without a launch of its own did before a launch can be a part of making ready for it."""
    assert judge_rule("HD017", round_trip("aten::sum", launch_between=True).store()).state == "pass"
    assert judge_rule("HD017", round_trip("aten::sum", last_call="AscendCL@aclrtFree").store()).state == "pass"


def test_without_operators_it_cannot_be_answered() -> None:
    scene = Scene().step(1, -10, 420).kernel(0, 400)
    assert judge_rule("HD017", scene.store()).state == "cannot_answer"
