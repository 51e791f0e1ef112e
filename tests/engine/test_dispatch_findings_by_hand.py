"""What findings say of host and communication on real recordings of NPUs, against sums over the raw files that csv and
json read."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from advisor_core.result.run import RunResult
from tests.engine.raw_traces import Span, covered_spans, length, within
from tests.once import ResultOf

LEVEL1, LEVEL0, LANES = "alexnet-ddp-text-level1", "alexnet-ddp-text-level0", "trace-view-only_ascend_pt"
CLUSTER, PIPELINE, GRAPH = "cluster-8-ranks", "gpt3-pp2-2-of-16-ranks", "mindspore-alexnet-2-ranks-msprof"

Result = Callable[[str], RunResult]


@pytest.fixture(scope="module")
def result(result_of: ResultOf, profiles: Path) -> Result:
    return cache(lambda name: result_of(profiles / "ascend" / name))


@pytest.fixture(scope="module")
def folder(profiles: Path) -> Path:
    if not (profiles / "ascend").is_dir():
        pytest.skip("no real recordings of NPUs")
    return profiles / "ascend"


def observed(result: RunResult, rule: str) -> dict[str, Any]:
    """Of the first finding of a rule."""
    return dict(next(finding.observation for finding in result.findings if finding.rule == rule))


@dataclass(frozen=True)
class Lanes:
    """Spans, ns, of the events of a trace by process, thread and name."""

    events: tuple[tuple[str, str, str, Span], ...]

    def of(self, process: str, thread: str = "", name: str = "") -> list[Span]:
        return [
            span
            for own, lane, called, span in self.events
            if own == process and thread in lane and (called == name or not name)
        ]

    def named(self, part: str) -> list[Span]:
        return [span for _, _, name, span in self.events if part in name]


def lanes(path: Path) -> Lanes:
    events = json.loads(path.read_text(), parse_float=Decimal)
    processes = {one["pid"]: one["args"]["name"] for one in events if one["name"] == "process_name"}
    threads = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
    found = []
    for one in events:
        if one["ph"] == "X":
            start = int(Decimal(one["ts"]) * 1_000)
            span = (start, start + round(Decimal(one["dur"]) * 1_000))
            found.append((processes.get(one["pid"], ""), threads.get((one["pid"], one["tid"]), ""), one["name"], span))
    return Lanes(tuple(found))


def text_export(folder: Path, name: str, rank: int) -> Lanes:
    root = (
        folder / name
        if (folder / name / "ASCEND_PROFILER_OUTPUT").is_dir()
        else folder / name / f"rank{rank}_ascend_pt"
    )
    return lanes(root / "ASCEND_PROFILER_OUTPUT" / "trace_view.json")


def gaps(spans: Iterable[Span]) -> list[Span]:
    return [(before[1], after[0]) for before, after in pairwise(covered_spans(spans))]


@pytest.mark.parametrize(("name", "rank", "count"), [(LEVEL1, 1, 90), (LEVEL0, 0, 90), (LANES, 0, 273)])
def test_idle_time_is_that_of_the_exporters_lanes(
    result: Result, folder: Path, name: str, rank: int, count: int
) -> None:
    """The lanes are rounded to ns one by one."""
    recorded, seen = text_export(folder, name, rank), observed(result(name), "HD001")
    lane = "Overlap Analysis"
    idle = gaps([*recorded.of(lane, name="Computing"), *recorded.of(lane, name="Communication")])
    assert seen["gaps"] == len(idle) == count
    assert seen["idle_ns"] == pytest.approx(length(idle), abs=20)
    assert seen["largest_gap_ns"] == pytest.approx(max(end - start for start, end in idle), abs=2)


@pytest.mark.parametrize(("name", "rank", "calls"), [(LEVEL1, 1, 19), (LANES, 0, 11)])
def test_calls_of_the_compiling_path(result: Result, folder: Path, name: str, rank: int, calls: int) -> None:
    recorded, seen = text_export(folder, name, rank), observed(result(name), "HD005")
    compiling = recorded.named("aclopCompileAndExecute")
    assert seen["calls"] == len(compiling) == calls
    assert seen["total_ns"] == pytest.approx(length(compiling), abs=20)
    assert seen["longest_ns"] == max(end - start for start, end in compiling)
    assert seen["idle_ns"] <= seen["total_ns"]


def test_tilings_outside_of_calls_that_compile(result: Result, folder: Path) -> None:
    recorded, seen = text_export(folder, LANES, 0), observed(result(LANES), "HD019")
    tilings = recorded.named("_Tiling")
    assert not [one for one in tilings if within(recorded.named("aclopCompileAndExecute"), *one)]
    assert (seen["calls"], seen["total_ns"]) == (len(tilings), pytest.approx(length(tilings), abs=20))


@pytest.mark.parametrize(("name", "rank"), [(LEVEL1, 1), (LEVEL0, 0)])
def test_what_prepares_the_calls_of_the_task_queue(result: Result, folder: Path, name: str, rank: int) -> None:
    """From the begin of an interface of the library to its entry into the queue, if the exit launches a kernel."""
    path = folder / name / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "trace_view.json"
    events = json.loads(path.read_text(), parse_float=Decimal)

    def spans(category: str) -> list[tuple[Span, dict[str, Any]]]:
        of_kind = [one for one in events if one["ph"] == "X" and one.get("cat") == category]
        starts = [int(Decimal(one["ts"]) * 1_000) for one in of_kind]
        return [
            ((start, start + round(Decimal(one["dur"]) * 1_000)), one)
            for start, one in zip(starts, of_kind, strict=True)
        ]

    copies = {(one["pid"], one["ts"]) for one in events if one["ph"] == "X" and one["name"] == "MEMCPY_ASYNC"}
    arrows = [one for one in events if one["ph"] in "sf" and one["cat"] == "HostToDevice"]
    kernels = {one["id"] for one in arrows if one["ph"] == "f" and (one["pid"], one["ts"]) not in copies}
    launched = [int(Decimal(one["ts"]) * 1_000) for one in arrows if one["ph"] == "s" and one["id"] in kernels]
    launching = {
        one["args"]["correlation_id"]
        for (start, end), one in spans("dequeue")
        if any(start <= time <= end for time in launched)
    }
    operators, prepared = spans("cpu_op"), []
    for (entered, _), entry in spans("enqueue"):
        around = [
            (span, one) for span, one in operators if one["tid"] == entry["tid"] and span[0] <= entered <= span[1]
        ]
        if entry["args"]["correlation_id"] in launching and around:
            (begun, _), operator = max(around, key=lambda found: found[0][0])
            if operator["name"].startswith("aclnn"):
                prepared.append(entered - begun)
    seen = observed(result(name), "HD021")
    assert (seen["calls"], seen["level"]) == (len(prepared), 2)
    assert seen["handed_over_ns"] == pytest.approx(sum(prepared), abs=100)
    assert 0 < seen["saved_ns"] <= seen["handed_over_ns"]


def test_waits_for_a_rank_that_was_not_recorded(result: Result, folder: Path) -> None:
    """The longest wait of the planes, less what computing hides of it; others wait beside it on other planes."""
    recorded = text_export(folder, LEVEL1, 0)
    late = observed(result(LEVEL1), "CO002")
    waits = recorded.of("HCCL", "Plane 5", "Notify_Wait")
    longest = max(waits, key=lambda span: span[1] - span[0])
    computing = covered_spans(recorded.of("Overlap Analysis", name="Computing"))
    uncovered = longest[1] - longest[0] - within(computing, *longest)
    assert late["late"] == "rank 5"
    assert late["longest_ns"] == pytest.approx(uncovered, rel=0.001)
    assert late["wait_ns"] <= sum(end - start for start, end in waits)


def step_trace(path: Path) -> dict[str, dict[str, float]]:
    """Rank to columns of the summary of a cluster, ns."""
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["Type"] == "rank"]
    columns = ("Computing", "Communication(Not Overlapped)", "Free", "Bubble")
    return {row["Index"]: {name: float(row[name]) * 1_000 for name in columns} for row in rows}


def test_ranks_of_which_only_sums_are_recorded(result: Result, folder: Path) -> None:
    """Rank 1 communicates least; rank 6 next."""
    sums = step_trace(folder / CLUSTER / "cluster_analysis_output" / "cluster_step_trace_time.csv")
    bare = {rank: one["Communication(Not Overlapped)"] for rank, one in sums.items()}
    first, second = sorted(bare.values())[:2]
    seen, idle = observed(result(CLUSTER), "CO015"), observed(result(CLUSTER), "HD001")
    assert bare["1"] == first and seen["late"] == 1
    assert seen["longest_wait_ns"] == pytest.approx(max(bare.values()) - first, abs=10)
    assert seen["wait_ns"] == pytest.approx(mean(bare[rank] for rank in bare if rank != "1") - first, abs=10)
    assert seen["saveable_ns"] == pytest.approx(second - first, abs=10)
    assert idle["idle_ns"] == pytest.approx(max(one["Free"] for one in sums.values()), abs=10)


def test_the_bubble_of_a_pipeline_and_its_reserved_memory(result: Result, folder: Path) -> None:
    sums = step_trace(folder / PIPELINE / "cluster_analysis_output" / "cluster_step_trace_time.csv")
    seen, memory = observed(result(PIPELINE), "CO008"), observed(result(PIPELINE), "ME002")
    worst = max(sums.values(), key=lambda one: one["Bubble"])
    assert seen["wait_ns"] == pytest.approx(worst["Bubble"], abs=10)
    wall = worst["Computing"] + worst["Communication(Not Overlapped)"] + worst["Free"]
    assert seen["wait_share"] == pytest.approx(worst["Bubble"] / wall)
    output = folder / PIPELINE / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT"
    with (output / "memory_record.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["Component"] == "PTA"]
    allocated, reserved = (
        max(float(row[f"Total {name}(MB)"]) for row in rows) * 2**20 for name in ("Allocated", "Reserved")
    )
    assert (memory["allocated_bytes"], memory["reserved_bytes"]) == (pytest.approx(allocated), pytest.approx(reserved))


def test_a_file_of_another_time_is_left_out(result: Result, folder: Path) -> None:
    """The first sample of npu_module_mem.csv is 11 months younger than the first kernel."""
    seen = observed(result(PIPELINE), "DQ016")
    assert seen["file"].endswith("npu_module_mem.csv") and seen["withheld"] and not seen["itself"]
    finding = next(one for one in result(PIPELINE).findings if one.rule == "DQ016")
    assert "off by" not in finding.title.en + finding.why.en


def test_only_the_backward_pass_hides_gradients(result: Result, folder: Path) -> None:
    """A graph of MindSpore: 4.3 ms before the one AllReduce, 2.5 ms of them named gradients. Cut in two, the first part
    can be sent when half of the gradients are there, and lasts longer than the other half."""
    seen = observed(result(GRAPH), "CO003")
    shorter = []
    for path in sorted((folder / GRAPH).glob("PROF_*/mindstudio_profiler_output/msprof_*.json")):
        recorded = lanes(path)
        kernels = [
            one for one in recorded.events if one[0] == "Ascend Hardware" and one[2].startswith(("Default", "Grad"))
        ]
        reduces = min(start for _, _, name, (start, _) in recorded.events if name.startswith("Default/AllReduce"))
        begins = min(start for _, _, name, (start, _) in kernels if name.startswith("Gradients/"))
        computing = covered_spans(span for _, _, _, span in kernels)
        shorter.append(within(computing, begins, reduces) / 2)
    assert any(seen["hideable_ns"] == pytest.approx(half, rel=0.02) for half in shorter)
