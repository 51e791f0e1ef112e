"""Steps of tasks that carry none, by the marks of the framework's profiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.testing import Scene
from advisor_core.contracts.missing import NotApplicable
from advisor_core.facts.steps.marks import step_marks
from advisor_core.facts.steps.steps import steps
from tests.once import ResultOf


def scene(*, marks: bool = True) -> Scene:
    """Two steps of two kernels; the second kernel of the first is launched within its mark and runs after it."""
    made = Scene()
    if marks:
        made.step(7, 0, 100).step(8, 100, 100)
    made.kernel(50, 20, launched=20).kernel(110, 20, launched=60)
    return made.kernel(150, 20, launched=120).kernel(180, 20, launched=130)


def test_a_task_belongs_to_the_mark_in_which_it_was_launched() -> None:
    store = scene().store("kernels")
    assert store[steps].to_numpy().tolist() == [[7, 50_000, 150_000], [8, 150_000, 200_000]]


def test_without_marks_all_is_one_step() -> None:
    assert scene(marks=False).store("kernels")[steps]["step"].tolist() == [-1]


def test_tasks_that_carry_steps_keep_them() -> None:
    store = scene().store()
    assert store[steps]["step"].tolist() == [1]
    with pytest.raises(NotApplicable):
        store[step_marks]


def test_the_step_of_a_real_trace_has_its_number(result_of: ResultOf, profiles: Path) -> None:
    result = result_of(profiles / "ascend" / "trace-view-only_ascend_pt")
    (step,) = result.ledger
    assert step.step == 1 and step.wall_ns / 1e6 == pytest.approx(11.27, abs=0.01)
