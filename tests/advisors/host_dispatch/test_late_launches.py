"""HD002: late launches."""

from __future__ import annotations

from advisor_core.api.testing import judge_rule
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
