"""The recorded pair: a ResNet-50 with 0 and with 4 workers of the data loader, against the raw traces."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from advisor_core.compare.compare import compare, compare_all
from advisor_core.result.comparison import Comparison
from advisor_core.result.run import RunResult
from reports.comparison.document import headline
from reports.labels import Labels
from tests.once import ResultOf

STEPS = 6


def recorded(folder: Path) -> list[dict[str, object]]:
    """The complete events of the newest trace in a folder, which is the one that a run reads."""
    newest = max(folder.glob("*.gz"), key=lambda path: path.name)
    with gzip.open(newest, "rt", encoding="utf-8") as file:
        return [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]


def span_us(events: list[dict[str, object]]) -> float:
    """From the start of the first task on the device to the end of the last one."""
    tasks = [event for event in events if event.get("cat") in ("Kernel", "Memcpy", "Memset")]
    first = min(float(str(task["ts"])) for task in tasks if task["cat"] == "Kernel")
    return max(float(str(task["ts"])) + float(str(task["dur"])) for task in tasks) - first


def kernels_us(events: list[dict[str, object]]) -> float:
    return sum(float(str(event["dur"])) for event in events if event.get("cat") in ("Kernel", "Memset"))


@pytest.fixture(scope="module")
def results(result_of: ResultOf, profiles: Path) -> tuple[RunResult, RunResult]:
    kineto = profiles / "kineto"
    before, after = (result_of(kineto / f"resnet50-workers-{workers}") for workers in (0, 4))
    return before, after


@pytest.fixture(scope="module")
def told(results: tuple[RunResult, RunResult]) -> Comparison:
    return compare(*results)


def test_the_difference_is_that_of_the_traces(told: Comparison, profiles: Path) -> None:
    """The six steps together last from the first kernel to the end of the last one, in both traces."""
    folders = [profiles / "kineto" / f"resnet50-workers-{workers}" for workers in (0, 4)]
    spans = [span_us(recorded(folder)) / STEPS * 1000 for folder in folders]
    assert told.verdict.before_ns == pytest.approx(spans[0], rel=0.01)
    assert told.verdict.after_ns == pytest.approx(spans[1], rel=0.01)
    assert told.verdict.outcome == "faster" and told.obstacles == []


def test_the_data_loader_is_what_is_gone(told: Comparison) -> None:
    first = told.causes[0]
    assert first.path == "idle/host/dataloader" and first.difference_ns < told.verdict.difference_ns
    assert [told.findings[place].rule for place in first.findings] == ["GHD006"]
    assert told.findings[first.findings[0]].state == "gone"
    assert told.promises is not None and told.promises.basis == "alone"
    # The promise is about a long run, in which every step loads a batch; what came is told between the first kernel and
    # the last, which of six batches leaves out one.
    low, high = told.promises.items[0].range_ns or (0, 0)
    assert low <= (told.promises.came_in_plan_ns or 0) <= high
    least, most = told.promises.came_range_ns or (0, 0)
    assert least <= high and low <= most


def test_a_long_run_has_the_loader_in_each_of_its_steps(results: tuple[RunResult, RunResult], profiles: Path) -> None:
    """The step of the plan is the mean of the six marks, loading included: 153.0 ms."""
    events = recorded(profiles / "kineto" / "resnet50-workers-0")
    marks = [float(str(event["dur"])) for event in events if str(event["name"]).startswith("ProfilerStep#")]
    assert len(marks) == STEPS
    assert results[0].plan is not None
    assert results[0].plan.step_ns == pytest.approx(sum(marks) / STEPS * 1000, rel=0.01)


def test_kernels_are_those_of_the_traces(
    told: Comparison, results: tuple[RunResult, RunResult], profiles: Path
) -> None:
    for result, workers in zip(results, (0, 4), strict=True):
        events = recorded(profiles / "kineto" / f"resnet50-workers-{workers}")
        (work,) = result.work
        assert work.rank_steps == STEPS
        assert sum(row.ns for row in work.operators) == pytest.approx(kernels_us(events) * 1000, rel=0.001)
    assert sum(row.difference_ns for row in told.operators) < 0.01 * told.verdict.before_ns
    by_class: dict[str, int] = defaultdict(int)
    for row in told.operators:
        by_class[row.operator_class] += row.difference_ns
    ledger = {row.path: row.difference_ns for row in told.ledger}
    assert by_class["convolution"] == pytest.approx(ledger["compute/convolution"], abs=2 * STEPS)  # rounding


def test_two_exports_of_a_job_are_told_apart_by_who_is_late(result_of: ResultOf, profiles: Path) -> None:
    """Separate runs of the AlexNet job, as text and as database: one step each, so nothing is claimed."""
    folders = [profiles / "ascend" / f"alexnet-ddp-{kind}-level1" for kind in ("text", "db")]
    results = [result_of(folder) for folder in folders]
    told = compare_all(["text", "db"], results)
    (one,) = told.comparisons
    assert one.verdict.outcome == "cannot_tell" and not one.withheld
    assert [obstacle.about for obstacle in one.obstacles] == ["format"]
    assert all(row.calls_before == row.calls_after for row in one.operators)
    assert {row.state for row in one.findings if row.rule == "CO003"} <= {"other_subject", "same"}
    assert one.causes[0].path == "communication/wait" and one.promises is None
    assert "cannot be told" in headline(told, Labels("en"))


def test_another_vendor_is_no_regression(
    result_of: ResultOf, results: tuple[RunResult, RunResult], profiles: Path
) -> None:
    """AlexNet on NPUs and ResNet-50 on a GPU: other work, and nothing of one vendor is set against the other."""
    npu = result_of(profiles / "ascend" / "alexnet-ddp-text-level1")
    told = compare(npu, results[1])
    assert told.verdict.outcome == "across_vendors" and told.verdict.interval is None
    assert {"vendor", "unknown_amounts"} <= {obstacle.about for obstacle in told.obstacles}
    assert not any((told.operators, told.findings, told.apis, told.settings, told.promises, told.causes))
    assert sum(origin.difference_ns for origin in told.origins) == told.verdict.difference_ns
    assert "not known" in headline(compare_all(["npu", "gpu"], [npu, results[1]]), Labels("en"))


def test_alexnet_on_a_gpu_and_on_npus(result_of: ResultOf, profiles: Path) -> None:
    """By the traces: the GPU recorded two forward passes without marks of steps or shapes (10 convolutions and 6
    products), the NPUs one step of training each (5 + 4 + 5 convolutions, 9 products)."""
    gpu, npu = (
        result_of(profiles / name) for name in ("kineto/alexnet-a100.json.gz", "ascend/alexnet-ddp-text-level1")
    )
    told = compare(gpu, npu)
    assert {"window", "vendor", "passes"} <= {obstacle.about for obstacle in told.obstacles}
    assert told.amounts is not None and told.amounts.same is False and told.amounts.kernel_ns == (10_700_000, 8_876_006)
    assert told.ledger == [] and not told.amounts.ns_per_sample
    origins = {origin.path: origin for origin in told.origins}
    assert sum(origin.difference_ns for origin in told.origins) == 8_876_006 - 10_700_000
    assert (origins["compute/convolution"].before_ns, origins["compute/product"].before_ns) == (5_094_000, 2_660_000)
    for path, calls in (("compute/convolution", (10, 14)), ("compute/product", (6, 9))):
        division = origins[path].division
        assert division is not None and (division.calls_before, division.calls_after) == calls
        assert division.untold_ns == origins[path].difference_ns  # without shapes nothing is known of a bound
