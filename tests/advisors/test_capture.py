"""Capture quality: what the way of profiling hides or distorts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.advisors.build import Scene, outcome
from tests.advisors.real import real_rank


def scene(*, type_: str = "MatMulV2") -> Scene:
    return Scene().kernel(0, 100, type_).kernel(100, 50, type_)


@pytest.mark.parametrize(
    ("level", "type_", "state"),
    [
        ("level0", "MatMulV2", "fail"),
        ("level_none", "MatMulV2", "fail"),
        ("level1", "MatMulV2", "pass"),
        ("level1", "", "fail"),
        (None, "", "fail"),
        (None, "MatMulV2", "cannot_answer"),
    ],
)
def test_level(level: str | None, type_: str, state: str) -> None:
    assert outcome("DQ001", scene(type_=type_).store(level=level)).state == state


def test_inflating_options_put_a_caveat_on_host_findings() -> None:
    found = outcome("DQ002", scene().store(profiler={"with_stack": True, "record_shapes": True, "with_modules": False}))
    assert found.first.observation["inflating_options"] == "with_stack, record_shapes"
    assert found.first.caveat is not None and "record" in found.first.caveat.en
    assert outcome("DQ002", scene().store(profiler={"with_stack": False})).state == "pass"


def test_single_step() -> None:
    assert outcome("DQ003", scene().store()).state == "fail"
    assert outcome("DQ003", scene().kernel(200, 10, step=2).store()).state == "pass"


@pytest.mark.parametrize(
    ("schedule", "state"),
    [
        ({"schedule.skip_first": 0, "schedule.wait": 0, "schedule.warmup": 0}, "fail"),
        ({"schedule.skip_first": 0, "schedule.wait": 0, "schedule.warmup": 1}, "pass"),
        ({}, "cannot_answer"),
    ],
)
def test_warm_up(schedule: dict[str, Any], state: str) -> None:
    assert outcome("DQ004", scene().store(profiler=schedule)).state == state


def test_capture_findings_cost_nothing() -> None:
    for rule in ("DQ001", "DQ002", "DQ003", "DQ004"):
        store = scene().store(level="level0", profiler={"with_stack": True, "schedule.warmup": 0})
        assert outcome(rule, store).first.impact_ns == 0
        assert outcome(rule, store).first.severity == "low"


def test_alexnet(profiles: Path) -> None:
    level1 = real_rank(profiles, "alexnet-ddp-text-level1", 0)
    assert [outcome(f"DQ00{n}", level1).state for n in (1, 2, 3, 4)] == ["pass", "fail", "fail", "pass"]
    assert outcome("DQ001", real_rank(profiles, "alexnet-ddp-text-level0", 0)).state == "fail"
