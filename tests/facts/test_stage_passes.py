"""Passes of micro-batches over a stage: told by the thread that autograd runs on, between sends and receives."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene
from advisor_core.contracts.missing import Missing, NotApplicable
from advisor_core.facts.steps.stage_passes import passes

MAIN, AUTOGRAD = 11, 22
AHEAD = 30.0


class Stage:
    """One rank: kernels by the thread that launched them, and sends."""

    def __init__(self) -> None:
        self.scene = Scene().step(1, -100, 2000)
        self.arrows = 0

    def kernel(self, start: float, thread: int, arrow: bool = True) -> Stage:
        """``arrow``: autograd recorded the operator, or runs what it recorded."""
        self.scene.kernel(start, 10, launched=start - AHEAD, op="aten::mm")
        rows = self.scene.rows
        for row in (*rows["host_events"][-2:], rows["flows"][-2]):
            row["thread"] = thread
        if arrow:
            self.arrows += 1
            end = "s" if thread == MAIN else "f"
            flow = {"kind": "forward_backward", "flow": 10_000 + self.arrows, "time_us": start - AHEAD, "device": False}
            self.scene.add("flows", end=end, thread=thread, **flow)
        return self

    def send(self, start: float) -> Stage:
        self.scene.collective(start, 5, None, operation="send", launched=start - AHEAD)
        return self

    def told(self) -> list[tuple[bool, int, float, float]]:
        frame = self.scene.store()[passes]
        columns = (frame[name].tolist() for name in ("backward", "number", "start_ns", "end_ns"))
        return [(b, n, s / 1000, e / 1000) for b, n, s, e in zip(*columns, strict=True)]


def test_passes_change_with_the_thread_and_at_a_send() -> None:
    stage = Stage().kernel(0, MAIN).kernel(20, MAIN).send(40).kernel(50, MAIN).kernel(70, AUTOGRAD).send(90)
    stage.kernel(100, AUTOGRAD).kernel(120, AUTOGRAD)
    assert stage.told() == [
        (False, 1, 0.0, 30.0),
        (False, 2, 50.0, 60.0),
        (True, 1, 70.0, 80.0),
        (True, 2, 100.0, 130.0),
    ]


def test_neither_the_optimizer_nor_work_without_gradients_is_a_pass() -> None:
    stage = Stage().kernel(0, MAIN, arrow=False).send(20).kernel(30, MAIN).kernel(50, AUTOGRAD).send(70)
    stage.kernel(80, MAIN)
    assert stage.told() == [(False, 1, 30.0, 40.0), (True, 1, 50.0, 60.0)]


@pytest.mark.parametrize("stage", [Stage().kernel(0, MAIN).send(20), Stage().kernel(0, MAIN, arrow=False).send(20)])
def test_without_a_backward_thread_passes_are_not_known(stage: Stage) -> None:
    missing = stage.scene.store().find(passes)
    assert isinstance(missing, Missing) and missing.options == ("host",)


def test_without_a_pipeline_there_are_none() -> None:
    with pytest.raises(NotApplicable):
        _ = Stage().kernel(0, MAIN).kernel(20, AUTOGRAD).scene.store()[passes]
