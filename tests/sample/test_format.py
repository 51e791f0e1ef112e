"""Details of the text format that readers trip over, as they are in real exports."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from advisor_core.sample import Scenario
from tests.sample.export import Export
from tests.sample.small import small

KERNEL_HEADER = (
    "Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Block Dim,Mix Block Dim,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,"
    "Output Formats,Context ID,aicore_time(us),aic_total_cycles,aic_mac_time(us),aic_mac_ratio,aic_scalar_time(us),"
    "aic_scalar_ratio,aic_mte1_time(us),aic_mte1_ratio,aic_mte2_time(us),aic_mte2_ratio,aic_fixpipe_time(us),"
    "aic_fixpipe_ratio,aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),aiv_vec_ratio,"
    "aiv_scalar_time(us),aiv_scalar_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_mte3_time(us),aiv_mte3_ratio,"
    "aiv_icache_miss_rate,cube_utilization(%)"
)
HEADERS = {
    "kernel_details.csv": (KERNEL_HEADER, "\r\n"),
    "step_trace_time.csv": (
        "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
        "Communication(Not Overlapped and Exclude Receive),Preparing",
        "\r\n",
    ),
    "operator_memory.csv": (
        "Name,Size(KB),Allocation Time(us),Release Time(us),Active Release Time(us),Duration(us),Active Duration(us),"
        "Allocation Total Allocated(MB),Allocation Total Reserved(MB),Allocation Total Active(MB),"
        "Release Total Allocated(MB),Release Total Reserved(MB),Release Total Active(MB),Stream Ptr,Device Type",
        "\r\n",
    ),
    "memory_record.csv": (
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Total Active(MB),Stream Ptr,Device Type",
        "\r\n",
    ),
    "npu_module_mem.csv": ("Component,Timestamp(us),Total Reserved(MB),Device", "\n"),
    "op_statistic.csv": (
        "OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)",
        "\n",
    ),
    "api_statistic.csv": ("Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance", "\n"),
    "operator_details.csv": (
        "Name,Input Shapes,Call Stack,Host Self Duration(us),Host Total Duration(us),Device Self Duration(us),"
        "Device Total Duration(us),Device Self Duration With AICore(us),Device Total Duration With AICore(us)",
        "\n",
    ),
}
WITH_DEVICE = {"step_trace_time.csv", "op_statistic.csv", "api_statistic.csv"}

Samples = Callable[[str | Scenario], list[Export]]


@pytest.mark.parametrize("name", HEADERS)
def test_tables_have_the_columns_and_line_ends_of_real_exports(sample: Samples, name: str) -> None:
    header, line_end = HEADERS[name]
    for scenario in ("transformer-training", "healthy-training-single"):
        raw = (sample(scenario)[0].output / name).read_bytes().decode()
        assert raw.startswith(header + line_end)
    newer = header
    if name in WITH_DEVICE:
        newer = f"Device_id,{header}"
    elif name == "kernel_details.csv":
        newer = header.replace("Step Id,", "Step Id,Device_id,")
    assert (sample("healthy-training")[0].output / name).read_bytes().decode().startswith(newer + line_end)


def test_rows_are_complete(exports: list[Export]) -> None:
    for export in exports:
        for path in export.output.glob("*.csv"):
            rows = export.table(path.name)
            assert rows
            assert all(None not in row and None not in row.values() for row in rows)


def test_time_stamps_are_exact_strings(exports: list[Export]) -> None:
    pattern = re.compile(r"\d{16}\.\d{3}")
    for export in exports:
        for event in export.trace:
            if event["ph"] != "M":
                assert pattern.fullmatch(event["ts"])
        assert all(row["Start Time(us)"].endswith("\t") for row in export.kernels)
        assert all(row["Allocation Time(us)"].endswith("\t") for row in export.table("operator_memory.csv"))
        assert all(row["Timestamp(us)"].endswith("\t") for row in export.table("memory_record.csv"))


def test_the_trace_is_a_list_with_the_lanes_of_real_exports(exports: list[Export]) -> None:
    for export in exports:
        assert (export.output / "trace_view.json").read_text(encoding="utf-8").startswith('[{"ph": "X", "name": "')
        pids = {e["args"]["name"]: e["pid"] for e in export.trace if e["name"] == "process_name"}
        indexes = {e["pid"]: e["args"]["sort_index"] for e in export.trace if e["name"] == "process_sort_index"}
        host = pids.pop("Python")
        assert {"CANN", "Ascend Hardware", "AI Core Freq", "Overlap Analysis"} < pids.keys()
        for pid in pids.values():
            assert pid >> 10 == host
            assert pid >> 5 & 31 == indexes[pid]


def test_flow_ids_of_kernels_exceed_64_bits(exports: list[Export]) -> None:
    for export in exports:
        flows = [e for e in export.trace if e.get("cat") == "HostToDevice"]
        assert all(e["name"] == "HostToDevice" + e["id"] for e in flows)
        assert max(int(e["id"]) for e in flows) > 2**64


def test_old_and_new_names_are_not_mixed(sample: Samples) -> None:
    for scenario, core, lane, label in (
        ("transformer-training", "HCCL", "HCCL", "NPU"),
        ("healthy-training", "COMMUNICATION", "Communication", "NPU 4"),
    ):
        export = sample(scenario)[0]
        collectives = {row["Accelerator Core"] for row in export.kernels if row["Type"].startswith("hcom_")}
        assert collectives == {core}
        assert export.lane(lane, "Group 0 Communication")
        assert label in {e["args"]["labels"] for e in export.trace if e["name"] == "process_labels"}
        assert lane.lower() in {row["Level"] for row in export.table("api_statistic.csv")}


def test_group_numbers_join_with_the_metadata(sample: Samples) -> None:
    """The number behind the ``@`` is the double hash of the group's key; this pair was seen in real data."""
    export = sample("healthy-training")[1]
    metadata = json.loads((export.root / "profiler_metadata.json").read_text(encoding="utf-8"))
    assert metadata["parallel_group_info"]["group_name_0"]["global_ranks"] == [0, 1]
    names = set(export.json("communication.json")["step10"]["collective"]) - {"Total Op Info"}
    assert all(name.endswith("@5862276093215481612") for name in names)
    assert all(re.match(r"hcom_allReduce__612_\d+_1@", name) for name in names)


def test_groups_side_by_side_share_a_number(sample: Samples) -> None:
    """The last digits of ``pp`` and ``dp_cp`` are as in real data (docs/sources.md#group-number); each rank knows its
    own members."""
    layouts = {0: ([0, 1], [0, 2]), 1: ([0, 1], [1, 3]), 2: ([2, 3], [0, 2]), 3: ([2, 3], [1, 3])}
    for rank, export in enumerate(sample(small("late-rank-in-pipeline"))):
        metadata = json.loads((export.root / "profiler_metadata.json").read_text(encoding="utf-8"))
        groups, arguments = metadata["parallel_group_info"], metadata["distributed_args"]
        assert (groups["group_name_5"]["global_ranks"], groups["group_name_19"]["global_ranks"]) == layouts[rank]
        assert [groups[key]["group_rank"] for key in ("group_name_5", "group_name_19")] == [rank % 2, rank // 2]
        sizes = {key: arguments[f"{key}_model_parallel_size"] for key in ("tensor", "pipeline", "expert")}
        assert sizes == {"tensor": 1, "pipeline": 2, "expert": 1} and arguments["data_parallel_size"] == 2
        for step in export.json("communication.json").values():
            names = {kind: set(operations) - {"Total Op Info"} for kind, operations in step.items()}
            assert {name.split("__")[0] for name in names["p2p"]} == {"hcom_send", "hcom_receive"}
            assert all(re.fullmatch(r"hcom_\w+?__128_\d+_1@\d+128", name) for name in names["p2p"])
            assert all(re.fullmatch(r"hcom_allReduce__097_\d+_1@\d+097", name) for name in names["collective"])
        for step in export.json("communication_matrix.json").values():
            assert {key.split("-")[0] for key in step["p2p"]} == {"receive"}
            links = {link for key, uses in step["p2p"].items() for link in uses if key.startswith("receive")}
            assert links == {f"{rank // 2}-{1 - rank // 2}"}
        lanes = [name for name in export.threads("Communication").values() if name.startswith("Group ")]
        assert lanes == ["Group 0 Communication", "Group 1 Communication"]


def test_the_dies_of_a_module_have_a_link_of_their_own(sample: Samples) -> None:
    export = sample("healthy-tensor-parallel")[0]
    content = export.json("communication.json")["step10"]["collective"]
    used = {
        (name.split("__")[0], transport)
        for name, operation in content.items()
        if name != "Total Op Info"
        for transport, traffic in operation["Communication Bandwidth Info"].items()
        if traffic["Transit Size(MB)"]
    }
    within = {
        (f"hcom_{name}", kind) for name in ("allGather", "reduceScatter", "allReduce") for kind in ("SIO", "SDMA")
    }
    assert used == within | {("hcom_allReduce", "HCCS")}
    for name, operation in content.items():
        if name.startswith("hcom_reduceScatter"):
            assert 140 < operation["Communication Bandwidth Info"]["SIO"]["Bandwidth(GB/s)"] < 164
    assert {"reduce", "allgather", "allreduce"} == {
        key.split("-")[0] for key in export.json("communication_matrix.json")["step10"]["collective"]
    }


def test_the_profiler_settings_name_the_rank(sample: Samples) -> None:
    for rank, export in enumerate(sample("transformer-training")):
        info = json.loads((export.root / f"profiler_info_{rank}.json").read_text(encoding="utf-8"))
        assert info["rank_id"] == rank
        assert info["config"]["experimental_config"]["_profiler_level"] == "Level1"
    single = sample("healthy-training-single")[0]
    assert (single.root / "profiler_info.json").is_file()
    assert not (single.output / "communication.json").exists()
    assert not single.lane("HCCL")
