"""HD002: late launches."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.cures import cure_of, saved
from tests.advisors.host_dispatch.scenes import busy, late


def test_late_launch_names_the_operator_and_what_the_host_did() -> None:
    found = judge_rule("HD002", late().store())
    assert found.state == "fail" and found.first.severity == "high"
    seen = found.first.observation
    assert seen["operator"] == "aten::conv2d" and seen["operator_ns"] == 290_000
    # In Python until the operator begins, then in the operator until the launch; the launch call itself is runtime.
    assert (seen["python_ns"], seen["framework_ns"], seen["runtime_ns"]) == (30_000, 259_000, 1_000)
    assert seen["late_ns"] == 290_000 and seen["longest_ns"] == 290_000
    kinds = [type(reference).__name__ for reference in found.evidence()]
    assert kinds == ["Metric", "Metric", "Rows", "Rows", "Interval", "Stack"]


def test_late_launch_is_silent_when_launched_in_time() -> None:
    assert judge_rule("HD002", busy().store()).state == "pass"


def test_late_launch_without_arrows_cannot_answer() -> None:
    assert judge_rule("HD002", late().store("flows")).state == "cannot_answer"


def lagging(count: int, *, kernel: float, host: float) -> Scene:
    """Turns of ``host`` us of an operator that launches a kernel of ``kernel`` us at its end; it starts 10 us later."""
    scene = Scene().step(1, -20, count * host + kernel + 100)
    for number in range(1, count + 1):
        scene.event("cpu_op", "aten::mul", (number - 1) * host, host)
        scene.kernel(number * host + 10, kernel, launched=number * host, op="aten::mul")
    return scene


def test_a_host_that_keeps_pace_takes_no_longer_than_the_device() -> None:
    """The host takes 100 us for kernels of 40 us, so that the device is idle for 60 of every 100 us, 10 of which are
    the latency of a launch. At least the other 50 go, but for the call of 1 us that launches, which is another layer,
    nine times; a host that takes 40 us is never late, and one that takes nothing is not better."""
    store = lagging(10, kernel=40, host=100).store()
    cure = cure_of(judge_rule("HD002", store))
    least, usual, most = (saved(store, cure.bound(at)) for at in ("least", "usual", "most"))
    assert (least, usual, most) == (441_000, 540_000, 540_000)
