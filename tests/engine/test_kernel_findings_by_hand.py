"""What findings say of the kernels of real recordings, against sums over the raw files that csv and json read."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from advisor_core.result.run import RunResult
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions

NS_PER_US = 1_000


@pytest.fixture(scope="module")
def result(profiles: Path) -> Callable[[str], RunResult]:
    @cache
    def of(name: str) -> RunResult:
        return run([profiles / name], RunOptions(), jobs=1)

    return of


def observed(result: RunResult, rule: str) -> dict[str, Any]:
    """Of the first finding of a rule."""
    return dict(next(finding.observation for finding in result.findings if finding.rule == rule))


@cache
def kernels(path: Path) -> list[tuple[str, str, float]]:
    """Of a trace of PyTorch's profiler the name, the operator (by the id that both have) and the duration, us, of each
    kernel."""
    raw = path.read_bytes()
    trace = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    operators = {
        event["args"]["External id"]: event["name"]
        for event in events
        if event.get("cat", "").lower() in ("cpu_op", "operator") and "External id" in event.get("args", {})
    }
    return [
        (event["name"], operators.get(event["args"].get("External id"), ""), float(event["dur"]))
        for event in events
        if event.get("cat", "").lower() == "kernel"
    ]


def rows(path: Path) -> list[tuple[str, str, float]]:
    """Type, inputs (shapes and types) and duration, us, of each row of kernel_details.csv."""
    with path.open() as file:
        return [
            (
                row["Type"],
                f"{row['Input Shapes']} {row['Input Data Types']}".replace('"', ""),
                float(row["Duration(us)"]),
            )
            for row in csv.DictReader(file)
        ]


def total_ns(durations_us: list[float], steps: int = 1) -> float:
    return sum(durations_us) * NS_PER_US / steps


def test_convolutions_of_a_v100(profiles: Path, result: Callable[[str], RunResult]) -> None:
    """Less the conversions and the zeros that the operators launch besides, 0.3 of 60.3 ms."""
    name = "kineto/ns-resolution-v100.json.gz"
    raw = total_ns([us for _, operator, us in kernels(profiles / name) if "convolution" in operator], steps=5)
    assert observed(result(name), "GNS006")["total_ns"] == pytest.approx(raw, rel=0.01)


def test_conversions_between_channel_orders_of_an_a100(profiles: Path, result: Callable[[str], RunResult]) -> None:
    name = "kineto/nccl-collectives-a100.json.gz"
    found = [us for kernel, *_, us in kernels(profiles / name) if "nchwToNhwc" in kernel or "nhwcToNchw" in kernel]
    seen = observed(result(name), "GNS005")
    assert seen["kernels"] * 3 == len(found)
    assert seen["total_ns"] == pytest.approx(total_ns(found, steps=3), rel=1e-6)


def test_products_of_a_prefill_on_a_gpu_of_amd(profiles: Path, result: Callable[[str], RunResult]) -> None:
    name = "kineto/sglang_Qwen3-8B_prefilldecode.json.gz"
    found = [us for _, operator, us in kernels(profiles / name) if operator == "aten::mm"]
    seen = observed(result(name), "GPB001")
    assert (seen["operator"], seen["kernels"]) == ("aten::mm", len(found))
    assert seen["total_ns"] == pytest.approx(total_ns(found), rel=1e-6)


def test_format_conversions_and_sgd_of_alexnet(profiles: Path, result: Callable[[str], RunResult]) -> None:
    name = "ascend/alexnet-ddp-text-level1"
    listed = rows(profiles / name / "rank0_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv")
    converted = [us for kind, _, us in listed if kind == "TransData"]
    seen = observed(result(name), "NS003")
    assert seen["kernels"] == len(converted)
    assert seen["total_ns"] == pytest.approx(total_ns(converted), rel=1e-6)
    updates = [us for kind, _, us in listed if kind.startswith("Foreach")]
    assert observed(result(name), "NS016")["chain_ns"] == pytest.approx(total_ns(updates), rel=1e-6)


def test_norms_casts_and_products_of_gpt3(profiles: Path, result: Callable[[str], RunResult]) -> None:
    """The norms of 28 gradients are three kernels each, and what adds them up. The casts are those that no other
    finding speaks of; the largest are of one size."""
    name = "ascend/gpt3-kernel-details-only_ascend_pt"
    (path,) = (profiles / name).rglob("kernel_details.csv")
    listed = rows(path)
    seen = observed(result(name), "NS046")
    norms = [us for kind, _, us in listed if kind in ("LpNormReduceV2", "LpNormUpdateV2", "Square")]
    assert (seen["gradients"], len(norms)) == (28, 84)
    assert total_ns(norms) < seen["norm_time_ns"] < 1.05 * total_ns(norms)
    casts = [us for kind, _, us in listed if kind == "Cast"]
    cast = observed(result(name), "NS005")
    assert cast["kernels"] <= len(casts) and cast["total_ns"] <= total_ns(casts)
    largest = [us for kind, reads, us in listed if (kind, reads) == ("Cast", "75497472 FLOAT")]
    assert cast["largest_ns"] == pytest.approx(total_ns(largest), rel=1e-6)
    products = [us for kind, _, us in listed if kind in ("MatMul", "BatchMatMul")]
    assert observed(result(name), "NS001")["hot_ns"] == pytest.approx(total_ns(products), rel=1e-6)
