"""What findings say of real recordings of GPUs, of kernels and host, against sums over the raw traces."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from advisor_core.result.run import RunResult
from tests.engine.raw_traces import Event, Task, Trace, covered, length, total, trace, within
from tests.once import ResultOf

ALEXNET, COLLECTIVES, V100 = "alexnet-a100.json.gz", "nccl-collectives-a100.json.gz", "ns-resolution-v100.json.gz"
CONVERSION = re.compile("nchwToNhwc|nhwcToNchw")
FP32 = re.compile(r"sgemm_|scudnn|_engine<float|fft2d_\w+<float|winograd\w*<float|f32f32|s1688|tfloat32")
TF32 = re.compile(r"tf32|tfloat32|s1688")

Result = Callable[[str], RunResult]


@pytest.fixture(scope="module")
def result(result_of: ResultOf, profiles: Path) -> Result:
    if not (profiles / "kineto").is_dir():
        pytest.skip("no real recordings of GPUs")
    return lambda name: result_of(profiles / "kineto" / name)


@pytest.fixture(scope="module")
def raw(profiles: Path) -> Callable[[str], Trace]:
    return lambda name: trace(profiles / "kineto" / name)


Raw = Callable[[str], Trace]


def observed(result: RunResult, rule: str, rank: int | None = None) -> dict[str, Any]:
    """Of the first finding of a rule."""
    found = [one for one in result.findings if one.rule == rule and rank in (None, one.rank)]
    return dict(found[0].observation)


def dense(task: Task) -> bool:
    """A kernel of a product or a convolution, without what converts or clears for it."""
    works = "convolution" in task.operator or task.operator in ("aten::mm", "aten::addmm")
    return works and task.event.category == "kernel" and not CONVERSION.search(task.name)


def series(recording: Trace) -> list[list[Task]]:
    """Neighbours on one stream that are no products, convolutions, conversions, collectives, joined tensors or updates
    of parameters, where they are more than one. What clears memory belongs to the kernel behind it."""
    found: list[list[Task]] = [[]]
    for task in sorted(recording.tasks, key=lambda task: (task.event.args["stream"], task.event.start)):
        if task.clears or task.communicates:
            continue
        ends = dense(task) or CONVERSION.search(task.name) or task.operator.startswith("aten::_foreach")
        if ends or task.operator == "aten::cat":
            found.append([])
        else:
            found[-1].append(task)
    return [one for one in found if len(one) > 1]


def test_idle_time_and_its_causes_in_a_first_pass(result: Result, raw: Raw) -> None:
    """Six seconds of 12.8 are one cudaFree that starts the GPU; it is not counted with the other calls on memory."""
    recording, seen = raw(ALEXNET), result(ALEXNET)
    idle = observed(seen, "GHD001")
    assert (idle["step_ns"], idle["idle_ns"]) == (recording.step_ns, length(recording.gaps))
    assert (idle["gaps"], idle["largest_gap_ns"]) == (
        len(recording.gaps),
        max(end - start for start, end in recording.gaps),
    )
    calls = [
        call for call in recording.calls("cudaMalloc", "cudaFree") if recording.begin <= call.start < recording.end
    ]
    longest = max(calls, key=lambda call: call.ns)
    start, memory = observed(seen, "GHD012"), observed(seen, "GHD008")
    assert (start["call"], start["startup_ns"]) == (longest.name, longest.ns)
    calls.remove(longest)
    assert (memory["calls"], memory["total_ns"]) == (len(calls), sum(call.ns for call in calls))
    assert memory["longest_ns"] == max(call.ns for call in calls)
    idle_in_calls = sum(within(recording.gaps, call.start, call.end) for call in calls)
    assert memory["idle_ns"] == pytest.approx(idle_in_calls, rel=0.001)


@pytest.mark.parametrize("name", [ALEXNET, COLLECTIVES, V100])
def test_kernels_that_only_read_and_write(result: Result, raw: Raw, name: str) -> None:
    recording, seen = raw(name), observed(result(name), "GNS001")
    if name == ALEXNET:  # the random numbers at its beginning follow nothing, and precede a product
        assert recording.tasks[0].operator == "aten::uniform_"
    found = series(recording)
    assert seen["chains"] * recording.steps == len(found)
    assert seen["kernels"] * recording.steps == sum(map(len, found))
    assert seen["chain_ns"] * recording.steps == pytest.approx(sum(map(total, found)), rel=1e-6)
    spared = sum(total(one) - max(task.event.ns for task in one) for one in found)
    assert seen["saving_ns"] * recording.steps == pytest.approx(spared, rel=1e-6)


@pytest.mark.parametrize(("name", "tf32"), [(ALEXNET, True), (COLLECTIVES, True), (V100, False)])
def test_products_and_convolutions_in_fp32_by_their_names(result: Result, raw: Raw, name: str, tf32: bool) -> None:
    """What else convolutions run, sums over their parts and tables of offsets, is told by no name."""
    recording, seen = raw(name), observed(result(name), "GNS004")
    all_of_them = [task for task in recording.tasks if dense(task)]
    single = [task for task in all_of_them if FP32.search(task.name)]
    assert seen["fp32_ns"] * recording.steps == pytest.approx(total(single), rel=1e-6)
    assert seen["dense_ns"] * recording.steps == pytest.approx(total(all_of_them), rel=0.002)
    shortened = total(task for task in single if TF32.search(task.name))
    assert seen["shortened_share"] == pytest.approx(shortened / total(single), rel=1e-6)
    assert bool(shortened) == tf32 and seen["by_name_share"] == 1
    assert seen["dense_saving_ns"] == pytest.approx(seen["fp32_ns"] / 2, rel=1e-6), "at most half"


def test_late_launches_of_a_slow_host(result: Result, raw: Raw) -> None:
    recording, seen = raw(COLLECTIVES), result(COLLECTIVES)
    idle, late = observed(seen, "GHD001"), observed(seen, "GHD002")
    assert idle["idle_ns"] * 3 == pytest.approx(length(recording.gaps)) and idle["gaps"] * 3 == len(recording.gaps)
    launched = recording.late()
    assert late["gaps"] * 3 == len(launched)
    assert late["longest_ns"] == pytest.approx(max(ns for ns, _ in launched), abs=2)
    assert late["late_ns"] * 3 == pytest.approx(sum(ns for ns, _ in launched), rel=0.005)
    before: Counter[str] = Counter()
    for ns, task in launched:
        before[task.operators[-1].name if task.operators else ""] += ns
    ((operator, ns),) = before.most_common(1)
    assert late["operator"] == operator and late["operator_ns"] * 3 == pytest.approx(ns, rel=0.001)


BERT = "bert-small-h100.json.gz"
LOADING = "resnet50-workers-0/worker0.1623143566756.pt.trace.json.gz"
LOADED = "resnet50-workers-4/worker0.1623213129365.pt.trace.json.gz"
"""The newer one of two recordings each, in a format of 2021."""


@pytest.mark.parametrize(("name", "steps"), [(BERT, 1), (LOADING, 6), (LOADED, 6)])
def test_idle_time_of_trainings_and_of_a_forward_pass(result: Result, raw: Raw, name: str, steps: int) -> None:
    """Of the late launches those in the data loader have a finding of their own."""
    recording, seen = raw(name), result(name)
    assert recording.steps == steps
    idle, late = observed(seen, "GHD001"), observed(seen, "GHD002")
    assert (idle["step_ns"], idle["idle_ns"]) == (
        pytest.approx(recording.step_ns),
        pytest.approx(length(recording.gaps) / steps),
    )
    assert idle["gaps"] * steps == pytest.approx(len(recording.gaps))
    assert idle["largest_gap_ns"] == max(end - start for start, end in recording.gaps)
    launched = recording.late()
    assert idle["host_late_ns"] * steps == pytest.approx(sum(ns for ns, _ in launched), rel=0.0002)
    assert late["late_ns"] <= idle["host_late_ns"] and late["gaps"] * steps <= len(launched) + 0.5


def test_the_data_loader_is_waited_for(result: Result, raw: Raw) -> None:
    recording, seen = raw(LOADING), observed(result(LOADING), "GHD006")
    waits = [one for one in recording.events if "DataLoader" in one.name and one.name.endswith("__next__")]
    waits = [one for one in waits if recording.begin <= one.start < recording.end]
    assert (seen["calls"] * 6, seen["total_ns"] * 6, seen["longest_ns"]) == (
        pytest.approx(len(waits)),
        pytest.approx(sum(one.ns for one in waits)),
        max(one.ns for one in waits),
    )
    idle = sum(within(recording.gaps, one.start, one.end) for one in waits)
    assert 0.95 * idle < seen["idle_ns"] * 6 < idle, "but for what had been launched and started late"
    assert not [one for one in result(LOADED).findings if one.rule == "GHD006"]


def test_copies_of_the_batch_leave_the_gpu_idle(result: Result, raw: Raw) -> None:
    """From memory that is not pinned: the host stays in the call as long as the copy takes."""
    recording, seen = raw(LOADING), observed(result(LOADING), "GHD009")
    calls = [call for call in recording.calls("cudaMemcpyAsync") if recording.begin <= call.start < recording.end]
    idle = sum(within(recording.gaps, call.start, call.end) for call in calls)
    copied = [
        event.ns
        for event in recording.events
        if event.name.startswith("Memcpy HtoD") and recording.begin <= event.start < recording.end
    ]
    assert (seen["calls"] * 6, seen["idle_ns"] * 6, seen["copy_ns"] * 6, seen["covered_ns"]) == (
        pytest.approx(len(calls)),
        pytest.approx(idle),
        pytest.approx(sum(copied)),
        0,
    )


def test_the_update_of_the_parameters_waits_for_the_host(result: Result, raw: Raw) -> None:
    recording, seen = raw(COLLECTIVES), observed(result(COLLECTIVES), "GNS003")
    marks = [one for one in recording.events if one.name.startswith("Optimizer.step")]
    marks = [one for one in marks if one.category == "user_annotation"]
    kernels = idle = count = 0
    for mark in marks:
        own = [task for task in recording.tasks if task.call and mark.start <= task.call.start < mark.end]
        first, last = min(task.event.start for task in own), max(task.event.end for task in own)
        kernels, count = kernels + total(own), count + len(own)
        idle += within(recording.gaps, first, last)
    assert seen["kernels"] * 3 == count and seen["kernel_ns"] * 3 == pytest.approx(kernels, rel=1e-6)
    assert seen["host_ns"] * 3 == sum(mark.ns for mark in marks)
    assert seen["idle_ns"] * 3 == pytest.approx(idle, rel=1e-6)


CONTROL, TEST = "trace-diff/control.json.gz", "trace-diff/test.json.gz"
"""Rank 3 on A100, rank 1 on V100."""


def test_communication_and_idle_time_of_a_recommender(result: Result, raw: Raw) -> None:
    recording, seen = raw(CONTROL), result("trace-diff")
    talks = covered(task.event for task in recording.tasks if task.communicates)
    computes = covered(task.event for task in recording.tasks if not task.communicates)
    busy = covered(task.event for task in recording.tasks)
    alone, idle = observed(seen, "GCO001", rank=3), observed(seen, "GHD001", rank=3)
    assert alone["calls"] * 6 == sum(task.communicates for task in recording.tasks)
    assert alone["communication_ns"] * 6 == pytest.approx(length(talks))
    assert alone["uncovered_ns"] * 6 == pytest.approx(length(busy) - length(computes))
    assert idle["idle_ns"] * 6 == pytest.approx(length(recording.gaps))
    assert idle["gaps"] * 6 == pytest.approx(len(recording.gaps))
    assert idle["largest_gap_ns"] == max(end - start for start, end in recording.gaps)
    assert idle["host_late_ns"] * 6 == pytest.approx(sum(ns for ns, _ in recording.late()), rel=0.001)


def test_copies_to_the_host_hold_it(result: Result, raw: Raw) -> None:
    """Six copies of a step to memory that is not pinned, and the waits behind them, in `aten::to`."""
    recording, seen = raw(CONTROL), observed(result("trace-diff"), "GHD004", rank=3)
    to_host = {
        event.args["correlation"] for event in recording.events if event.name == "Memcpy DtoH (Device -> Pageable)"
    }
    inside = [one for one in recording.events if one.name == "aten::to"]
    copies = [call for call in recording.calls("cudaMemcpyAsync") if call.args["correlation"] in to_host]
    held = [
        call
        for call in (*copies, *recording.calls("cudaStreamSynchronize"))
        if any(one.thread == call.thread and one.start <= call.start < one.end for one in inside)
    ]
    busy = covered(task.event for task in recording.tasks)
    assert (seen["operator"], seen["calls"] * 6) == ("aten::to", len(held))
    assert seen["held_ns"] * 6 == pytest.approx(sum(within(busy, call.start, call.end) for call in held), rel=0.001)


def test_pauses_of_the_launching_threads(result: Result, raw: Raw) -> None:
    """Of the passages that take a millisecond and ten times as long as usual, and do not copy, the longest, 2.374 ms in
    the first backward pass, is the first of its kind: that may build caches, and is left out."""
    recording, seen = raw(CONTROL), observed(result("trace-diff"), "GHD011", rank=3)
    threads = {task.call.thread for task in recording.tasks if task.call}
    kinds = ("cpu_op", "cuda_runtime", "user_annotation")
    own = [one for one in recording.events if one.thread in threads and one.category in kinds]
    passages: dict[tuple[str, bool, str, bool], list[tuple[int, int]]] = defaultdict(list)
    for (start, _, first, ends), (end, _, then, ended) in pairwise(borders(own)):
        passages[first.name, ends, then.name, ended].append((start, end - start))
    begin, finish = recording.begin, recording.end
    often = []
    for (first, *_), found in passages.items():
        usual = median(ns for _, ns in found)
        if len(found) >= 4 and first != "cudaMemcpyAsync":
            often += [
                (ns - usual, usual, number)
                for number, (start, ns) in enumerate(found)
                if ns >= max(1_000_000, 10 * usual) and begin <= start < finish
            ]
    beyond, usual, number = max(often)
    assert (beyond + usual, number) == (2_374_000, 0)
    later = [(beyond, usual) for beyond, usual, number in often if number > 0]
    assert seen["pauses"] == len(later)
    assert (seen["longest_ns"], seen["usual_ns"]) == max(later)
    assert seen["total_ns"] * 6 == pytest.approx(sum(beyond for beyond, _ in later))


def borders(events: Iterable[Event]) -> list[tuple[int, tuple[int, int], Event, bool]]:
    """Where events begin and end, in order; at one moment as calls nest: ends, inner ones first, then what takes no
    time, then what begins, outer ones first."""
    found = []
    for number, one in enumerate(events):
        if one.ns:
            found += [(one.end, (0, -number), one, True), (one.start, (2, -one.ns), one, False)]
        else:
            found += [(one.start, (1, 2 * number), one, False), (one.start, (1, 2 * number + 1), one, True)]
    return sorted(found, key=lambda border: border[:2])


def test_products_with_odd_axes_win_no_more_than_their_bytes_leave(result: Result, raw: Raw) -> None:
    """1024 products of 647 x 30 x 96 move 345.7 MB: 222 us of 471 on an A100 of 40 GB (1.555 TB/s), which aligned
    products with as much arithmetic do not tell."""
    recording, seen = raw(CONTROL), observed(result("trace-diff"), "GSA001", rank=3)
    odd = [
        task
        for task in recording.tasks
        if task.operator == "aten::bmm" and task.operators[0].args["Input Dims"] == [[1024, 647, 96], [1024, 96, 30]]
    ]
    assert (seen["m"], seen["n"], seen["k"], seen["kernels"] * 6) == (647, 30, 96, len(odd))
    assert seen["total_ns"] * 6 == pytest.approx(total(odd))
    seconds = seen["total_ns"] / 1e9
    assert seen["tflops"] == pytest.approx(2 * 2 * 1024 * 647 * 30 * 96 / seconds / 1e12)
    moved = 2 * 1024 * (647 * 96 + 96 * 30 + 647 * 30) * 4
    assert seen["gain_ns"] == pytest.approx((seconds - moved / 1.555e12) * 1e9, rel=0.001)


def test_products_of_a_v100_are_in_fp32(result: Result, raw: Raw) -> None:
    """Those of compiled functions have no shapes, though shapes were recorded."""
    recording, seen = raw(TEST), result("trace-diff")
    single = [task for task in recording.tasks if "sgemm_" in task.name and "magma" not in task.name]
    assert observed(seen, "GNS004", rank=1)["fp32_ns"] * 6 == pytest.approx(total(single), rel=1e-6)
    assert any(event.args.get("Input Dims") for event in recording.events)
    shapes = observed(seen, "GDQ001", rank=1)
    assert shapes["shapes_asked"] and 0 < shapes["unshaped_share"] < 1


def test_traces_of_two_runs(result: Result, raw: Raw) -> None:
    first, second = raw(CONTROL), raw(TEST)
    apart = min(event.start for event in second.events) - max(event.end for event in first.events)
    assert observed(result("trace-diff"), "GDQ010")["apart_ns"] == pytest.approx(apart, rel=1e-6)
