"""Times that no device and no thread can have."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from advisor_core.contracts.doubt import Disagreement
from advisor_core.facts.doubt.impossible import impossible
from tests.facts.test_doubt import tables

Rows = list[dict[str, object]]


def kernels(*spans: tuple[float, float], stream: int = 2) -> Rows:
    """Kernels by start and duration [us]."""
    return [
        {"type": "Add", "name": "Add", "core": "AI_VECTOR_CORE", "step": 1, "stream": stream, "task": n,
         "start_us": start, "duration_us": duration}
        for n, (start, duration) in enumerate(spans)
    ]  # fmt: skip


def calls(*spans: tuple[float, float], category: str = "cpu_op", thread: int = 1) -> Rows:
    return [
        {"category": category, "name": "call", "thread": thread, "start_us": start, "duration_us": duration}
        for start, duration in spans
    ]


def told(**frames: tuple[str, Rows]) -> list[Disagreement]:
    given: Mapping[str, tuple[str, Rows]] = frames
    return [one for one in impossible(tables(**given)) if one is not None]


def test_kernels_of_one_stream_run_one_after_the_other() -> None:
    assert told(kernels=("k", kernels((0, 10), (10, 10), (30, 10)))) == []
    (said,) = told(kernels=("k", kernels((0, 10), (5, 10), (30, 10))))
    assert (said.table, said.value, said.other) == ("kernels", 30_000, 25_000)
    assert said.off == pytest.approx(1 / 6)


def test_streams_run_side_by_side_and_rows_that_stand_twice_are_told_elsewhere() -> None:
    assert told(kernels=("k", [*kernels((0, 10)), *kernels((5, 10), stream=3)])) == []
    assert told(kernels=("k", [*kernels((0, 10)), *kernels((0, 10))])) == []


def test_a_kernel_takes_some_time() -> None:
    (said,) = told(kernels=("k", kernels((0, 0.005), (10, 0.004), (30, 4))))
    assert (said.value, said.other) == (5, 100)
    assert told(kernels=("k", kernels((0, 0.005), (10, 1), (30, 4)))) == []


def test_calls_of_a_thread_lie_within_or_beside_each_other() -> None:
    nested = calls((0, 100), (10, 20), (40, 60), (200, 5))
    assert told(host_events=("h", nested)) == []
    assert told(host_events=("h", [*nested, *calls((50, 100), thread=2)])) == []
    (said,) = told(host_events=("h", calls((0, 100), (50, 100), (200, 5))))
    assert (said.table, said.unit, said.value, said.other) == ("host_events", "count", 3, 2)


def test_a_call_between_two_operators_does_not_hide_that_they_cross() -> None:
    operators, between = calls((0, 100), (50, 100)), calls((10, 5), (60, 5), category="runtime")
    assert len(told(host_events=("h", [*operators, *between]))) == 1


@pytest.mark.parametrize(("begins_us", "early"), [(-900, 0), (-1_100, 1)])
def test_a_task_begins_after_its_launch_but_for_the_clocks(begins_us: float, early: int) -> None:
    arrow = {"kind": "host_to_device", "flow": 1}
    flows: Rows = [
        {**arrow, "end": "s", "time_us": 5_000.0, "thread": 1, "device": False},
        {**arrow, "end": "f", "time_us": 5_000.0 + begins_us, "thread": 2, "device": True},
    ]
    tasks: Rows = [{"name": "Add", "task_type": "AI_VECTOR_CORE", "start_us": 5_000 + begins_us, "duration_us": 10}]
    assert len(told(flows=("t", flows), device_tasks=("t", tasks))) == early
