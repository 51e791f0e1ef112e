"""Each profiler level records what real profiles of that level have, and nothing else."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sample.database import DbExport
from tests.sample.export import Export

Samples = Callable[..., list[Export]]
DbSamples = Callable[..., list[DbExport]]

MEMORY = {"operator_memory.csv", "memory_record.csv", "npu_module_mem.csv"}
FRAMEWORK = MEMORY | {"trace_view.json", "operator_details.csv"}
DEVICE = FRAMEWORK | {"kernel_details.csv", "step_trace_time.csv"}
DETAILS = DEVICE | {"op_statistic.csv", "api_statistic.csv"}
COMMUNICATION = {"communication.json", "communication_matrix.json"}
FILES = {
    "level_none": FRAMEWORK,
    "level0": DEVICE,
    "level1": DETAILS | COMMUNICATION,
    "level2": DETAILS | COMMUNICATION,
}
LEVEL0_COLUMNS = "Step Id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim"

ANYWAY = {
    *("NPU_INFO", "SESSION_TIME_INFO", "HOST_INFO", "META_DATA", "STRING_IDS", "RANK_DEVICE_MAP", "STEP_TIME"),
    *("ENUM_MODULE", "ENUM_API_TYPE", "ENUM_HCCL_DATA_TYPE", "ENUM_HCCL_LINK_TYPE", "ENUM_HCCL_TRANSPORT_TYPE"),
    *("ENUM_HCCL_RDMA_TYPE", "ENUM_MSTX_EVENT_TYPE", "NPU_MEM", "NPU_MODULE_MEM", "MEMORY_RECORD", "OP_MEMORY"),
    *("PYTORCH_API", "CONNECTION_IDS", "PYTORCH_CALLCHAINS"),
}
ON_DEVICE = {"TASK", "COMPUTE_TASK_INFO", "COMMUNICATION_OP", "CANN_API", "AICORE_FREQ"}
DETAILED = {"COMMUNICATION_TASK_INFO", "TASK_PMU_INFO"}
TABLES = {
    "level_none": ANYWAY,
    "level0": ANYWAY | ON_DEVICE,
    "level1": ANYWAY | ON_DEVICE | DETAILED,
    "level2": ANYWAY | ON_DEVICE | DETAILED,
}
LEVELS = list(FILES)


@pytest.mark.parametrize("level", LEVELS)
def test_text_files(sample: Samples, level: str) -> None:
    for export in sample("transformer-training", level=level):
        assert {path.name for path in export.output.iterdir()} == FILES[level]
    (single,) = sample("healthy-training-single", level=level)
    assert {path.name for path in single.output.iterdir()} == FILES[level] - COMMUNICATION


@pytest.mark.parametrize("level", LEVELS)
def test_tables_of_the_database(db_sample: DbSamples, level: str) -> None:
    for export in db_sample("transformer-training", level=level):
        assert export.profile.tables == TABLES[level]
        names = {path.name for path in export.profile.path.parent.iterdir()}
        assert names == {export.profile.path.name, *(["analysis.db"] if level != "level_none" else [])}
        if level != "level_none":
            detailed = {"CommAnalyzerBandwidth", "CommAnalyzerMatrix", "CommAnalyzerTime"}
            assert export.analysis.tables == {"StepTraceTime"} | (detailed if level != "level0" else set())


@pytest.mark.parametrize(
    ("level", "metrics"),
    [
        ("level_none", "ACL_AICORE_NONE"),
        ("level0", "ACL_AICORE_NONE"),
        ("level1", "ACL_AICORE_PIPE_UTILIZATION"),
        ("level2", "ACL_AICORE_PIPE_UTILIZATION"),
    ],
)
def test_the_settings_name_the_level(sample: Samples, level: str, metrics: str) -> None:
    info = json.loads((sample("transformer-training", level=level)[0].root / "profiler_info_0.json").read_text())
    config = info["config"]["experimental_config"]
    assert config["_profiler_level"].lower() == level
    assert config["_aic_metrics"] == metrics


def test_the_timeline_is_the_same_at_every_level(sample: Samples) -> None:
    level0, level1, level2 = (sample("transformer-training", level=level) for level in ("level0", "level1", "level2"))
    for first, second, third in zip(level0, level1, level2, strict=True):
        columns = ("Step Id", "Name", "Start Time(us)", "Duration(us)", "Wait Time(us)")
        rows = [[tuple(row[column] for column in columns) for row in export.kernels] for export in (first, second)]
        assert rows[0] == rows[1]
        assert second.kernels == third.kernels
        for table in (*MEMORY, "operator_details.csv", "step_trace_time.csv"):
            contents = {(export.output / table).read_bytes() for export in (first, second, third)}
            assert len(contents) == 1


def test_kernels_of_level_0_have_neither_type_nor_shape(sample: Samples) -> None:
    for headers, columns in (("2024", LEVEL0_COLUMNS), ("2025", LEVEL0_COLUMNS.replace("Id,", "Id,Device_id,", 1))):
        for export in sample("transformer-training", level="level0", headers=headers):
            raw = (export.output / "kernel_details.csv").read_bytes().decode()
            assert raw.startswith(columns + "\r\n")
            collective = "HCCL" if headers == "2024" else "COMMUNICATION"
            for row in export.kernels:
                assert (row["Type"], row["Block Dim"]) == ("N/A", "0")
                assert row["Accelerator Core"] == (collective if row["Name"].startswith("hcom_") else "N/A")


def test_level_0_looks_like_a_real_one(sample: Samples, profiles: Path) -> None:
    root = profiles / "ascend" / "alexnet-ddp-text-level0" / "rank0_ascend_pt"
    if not root.is_dir():
        pytest.skip(f"no real level-0 profile at {root}")
    real, written = Export(root), sample("transformer-training", level="level0")[0]
    names = {path.name for path in real.output.iterdir()} - {"l2_cache.csv"}
    assert {path.name for path in written.output.iterdir()} == names
    for name in (path for path in names if path.endswith(".csv")):
        assert list(written.table(name)[0]) == list(real.table(name)[0]), name
    for column in ("Type", "Accelerator Core", "Block Dim"):
        assert {row[column] for row in written.kernels} == {row[column] for row in real.kernels}

    def lanes(export: Export) -> set[str]:
        return {event["args"]["name"] for event in export.trace if event["name"] == "process_name"}

    sampled = {"HBM", "LLC", "NPU MEM", "Stars Soc Info", "Acc PMU", "QoS"}
    assert lanes(written) == lanes(real) - sampled
    for lane in ("Ascend Hardware", "HCCL"):
        # names of phases and of threads, and keys of events
        shapes = [
            {(event["ph"], *sorted(event), *sorted(event["args"])) for event in export.lane(lane)}
            for export in (written, real)
        ]
        assert shapes[0] == shapes[1], lane
    kinds = [
        {(event["ph"], event["cat"]) for event in export.trace if event["ph"] in "sf"} for export in (written, real)
    ]
    assert kinds[0] == kinds[1]


def test_the_trace_of_level_0_has_launch_points_but_no_calls(sample: Samples) -> None:
    level0, level1 = (sample("transformer-training", level=level)[0] for level in ("level0", "level1"))
    assert not level0.lane("CANN")
    assert level1.lane("CANN")

    def points(export: Export) -> list[tuple[object, ...]]:
        return [(e["ph"], e["id"], e["ts"], e["tid"]) for e in export.trace if e.get("cat") == "HostToDevice"]

    assert points(level0) == points(level1)
    process = {e["pid"] for e in level0.trace if e.get("cat") == "HostToDevice" and e["ph"] == "s"}
    assert not process & {e["pid"] for e in level0.trace if e["name"] == "process_name"}
    assert level0.lane("Ascend Hardware") == level1.lane("Ascend Hardware")
    assert {e["tid"] for e in level0.lane("HCCL")} == {0}
    assert {e["tid"] for e in level1.lane("HCCL")} == {0, 1, 2}


def test_level_2_adds_the_calls_of_the_runtime(sample: Samples, db_sample: DbSamples) -> None:
    for level1, level2 in zip(
        *(sample("transformer-training", level=level) for level in ("level1", "level2")), strict=True
    ):
        added = [e for e in level2.lane("CANN") if e["args"]["level"] == "runtime"]
        assert [e for e in level2.lane("CANN") if e not in added] == level1.lane("CANN")
        kernels = [row for row in level2.kernels if not row["Name"].startswith("hcom_")]
        assert len(added) == len(kernels)
        assert {e["name"] for e in added} == {"Runtime@KernelLaunch"}
        points = sorted(
            (e["tid"], float(e["ts"])) for e in level2.trace if e.get("cat") == "HostToDevice" and e["ph"] == "s"
        )
        for event in added:
            start, end = float(event["ts"]), float(event["ts"]) + event["dur"]
            assert any(tid == event["tid"] and start <= time <= end for tid, time in points)
        connections = [e["args"]["connection_id"] for e in level2.lane("CANN")]
        assert len(connections) == len(set(connections))
        with (level2.output / "api_statistic.csv").open(encoding="utf-8", newline="") as file:
            statistic = [row for row in csv.DictReader(file) if row["Level"] == "runtime"]
        assert [(row["API Name"], int(row["Count"])) for row in statistic] == [("KernelLaunch", len(added))]
    for export in db_sample("transformer-training", level="level2"):
        (row,) = export.profile.rows("SELECT COUNT(*) AS number FROM CANN_API WHERE type = 5000")
        assert row["number"] == len(added)


def test_no_level_records_the_framework_alone(sample: Samples, db_sample: DbSamples) -> None:
    for export in sample("transformer-training", level="level_none"):
        lanes = {event["args"]["name"] for event in export.trace if event["name"] == "process_name"}
        assert lanes == {"Python"}
        assert export.lane("Python")
        kinds = {event["cat"] for event in export.trace if event["ph"] in "sf"}
        assert kinds == {"async_task_queue", "fwdbwd"}
        assert all(float(row["Device Total Duration(us)"]) == 0 for row in export.table("operator_details.csv"))
    for database in db_sample("transformer-training", level="level_none"):
        rows = database.profile.rows("SELECT MIN(connectionId) AS first FROM CONNECTION_IDS")
        correlations = [
            event["args"]["correlation_id"] for event in export.trace if event.get("cat") in {"enqueue", "dequeue"}
        ]
        assert rows == [{"first": min(correlations)}]
