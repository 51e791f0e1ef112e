"""Which layers of dispatch a step waits for, and which one next."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from advisor_core.api.facts import HostChange, Layer, union
from advisor_core.api.testing import Scene, judge_rule
from advisors.host_dispatch.dispatch_layers import awaited_layers, part_of
from tests.advisors.cures import cure_of, saved
from tests.advisors.host_dispatch.scenes import late
from tests.facts.test_parts import DECODE, PREFILL


def _layer(*spans: tuple[int, int]) -> Layer:
    return union(*(np.array(ends, dtype=np.int64) for ends in zip(*spans, strict=True)))


def _two_threads(changes: Sequence[HostChange]) -> list[int]:
    """A step of 100: the threads that feed take 100 of it, the thread behind the queue 95 beside them."""
    return [100 - max(100 - one.feeding.total(), 95 - one.launching.total()) for one in changes]


def test_as_few_layers_are_named_as_win_most() -> None:
    framework = HostChange(_layer((0, 60)))
    python, runtime = HostChange(_layer((60, 80))), HostChange(launching=_layer((0, 50)))
    assert awaited_layers({"python": python, "framework": framework}, _two_threads) == (("framework",), 5)
    # Behind the operators the other thread takes nearly as long: one of the two wins little, both together most.
    layers = {"python": python, "framework": framework, "runtime": runtime}
    assert awaited_layers(layers, _two_threads) == (("framework", "runtime"), 55)


def test_a_part_of_a_change_is_what_lies_within() -> None:
    part = part_of(HostChange(_layer((0, 10), (20, 30)), _layer((5, 25))), _layer((8, 22)))
    assert (part.feeding.starts.tolist(), part.feeding.ends.tolist()) == ([8, 20], [10, 22])
    assert (part.launching.starts.tolist(), part.launching.ends.tolist()) == ([8], [22])


def turns(count: int, *, python: float, operator: float, kernel: float) -> Scene:
    """Turns of Python (us), an operator that launches at its end, and a kernel 10 us later."""
    turn = python + operator
    scene = Scene().step(1, -20, count * turn + kernel + 100)
    for number in range(1, count + 1):
        scene.event("cpu_op", "aten::mul", number * turn - operator, operator)
        scene.kernel(number * turn + 10, kernel, launched=number * turn, op="aten::mul")
    return scene


@pytest.mark.parametrize(("python", "operator", "layer"), [(80, 20, "python"), (20, 80, "framework")])
def test_the_layer_that_takes_the_time_is_named_and_the_other_stays(python: float, operator: float, layer: str) -> None:
    """100 us for kernels of 10: if the one layer of 80 us is gone, turns take the 20 of the other, but for the last."""
    store = turns(10, python=python, operator=operator, kernel=10).store()
    found = judge_rule("HD002", store)
    assert found.first.observation["awaited_layers"] == layer
    assert 0 <= found.first.observation["awaited_left"] < 0.5
    cure = cure_of(found)
    assert 8 * 60_000 < saved(store, cure) <= 9 * 80_000 + 80_000
    assert saved(store, cure.bound("least")) <= saved(store, cure) <= saved(store, cure.bound("most"))


def test_the_next_layer_is_told_with_what_it_wins_on_top() -> None:
    """Behind 60 us of an operator there are 40 of Python: kernels of 10 then wait for it."""
    store = turns(10, python=40, operator=60, kernel=10).store()
    following = judge_rule("HD025", store)
    assert following.state == "fail"
    seen = following.first.observation
    assert (seen["awaited_layers"], seen["layer"]) == ("framework", "python")
    assert seen["by_itself_ns"] > 0 and seen["on_top_ns"] == pytest.approx(9 * 30_000, rel=0.15)


def test_nothing_comes_next_where_the_host_is_never_late() -> None:
    assert judge_rule("HD025", late().store("flows")).state == "cannot_answer"
    in_time = turns(10, python=5, operator=5, kernel=100).store()
    assert judge_rule("HD025", in_time).state == "not_applicable"  # no layer is a limit


def behind_a_prefill(host_us: float) -> Scene:
    """A prefill of seven kernels of 1000 us, launched in time, in which the host is in operators for ``host_us``; then
    two passes of decode, whose operators of 45 us launch kernels of 10 us."""
    scene, now = Scene(), 0.0
    for type_, shapes in PREFILL:
        reads = [f"{shape} BF16" for shape in shapes.split(";")]
        scene.tensors(now, 1000, type_, reads, reads[:1], launched=-10)
        now += 1000
    scene.event("cpu_op", "aten::empty", 100, host_us)
    for type_, shapes in 2 * DECODE:
        reads = [f"{shape} BF16" for shape in shapes.split(";")]
        scene.event("cpu_op", "aten::mm", now - 3, 45)
        scene.tensors(now + 40, 10, type_, reads, reads[:1], launched=now + 30)
        now += 50
    return scene.step(1, -20, now + 20)


def test_what_the_host_does_beside_a_busy_device_is_no_part_of_what_may_be_left() -> None:
    """Decode needs about as quick a host, whatever the host does while prefill keeps the device busy: over the whole
    step it could keep 85 % of its time."""
    found = [judge_rule("HD002", behind_a_prefill(host_us).store()).first for host_us in (100, 6000)]
    left = [float(str(one.observation["awaited_left"])) for one in found]
    assert found[0].observation["awaited_layers"] == found[1].observation["awaited_layers"] == "framework"
    assert all(0 < one < 0.3 for one in left), left
