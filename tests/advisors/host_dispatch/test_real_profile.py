"""Host dispatch of a recorded job of AlexNet."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.testing import judge_rule
from advisor_core.contracts.tables import HOST_EVENTS, OPERATORS
from advisors.host_dispatch.operators import outermost_calls
from tests.advisors.host_dispatch.scenes import WORDS
from tests.advisors.real import real_rank


def test_alexnet_rank_0(profiles: Path) -> None:
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    idle = judge_rule("HD001", store).first.observation
    assert idle["step_ns"] == pytest.approx(136.58e6, rel=1e-3)
    assert idle["idle_ns"] == pytest.approx(25.744e6, rel=1e-3)  # the exporter's Free: 25.74 ms
    late_ones = judge_rule("HD002", store)
    assert late_ones.first.severity == "high"
    assert late_ones.first.observation["late_ns"] == pytest.approx(17.3e6, abs=1e6)
    assert late_ones.first.observation["operator"] == "aten::linear"
    assert late_ones.first.observation["task_queue"] == "on"
    compiling = judge_rule("HD005", store)
    assert compiling.first.observation["calls"] == 19  # the vendor's limit is 20 calls
    assert compiling.first.impact_ns == pytest.approx(2.7e6, abs=0.2e6)
    assert judge_rule("HD010", store).first.impact_ns == pytest.approx(4.7e6, abs=0.5e6)
    # The long synchronisation at the end of the step waits for a busy device: no finding.
    assert judge_rule("HD004", store).state == "pass"
    assert judge_rule("HD006", store).state == "pass"
    assert judge_rule("HD008", store).state == "cannot_answer"


def test_alexnet_operators_are_not_counted_twice(profiles: Path) -> None:
    """operator_details.csv lists the same calls as the trace, where nesting is plain from the times."""
    store = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    calls = outermost_calls(store[OPERATORS], WORDS)
    events = store[HOST_EVENTS]
    events = events[(events["category"] == "cpu_op") & ~events["name"].astype(str).str.startswith("ProfilerStep")]
    events = events.sort_values("start_ns", kind="stable")
    expected = []
    reach: dict[int, int] = {}
    for row, (name, thread, start, length) in enumerate(
        zip(events["name"].astype(str), events["thread"], events["start_ns"], events["duration_ns"], strict=True)
    ):
        if "#" in name or name.endswith(".forward"):
            continue
        if start >= reach.get(thread, 0):
            expected.append((row, name))
            reach[thread] = start + length
    assert list(zip(calls["row"], calls["name"], strict=True)) == expected
    found = judge_rule("HD003", store).first.observation
    assert found["operators"] == 38 and found["operator"] == "aten::conv2d" and found["left_out"] == 0
    assert found["idle_behind_ns"] <= 17.9e6


def test_alexnet_level0(profiles: Path) -> None:
    store = real_rank(profiles, "alexnet-ddp-text-level0", 0)
    assert judge_rule("HD001", store).state == "fail"
    assert judge_rule("HD002", store).first.severity == "high"
    for rule in ("HD005", "HD009"):
        assert judge_rule(rule, store).state == "cannot_answer"
