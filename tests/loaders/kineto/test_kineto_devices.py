"""`advisor run` from a written trace to report.json: a job that replays CUDA graphs, and a training step on ROCm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from advisor_core.cli.main import cli
from advisor_core.facts.context import context
from advisor_core.facts.host.launches import launches
from advisor_core.facts.steps.steps import steps
from advisor_core.run.prepared import installed_host
from advisor_core.run.rank import fact_store
from tests.loaders.kineto.build import Recording, load

STEPS = 4
STEP_US = 2_000.0
MI300 = {"id": 0, "name": "AMD Instinct MI300X", "totalGlobalMem": 192 << 30, "warpSize": 64, "numSms": 304}
OF_ROCM = {"schemaVersion": 1, "roctracer_version": 4.1, "hip_runtime_version": 70051831, "deviceProperties": [MI300]}


def report_of(made: Recording, folder: Path) -> dict[str, Any]:
    """What ``advisor run`` writes about a trace."""
    path = made.write(folder / "trace.pt.trace.json")
    done = CliRunner().invoke(cli, ["run", str(path), "-o", str(folder / "report")])
    assert done.exit_code == 0, done.output
    report: dict[str, Any] = json.loads((folder / "report" / "report.json").read_text(encoding="utf-8"))
    return report


def about(folder: Path) -> Mapping[str, Any]:
    """What the trace tells of its job."""
    return fact_store(installed_host(), load(folder / "trace.pt.trace.json"))[context]


def booked(report: dict[str, Any]) -> dict[str, float]:
    """us per leaf of the ledger, all steps together."""
    found: dict[str, float] = {}
    for step in report["ledger"]:
        for entry in step["entries"]:
            found[entry["path"]] = found.get(entry["path"], 0) + entry["ns"] / 1e3
    return found


def finding(report: dict[str, Any], rule: str) -> dict[str, Any]:
    (found,) = [one for one in report["findings"] if one["rule"] == rule]
    return dict(found)


def states(report: dict[str, Any]) -> dict[str, str]:
    return {one["rule"]: one["state"] for one in report["rules"]}


def advice(found: dict[str, Any]) -> str:
    return " ".join(one["text"]["en"] for one in found["advice"])


KERNELS = ("flash_fwd_splitkv_kernel", "ampere_sgemm_64x64_nn", "vectorized_elementwise_kernel<MulFunctor>")
REPLAYED = 12


def decode(*, graph: bool = True) -> Recording:
    """Decode steps of 12 kernels of 50 us, with 5 us between two, which one launch replays 300 us into the step and
    which begin 20 us after it; then the host is in Python. Without a graph each kernel has a launch of its own."""
    made = Recording()
    for step in range(STEPS):
        start = STEP_US * step
        made.step(step + 1, start, STEP_US - 10)
        call = 1_000 * step + 1
        if graph:
            made.operator("aten::empty", start + 280, 60, call).call("cudaGraphLaunch", start + 300, 10, call)
        for number in range(REPLAYED):
            begins = start + 320 + 55 * number
            kernel = KERNELS[number % len(KERNELS)]
            if graph:
                made.task(kernel, begins, 50, call, **{"graph node id": number + 1, "External id": call})
            else:
                made.launch(kernel, begins - 22, begins, 50, call + number, f"aten::op{number % len(KERNELS)}")
    return made


def test_the_launch_of_a_graph_is_the_launch_of_each_of_its_kernels(tmp_path: Path) -> None:
    path = decode().write(tmp_path / "trace.json")
    store = fact_store(installed_host(), load(path))
    frame = store[launches].frame
    assert len(frame) == STEPS * REPLAYED == int((frame["siblings"] == REPLAYED).sum())
    launched = frame["launch_ns"].to_numpy().reshape(STEPS, REPLAYED)
    assert (launched == launched[:, :1]).all() and len(set(launched[:, 0].tolist())) == STEPS
    assert len(store[steps]) == STEPS


def test_a_job_that_replays_cuda_graphs(tmp_path: Path) -> None:
    """Idle time between the kernels of a graph is the device's; up to the launch of the graph it is the host's."""
    report = report_of(decode(), tmp_path)
    leaves = booked(report)
    assert sum(ns for path, ns in leaves.items() if path.startswith("compute/")) == STEPS * REPLAYED * 50
    assert leaves["compute/attention"] == leaves["compute/matmul"] == leaves["compute/elementwise"] == STEPS * 4 * 50
    # 11 gaps of 5 us in each graph, and 20 us before each but the first, with which the first step begins
    assert leaves["idle/launch_latency"] == STEPS * 11 * 5 + (STEPS - 1) * 20
    late = sum(ns for path, ns in leaves.items() if path.startswith(("idle/host/", "idle/step_boundary")))
    assert late == (STEPS - 1) * (STEP_US - (320 + 11 * 55 + 50) + 300)
    assert "idle/task_switch" not in leaves and "idle/unknown" not in leaves
    assert about(tmp_path)["graph_mode"] is True
    assert "captur" not in advice(finding(report, "GHD002")).lower(), "graphs are captured already"


def test_the_same_kernels_launched_one_by_one_are_told_to_be_captured(tmp_path: Path) -> None:
    report = report_of(decode(graph=False), tmp_path)
    assert about(tmp_path)["graph_mode"] is False
    assert "captur" in advice(finding(report, "GHD002")).lower()


def rocm_training() -> Recording:
    """Steps of a product and an elementwise kernel of 300 us each; the loss is read behind the first, the host stands
    still for 200 us more, and an all-reduce of 400 us, launched with the second kernel, is covered for 300 us."""
    made = Recording(dict(OF_ROCM))
    for step in range(STEPS):
        start, first = STEP_US * step, 100 * step + 1
        made.step(step + 1, start, STEP_US - 10)
        made.operator("aten::mm", start + 100, 20, first).call("hipExtModuleLaunchKernel", start + 105, 5, first)
        made.task("Cijk_Ailk_Bljk_BBS_BH_MT128x128x32", start + 120, 300, first, **{"External id": first})
        made.operator("aten::item", start + 130, 500, first + 1)
        made.call("hipMemcpyWithStream", start + 140, 480, first + 1)
        made.task("CopyDeviceToHost", start + 425, 5, first + 1, cat="gpu_memcpy", **{"External id": first + 1})
        made.operator("aten::mul", start + 800, 20, first + 2).call("hipLaunchKernel", start + 805, 5, first + 2)
        kernel = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>>"
        made.task(kernel, start + 820, 300, first + 2, **{"External id": first + 2})
        made.operator("record_param_comms", start + 830, 20, first + 3, **ALL_REDUCE)
        made.call("hipExtLaunchKernel", start + 835, 5, first + 3)
        made.task("ncclDevKernel_Generic_2(ncclDevKernelArgsStorage<4096ul>)", start + 850, 370, first + 3, stream=20,
            **{"External id": first + 3})  # fmt: skip
        made.event("user_annotation", "Optimizer.step#AdamW.step", start + 900, 10)
    return made


ALL_REDUCE = {"Collective name": "allreduce", "In msg nelems": 1_000_000, "dtype": "Float", "Group size": 2}


def test_a_training_step_on_rocm(tmp_path: Path) -> None:
    report = report_of(rocm_training(), tmp_path)
    leaves = booked(report)
    assert leaves["compute/matmul"] == leaves["compute/elementwise"] == STEPS * 300
    communication = sum(ns for path, ns in leaves.items() if path.startswith("communication/"))
    assert communication == STEPS * 100
    # The call goes on for 200 us after the kernel that held it for 280 us; of these the host needs 185 us up to its
    # next launch, and the rest of them, 95 us, after the all-reduce.
    assert leaves["idle/sync"] == STEPS * (200 + 185) + (STEPS - 1) * 95
    assert "idle/host/copy" not in leaves
    told = about(tmp_path)
    assert (told["amd"], told["kind"], told["graph_mode"], told["compute_capability"]) == (
        True,
        "training",
        False,
        None,
    )


def test_findings_on_rocm_are_for_amd(tmp_path: Path) -> None:
    report = report_of(rocm_training(), tmp_path)
    assert finding(report, "GHD001")["severity"] == "high"
    synchronises = finding(report, "GHD004")
    assert "aten::item" in synchronises["title"]["en"] and synchronises["severity"] == "high"
    assert not [rule for rule, state in states(report).items() if state == "error"]
    told = " ".join(advice(found) for found in report["findings"])
    for of_nvidia in ("nvidia-smi", "NVIDIA_TF32_OVERRIDE", "CUDA_LAUNCH_BLOCKING"):
        assert of_nvidia not in told
    of_ascend = [found["rule"] for found in report["findings"] if not found["rule"].startswith("G")]
    assert of_ascend == []
