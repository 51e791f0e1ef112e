"""A clock that falls within the profile, and a task queue that takes care of workspace: both leave their traces."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from advisor_core.sample import SCENARIOS
from advisor_core.sample.job import simulate
from advisor_core.sample.timeline import Timeline
from tests.sample.export import Export, ns

Samples = Callable[..., list[Export]]
Written = Callable[..., list[Path]]
MIB = 1 << 20


def rows(root: Path, query: str) -> list[tuple[object, ...]]:
    (path,) = (root / "ASCEND_PROFILER_OUTPUT").glob("ascend_pytorch_profiler*.db")
    with closing(sqlite3.connect(path)) as database:
        return database.execute(query).fetchall()


def clock_changes(export: Export) -> list[tuple[int, int]]:
    return [(ns(event["ts"]), event["args"]["MHz"]) for event in export.trace if event["ph"] == "C"]


def test_the_lane_of_the_clock_has_every_change_in_both_formats(sample: Samples, written: Written) -> None:
    (export,), (root,) = sample("clock-drops"), written("clock-drops", format="db")
    (_, first), (_, second), (_, last) = changes = clock_changes(export)
    assert (first, second, last) == (1800, 1200, 1200)
    assert rows(root, "SELECT timestampNs, freq FROM AICORE_FREQ ORDER BY timestampNs") == changes


def test_counters_follow_the_clock(sample: Samples) -> None:
    (export,) = sample("clock-drops")
    since = clock_changes(export)[1][0]
    seen = set()
    for row in export.kernels:
        if row["Accelerator Core"] == "AI_CORE":
            mhz = float(row["aic_total_cycles"]) / (float(row["aicore_time(us)"]) * int(row["Block Dim"]))
            expected = 1200 if ns(row["Start Time(us)"]) >= since else 1800
            assert mhz == pytest.approx(expected, rel=1e-3)
            seen.add(expected)
    assert seen == {1200, 1800}


def test_products_take_longer_at_the_lower_clock_and_copies_in_memory_do_not() -> None:
    (timeline,) = simulate(SCENARIOS["clock-drops"], 0)

    def slowdown(type_: str) -> float:
        of_type = [kernel for kernel in timeline.kernels if kernel.kernel and kernel.kernel.type == type_]
        shapes = [tuple(tensor.shape for tensor in kernel.kernel.inputs) for kernel in of_type if kernel.kernel]
        usual = max(set(shapes), key=shapes.count)
        same = [kernel for kernel, shape in zip(of_type, shapes, strict=True) if shape == usual]
        times = [[k.end - k.start for k in same if k.mhz == mhz] for mhz in (1200, 1800)]
        slow, quick = (sum(part) / len(part) for part in times)
        return slow / quick

    assert slowdown("MatMulV3") == pytest.approx(1.5, abs=0.1)
    assert slowdown("Add") == pytest.approx(1.0, abs=0.02)


def test_a_steady_clock_has_no_change(sample: Samples) -> None:
    (export,) = sample("healthy-training-single")
    assert [mhz for _, mhz in clock_changes(export)] == [1800, 1800]


def host_times(timeline: Timeline) -> tuple[float, float]:
    """Mean time of the interface calls of operators on the threads of the model, and of requests on the one behind."""
    calls = [span.end - span.start for span in timeline.spans if span.name.startswith("aclnn")]
    served = [entry.dequeue_end - entry.dequeue_start for entry in timeline.queue if entry.operator.startswith("aclnn")]
    return sum(calls) / len(calls), sum(served) / len(served)


def test_workspace_moves_to_the_thread_behind_the_queue() -> None:
    (two,), (one,) = (simulate(SCENARIOS[name], 0) for name in ("healthy-task-queue-two", "task-queue-one"))
    moved = 0.25 * SCENARIOS["task-queue-one"].job.host.operator
    (call_one, served_one), (call_two, served_two) = host_times(one), host_times(two)
    assert call_one - call_two == pytest.approx(moved, rel=0.1)
    assert served_two - served_one == pytest.approx(moved, rel=0.1)
    assert two.workspace and not one.workspace


def test_the_pool_for_workspace_is_recorded_in_both_formats(sample: Samples, written: Written) -> None:
    (export,), (root,) = sample("healthy-task-queue-two"), written("healthy-task-queue-two", format="db")
    table = export.table("memory_record.csv")
    pool = [
        (ns(row["Timestamp(us)"]), float(row["Total Reserved(MB)"]) * MIB)
        for row in table
        if row["Component"] == "WORKSPACE"
    ]
    query = "SELECT timestamp, totalReserved FROM MEMORY_RECORD JOIN STRING_IDS ON component = id WHERE value = "
    assert pool and rows(root, query + "'WORKSPACE' ORDER BY timestamp") == pool
    assert {reserved for _, reserved in pool} == {16 * MIB}
    assert "WORKSPACE" not in {row["Component"] for row in sample("task-queue-one")[0].table("memory_record.csv")}
