"""HD003: operators that cost the host more than the device."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.testing import table
from advisors.host_dispatch.operators import outermost_calls
from tests.advisors.host_dispatch.scenes import WORDS, busy, late, specs


def operators(*, first: float = 50) -> Scene:
    """aten::conv2d costs the host 250 us and the device 100 us; its child and its first call must not count twice."""
    scene = late()
    for host in (first, 100, 100):
        scene.operator("DistributedDataParallel.forward", 5, host + 5, 50)
        scene.operator("aten::conv2d", host / 2, host, 50)
        scene.operator("Conv2D", host / 2, host / 2, 50, device_self=50)
    scene.operator("aten::item", 5, 400)
    return scene.operator("aten::_local_scalar_dense", 395, 395)


def test_operators_sum_outermost_calls_and_leave_waiting_out() -> None:
    found = judge_rule("HD003", operators().store(profiler={"schedule.warmup": 1}))
    seen = found.first.observation
    assert seen["operators"] == 1 and seen["operator"] == "aten::conv2d"
    assert seen["excess_ns"] == 100_000 and seen["left_out"] == 0
    assert seen["operator_calls"] == 3 and seen["operator_host_ns"] == pytest.approx(250_000 / 3)
    # The device was idle for 290 us behind a late launch of that operator; the excess is less.
    assert seen["idle_behind_ns"] == 100_000


def test_operators_leave_first_calls_out_unless_warmed_up() -> None:
    found = judge_rule("HD003", operators(first=900).store())
    assert found.first.observation["left_out"] == 1
    assert found.first.observation["excess_ns"] == 100_000


def test_operators_claim_no_more_than_the_idle_time_behind_them() -> None:
    scene = busy().operator("aten::conv2d", 500, 500, 10)
    found = judge_rule("HD003", scene.store(profiler={"schedule.warmup": 1}))
    assert found.state == "pass"


def test_options_of_the_queue_and_the_allocator_are_for_releases_that_stand_them() -> None:
    lazy = [one for one in specs("HD003") if "multi_stream_lazy_reclaim:True" in one.set.values()]
    assert [one.holds_for.versions for one in lazy] == [{"extension": ">=26.2.0"}], "older ones could crash with it"
    assert lazy[0].hazards == ["crash"]
    (fusion,) = [one for one in specs("HD003") if "TORCH_NPU_LAZY_FUSION" in one.set]
    assert fusion.holds_for.chip == ["A2", "A3"] and fusion.excludes == ["graph-capture"]
    assert fusion.holds_for.phase == ["training"], "in decode it would take the place of captured graphs"


def test_operators_cannot_answer_without_operator_details() -> None:
    assert judge_rule("HD003", late().store("operators")).state == "cannot_answer"


def test_operators_of_interleaved_threads_cannot_answer() -> None:
    scene = late().operator("aten::a", 10, 100).operator("aten::b", 10, 300).operator("aten::c", 5, 5)
    assert judge_rule("HD003", scene.store()).state == "cannot_answer"


@st.composite
def call_trees(draw: st.DrawFn) -> list[tuple[int, str, int, int]]:
    """Calls in order of start as (depth, name, self, total), from a random tree."""
    calls: list[tuple[int, str, int, int]] = []

    def grow(depth: int) -> int:
        number = len(calls)
        calls.append((depth, "", 0, 0))
        own = draw(st.integers(1, 50)) * 1000
        total = own
        for _ in range(draw(st.integers(0, 3 if depth < 3 else 0))):
            total += grow(depth + 1)
        name = draw(st.sampled_from(["aten::a", "aten::item", "Optimizer.step#SGD.step", "npu::b"]))
        calls[number] = (depth, name, own, total)
        return total

    for _ in range(draw(st.integers(1, 4))):
        grow(0)
    return calls


@given(call_trees())
def test_outermost_calls_agree_with_walking_the_tree(calls: list[tuple[int, str, int, int]]) -> None:
    expected = []
    under_operator: list[int] = []
    for number, (depth, name, _, total) in enumerate(calls):
        while under_operator and calls[under_operator[-1]][0] >= depth:
            under_operator.pop()
        if "#" in name:
            continue
        if not under_operator:
            inside = [number]
            for other in range(number + 1, len(calls)):
                if calls[other][0] <= depth:
                    break
                inside.append(other)
            expected.append((number, total, any("item" in calls[n][1] for n in inside)))
        under_operator.append(number)
    rows = [{"name": name, "host_self_ns": own, "host_total_ns": total} for _, name, own, total in calls]
    found = outermost_calls(table("operators", rows), WORDS)
    assert list(zip(found["row"], found["host_total_ns"], found["waits"], strict=True)) == expected
