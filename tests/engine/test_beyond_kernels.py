"""What a recording without step marks holds beside what is judged, against the raw file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions


def test_weights_are_copied_before_the_first_kernel(profiles: Path) -> None:
    """30 s in which the process starts the GPU, and 16 copies of weights; the profiler's own span is no part of it."""
    path = profiles / "kineto" / "alexnet-a100.json.gz"
    trace = json.loads(gzip.decompress(path.read_bytes()))
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X" and event["cat"] != "Trace"]
    kernels = [event for event in events if event["cat"] == "kernel"]
    first = min(event["ts"] for event in kernels)
    last = max(event["ts"] + event["dur"] for event in kernels)
    (step,) = run([path], RunOptions(), jobs=1).profile.steps
    assert step.recorded_before_ns == pytest.approx((first - min(event["ts"] for event in events)) * 1_000, abs=2_000)
    ended = max(event["ts"] + event["dur"] for event in events)
    assert step.recorded_after_ns == pytest.approx((ended - last) * 1_000, abs=2_000)
    copied = [event["dur"] for event in events if event["cat"] == "gpu_memcpy"]
    assert len(copied) == 16 and step.copied_beside_ns == sum(copied) * 1_000 == 55_503_000
    assert step.mark_ns is None


@pytest.mark.parametrize("name", ["bert-small-h100.json.gz", "resnet50-workers-0"])
def test_of_marked_steps_the_mark_tells_it(profiles: Path, name: str) -> None:
    for step in run([profiles / "kineto" / name], RunOptions(), jobs=1).profile.steps:
        assert step.recorded_before_ns is step.recorded_after_ns is step.copied_beside_ns is None


def test_without_calls_of_the_host_nothing_is_known(profiles: Path) -> None:
    for step in run([profiles / "ascend" / "cluster-8-ranks"], RunOptions(), jobs=1).profile.steps:
        assert step.recorded_before_ns is None
