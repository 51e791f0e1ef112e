"""The real Kineto traces: busy, idle and overlapping time as computed here from the events of each file alone."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from advisor_core.result.run import LedgerStep, RunResult
from tests.once import ResultOf

TRACES = [
    "bert-small-h100.json.gz",
    "nccl-collectives-a100.json.gz",
    "vllm-prefill-decode-graph.json.gz",
    "resnet50-workers-0/worker0.1623143089861.pt.trace.json.gz",
    "resnet50-workers-0/worker0.1623143566756.pt.trace.json.gz",
    "resnet50-workers-4/worker0.1623212756351.pt.trace.json.gz",
    "resnet50-workers-4/worker0.1623213129365.pt.trace.json.gz",
    "sglang_Qwen3-8B_prefilldecode.json.gz",
    "alexnet-a100.json.gz",
    "trace-diff/control.json.gz",
    "trace-diff/test.json.gz",
    "ns-resolution-v100.json.gz",
]
# Kernels [us] before the device had done the work of before the recording (GDQ012): one of 3.485 us, then 493.28 ms
# in which the recording has nothing of the device. No step holds them.
BEFORE_BACKLOG = {"sglang_Qwen3-8B_prefilldecode.json.gz": (3.485, 493_287.2)}
TOLERANCE = 0.005
WORK = {"kernel", "gpu_memset", "memset"}


@pytest.fixture(scope="module")
def kineto(profiles: Path) -> Path:
    folder = profiles.parent / "kineto"
    if not folder.is_dir():
        pytest.skip(f"no real traces at {folder}")
    return folder


def spans(path: Path) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Start and end [us] of what computes and of what communicates on the busiest device."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    found: dict[Any, list[list[tuple[float, float]]]] = defaultdict(lambda: [[], []])
    for event in events:
        category, name = str(event.get("cat")).lower(), str(event.get("name"))
        if event.get("ph") == "X" and (category in WORK or name.startswith("Memcpy DtoD")):
            end = event["ts"] + event["dur"]
            found[event["args"].get("device")]["nccl" in name].append((event["ts"], end))
    busiest = max(found.values(), key=lambda lanes: sum(end - start for lane in lanes for start, end in lane))
    return busiest[0], busiest[1]


def merged(lane: list[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for start, end in sorted(lane):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def total(lane: list[tuple[float, float]]) -> float:
    return sum(end - start for start, end in merged(lane))


def booked(ledger: list[LedgerStep], path: str) -> float:
    """us under a path of the ledger, in all steps together."""
    return sum(entry.ns for step in ledger for entry in step.entries if entry.path.startswith(path)) / 1e3


def overlapped(ledger: list[LedgerStep]) -> float:
    entries = [entry for step in ledger for entry in step.entries]
    return sum(int(entry.detail.get("overlapped_communication_ns", 0)) for entry in entries) / 1e3


SEARCHED = (
    "resnet50-workers-0/worker0.1623143089861",
    "resnet50-workers-4/worker0.1623212756351",
    "trace-diff/control",
)
"""Each is one of two that were recorded alike; the search takes both."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.search if name.startswith(SEARCHED) else ()) for name in TRACES]
)
def test_busy_idle_and_overlap(result_of: ResultOf, kineto: Path, name: str) -> None:
    computing, communicating = spans(kineto / name)
    result: RunResult = result_of(kineto / name)
    (first, *_), last = result.profile.steps, result.profile.steps[-1]
    wall = (last.end_ns - first.start_ns) / 1e3
    everything = sorted(computing + communicating)
    if name in BEFORE_BACKLOG:
        (begun, ended), (then, _) = everything[:2]
        assert (ended - begun, then - begun) == pytest.approx(BEFORE_BACKLOG[name], abs=0.1)
        computing.remove(everything.pop(0))
    # the steps hold all else that the device did in these traces
    assert max(end for _, end in everything) - min(start for start, _ in everything) == pytest.approx(
        wall, rel=TOLERANCE
    )
    both = total(computing) + total(communicating) - total(everything)
    for ours, raw in (
        (booked(result.ledger, "compute/"), total(computing)),
        (booked(result.ledger, "communication/"), total(communicating) - both),
        (overlapped(result.ledger), both),
        (booked(result.ledger, "idle/"), wall - total(everything)),
    ):
        assert ours == pytest.approx(raw, rel=TOLERANCE, abs=1e-6 * wall)


@pytest.mark.parametrize(("span", "loader_ms"), [(1623143089861, 415.8), (1623143566756, 272.8)])
def test_time_of_the_data_loader(result_of: ResultOf, kineto: Path, span: int, loader_ms: float) -> None:
    """With no workers the loader runs on the thread that feeds the device: all of its time in which the device is idle
    is booked to it, and nothing but that."""
    result = result_of(kineto / "resnet50-workers-0" / f"worker0.{span}.pt.trace.json.gz")
    waited = booked(result.ledger, "idle/host/dataloader") / 1e3
    assert 0.5 * loader_ms < waited < loader_ms
    leaves: dict[str, int] = defaultdict(int)
    for step in result.ledger:
        for entry in step.entries:
            leaves[entry.path] += entry.ns if entry.path.startswith("idle/") else 0
    assert max(leaves, key=leaves.__getitem__) == "idle/host/dataloader"


def test_what_the_loader_costs_agrees_with_the_recording_without_it(result_of: ResultOf, kineto: Path) -> None:
    """The steps of the steady span, less what is booked to the loader, last as long as those with four workers."""
    steps = {}
    for workers in (0, 4):
        ledger = result_of(kineto / f"resnet50-workers-{workers}").ledger
        steps[workers] = sum(step.wall_ns for step in ledger) / len(ledger), booked(ledger, "idle/host/dataloader")
    without = steps[0][0] - steps[0][1] * 1e3 / 6
    assert without == pytest.approx(steps[4][0], rel=0.2)
    assert steps[4][1] < 0.1 * steps[0][1]
