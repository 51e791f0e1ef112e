"""What findings say of the kernels of real recordings, against sums over the raw files that csv and json read."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from advisor_core.result.run import RunResult
from tests.once import ResultOf

NS_PER_US = 1_000


@pytest.fixture(scope="module")
def result(result_of: ResultOf, profiles: Path) -> Callable[[str], RunResult]:
    @cache
    def of(name: str) -> RunResult:
        return result_of(profiles / name)

    return of


def observed(result: RunResult, rule: str) -> dict[str, Any]:
    """Of the first finding of a rule."""
    return dict(next(finding.observation for finding in result.findings if finding.rule == rule))


@lru_cache(1)
def kernels(path: Path) -> list[tuple[str, str, float]]:
    """Of a trace of PyTorch's profiler the name, the operator (by the id that both have) and the duration, us, of each
    kernel."""
    raw = path.read_bytes()
    trace = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X"]
    operators = {
        _external_id(event): event["name"]
        for event in events
        if event.get("cat", "").lower() in ("cpu_op", "operator") and _external_id(event) is not None
    }
    return [
        (event["name"], operators.get(_external_id(event), ""), float(event["dur"]))
        for event in sorted(events, key=lambda event: float(event["ts"]))
        if event.get("cat", "").lower() == "kernel"
    ]


def _external_id(event: dict[str, Any]) -> int | None:
    """Spelled in two ways within one trace of PyTorch 1.9."""
    found = {str(name).lower(): value for name, value in event.get("args", {}).items()}.get("external id")
    return None if found is None else int(found)


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
    widest = sorted(found)[-36:]  # of gate and up, one in each layer
    seen = observed(result(name), "GPB003")
    assert (seen["m"], seen["n"], seen["k"], seen["kernels"]) == (15360, 24576, 4096, 36)
    assert seen["total_ns"] == pytest.approx(total_ns(widest), rel=1e-6)
    flops = 36 * 2 * 15360 * 24576 * 4096
    assert seen["tflops"] == pytest.approx(flops / total_ns(widest) / 1e3, rel=1e-6)
    assert seen["efficiency"] == pytest.approx(flops / total_ns(widest) / 1e3 / (304 * 2048 * 2100e6 / 1e12), rel=1e-6)


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


def test_regions_and_the_head_of_bert(profiles: Path, result: Callable[[str], RunResult]) -> None:
    """Eight times in four layers a sum stands before the norm that reads it; rows of 30522 are no multiple of 8."""
    name = "kineto/bert-small-h100.json.gz"
    listed = [(operator, us) for _, operator, us in kernels(profiles / name)]
    beside = [
        first_us + us
        for (first, first_us), (operator, us) in pairwise(listed)
        if (first, operator) == ("aten::add", "aten::native_layer_norm")
    ]
    seen = observed(result(name), "GNS008")
    assert (seen["regions"], len(beside), seen["of_layers"]) == (8, 8, 4)
    assert seen["region_ns"] == pytest.approx(total_ns(beside), rel=1e-6)
    head = max(us for operator, us in listed if operator == "aten::addmm")
    assert observed(result(name), "GSA001")["total_ns"] == pytest.approx(total_ns([head]), rel=1e-6)


def test_small_kernels_between_products_of_a_prefill(profiles: Path, result: Callable[[str], RunResult]) -> None:
    """All that stands between two products or attentions, where it is more than one kernel: but for a few kernels of
    numbers before the first layer."""
    name = "kineto/sglang_Qwen3-8B_prefilldecode.json.gz"
    runs: list[list[float]] = [[]]
    for _, operator, us in kernels(profiles / name):
        if operator in ("aten::mm", "aiter::mha_batch_prefill"):
            runs.append([])
        else:
            runs[-1].append(us)
    found = [us for run in runs if len(run) > 1 for us in run]
    seen = observed(result(name), "GNS001")
    assert len(found) - 5 < seen["kernels"] <= len(found)
    assert seen["chain_ns"] == pytest.approx(total_ns(found), rel=0.01) and seen["chain_ns"] <= total_ns(found)


def test_updates_and_convolutions_of_resnet(profiles: Path, result: Callable[[str], RunResult]) -> None:
    """Of SGD each of 161 weights has three kernels in a row. Convolutions less the zeros that they launch."""
    name = "kineto/resnet50-workers-0"
    seen = result(name)
    updates, convolutions, fp32 = observed(seen, "GNS011"), observed(seen, "GNS006"), observed(seen, "GNS004")
    near = []
    for path in sorted((profiles / name).glob("*.json.gz")):
        listed = kernels(path)
        names = [operator for _, operator, _ in listed]
        firsts = [
            place
            for place in range(len(names) - 2)
            if names[place : place + 3] == ["aten::mul_", "aten::add_", "aten::add_"]
        ]
        raw = total_ns([listed[place + next_one][2] for place in firsts for next_one in range(3)], steps=6)
        near.append(updates["chain_ns"] == pytest.approx(raw, rel=1e-6))
        convolved = total_ns([us for _, operator, us in listed if "convolution" in operator], steps=6)
        products = total_ns([us for _, operator, us in listed if operator in ("aten::mm", "aten::addmm")], steps=6)
        assert updates["chains"] * 6 == len(firsts)
        assert convolutions["total_ns"] == pytest.approx(convolved, rel=0.01)
        assert fp32["fp32_ns"] == pytest.approx(convolved + products, rel=0.01)
    assert any(near), "of one of the two ranks"


def test_collectives_in_the_layers_of_gpt3(profiles: Path, result: Callable[[str], RunResult]) -> None:
    """Two layers reduce twice each, between their products; no kernel runs beside the waiting."""
    name = "ascend/gpt3-kernel-details-only_ascend_pt"
    (path,) = (profiles / name).rglob("kernel_details.csv")
    with path.open() as file:
        listed = [
            (row["Name"], round(float(row["Start Time(us)"]) * 1e3), float(row["Duration(us)"]) * 1e3)
            for row in csv.DictReader(file)
        ]
    collectives = [one for one in listed if one[0].startswith("hcom_allReduce__445_") and one[0][-1] in "3456"]
    computing = sorted((start, start + ns) for name, start, ns in listed if not name.startswith("hcom_"))
    uncovered = 0.0
    for _, start, ns in collectives:
        at = start  # neighbours do not overlap, so that what is left of each goes on behind the one before
        for begin, end in computing:
            if end > at and begin < start + ns:
                uncovered += max(0.0, begin - at)
                at = max(at, end)
        uncovered += max(0.0, start + ns - at)
    seen = observed(result(name), "CO022")
    assert (seen["calls"], seen["layers"]) == (len(collectives), 2) == (4, 2)
    assert seen["uncovered_ns"] == pytest.approx(uncovered, rel=1e-4)


def test_operators_that_take_longer_on_the_host(profiles: Path, result: Callable[[str], RunResult]) -> None:
    name = "ascend/alexnet-ddp-text-level1"
    seen = observed(result(name), "HD003")
    with (profiles / name / "rank1_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "operator_details.csv").open() as file:
        calls = [row for row in csv.DictReader(file) if row["Name"] == seen["operator"]]
    for column, found in (("Host", seen["operator_host_ns"]), ("Device", seen["operator_device_ns"])):
        total = total_ns([float(row[f"{column} Total Duration(us)"]) for row in calls])
        assert found == pytest.approx(total / len(calls), rel=1e-6)
    assert (seen["operator"], seen["operator_calls"]) == ("aten::conv2d", len(calls))
