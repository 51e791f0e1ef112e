"""The text and the DB export of one timeline say the same, to the rounding of the formats."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

from tests.sample.conftest import LONG, ends
from tests.sample.database import DbExport, Record
from tests.sample.export import Event, Export, ns
from tests.sample.small import small

NO_CONTEXT = 4294967295
HALF_LAST_DIGIT = 0.0006
"""Tables round to 0.001 us."""
DB_TYPES = {"PCIE_DMA_SQE": "MEMCPY_ASYNC", "EVENT_RECORD_SQE": "EVENT_RECORD", "EVENT_WAIT_SQE": "EVENT_WAIT"}
KERNELS = {
    *("AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU"),
    *("KERNEL_AICORE", "KERNEL_AIVEC", "KERNEL_AICPU"),
}


@dataclass(frozen=True)
class Pair:
    """One rank in both formats."""

    text: Export
    db: DbExport
    rank: int

    @property
    def strings(self) -> dict[int | None, str]:
        return self.db.profile.strings

    @cached_property
    def tasks(self) -> list[Record]:
        """The rows of TASK, without the tasks that carry a whole collective: text exports do not have them."""
        return [row for row in self.db.profile.table("TASK") if not self._carries(row)]

    @cached_property
    def carriers(self) -> list[Record]:
        return [row for row in self.db.profile.table("TASK") if self._carries(row)]

    def _carries(self, row: Record) -> bool:
        return self.strings[row["taskType"]] == "AI_CORE" and row["globalTaskId"] not in self._kernel_ids

    @cached_property
    def _kernel_ids(self) -> set[int]:
        return {row["globalTaskId"] for row in self.db.profile.table("COMPUTE_TASK_INFO")}

    @cached_property
    def hardware(self) -> list[Event]:
        return self.text.lane("Ascend Hardware")


VARIANTS: list[Any] = [
    ("transformer-training", {}),
    ("transformer-training", {"level": "level0", "headers": "2025"}),
    ("healthy-training", {"level": "level2"}),
    pytest.param(("healthy-training", {"headers": "2024"}), marks=pytest.mark.search),
    pytest.param(("healthy-training-single", {"level": "level2"}), marks=pytest.mark.search),
    pytest.param(("healthy-training-single", {"level": "level0"}), marks=pytest.mark.search),
    pytest.param(("garbage-collection", {}), marks=pytest.mark.search),
    ("ai-cpu-operator", {}),
    pytest.param(("task-queue-off", {}), marks=pytest.mark.search),
    ("late-rank-in-pipeline", {}),
    ("healthy-moe", {}),
]
"""Scenario and options."""


@pytest.fixture(scope="module", params=VARIANTS, ids=lambda variant: "-".join((variant[0], *variant[1].values())))
def pairs(
    request: pytest.FixtureRequest,
    sample: Callable[..., list[Export]],
    db_sample: Callable[..., list[DbExport]],
) -> list[Pair]:
    name, options = request.param
    scenario = small(name) if name in LONG else name
    ranks = zip(sample(scenario, **options), db_sample(scenario, **options), strict=True)
    return ends(name, [Pair(text, db, rank) for rank, (text, db) in enumerate(ranks)])


def has_details(pair: Pair) -> bool:
    return (pair.text.output / "op_statistic.csv").exists()


def span(event: Event) -> tuple[int, int]:
    return ns(event["ts"]), round(event["dur"] * 1000)


def length(row: Record) -> tuple[int, int]:
    start = int(row["startNs"])
    return start, int(row["endNs"]) - start


def test_the_directories_have_the_same_names(pairs: list[Pair]) -> None:
    for pair in pairs:
        assert pair.text.root.name == pair.db.root.name


def test_tasks(pairs: list[Pair]) -> None:
    for pair in pairs:
        expected = Counter(
            (*span(e), e["tid"], e["args"]["Task Id"], e["args"]["Subtask Id"], e["args"]["connection_id"])
            for e in pair.hardware
        )
        keys = ("streamId", "taskId", "contextId", "connectionId")
        assert Counter((*length(row), *(row[key] for key in keys)) for row in pair.tasks) == expected
        assert len(expected) > 500


def test_time_by_type_and_stream(pairs: list[Pair]) -> None:
    def kind(type_: str) -> str:
        return "kernel" if type_ in KERNELS else DB_TYPES.get(type_, type_)

    for pair in pairs:
        text: Counter[tuple[str, int]] = Counter()
        for event in pair.hardware:
            text[kind(event["args"]["Task Type"]), event["tid"]] += span(event)[1]
        db: Counter[tuple[str, int]] = Counter()
        for row in pair.tasks:
            db[kind(pair.strings[row["taskType"]]), row["streamId"]] += length(row)[1]
        assert db == text
        assert {"kernel", "MEMCPY_ASYNC"} <= {type_ for type_, _ in db}


def test_tasks_are_numbered_by_start_and_each_collective_has_a_carrier(pairs: list[Pair]) -> None:
    for pair in pairs:
        rows = pair.db.profile.table("TASK")
        assert [row["globalTaskId"] for row in rows] == list(range(len(rows)))
        assert [row["startNs"] for row in rows] == sorted(row["startNs"] for row in rows)
        collectives = {row["connectionId"]: row for row in collective_rows(pair)}
        assert sorted(collectives) == sorted(row["connectionId"] for row in pair.carriers)
        for row in pair.carriers:
            inside = collectives[row["connectionId"]]
            assert 0 < inside["startNs"] - row["startNs"] < 2000
            assert 0 < row["endNs"] - inside["endNs"] < 2000
            assert row["contextId"] == NO_CONTEXT


def kernel_rows(pair: Pair) -> list[Record]:
    return pair.db.profile.rows("SELECT * FROM COMPUTE_TASK_INFO JOIN TASK USING (globalTaskId) ORDER BY startNs")


def collective_rows(pair: Pair) -> list[Record]:
    return pair.db.profile.table("COMMUNICATION_OP") if "COMMUNICATION_OP" in pair.db.profile.tables else []


def test_kernels(pairs: list[Pair]) -> None:
    names = {
        "Name": "name",
        "Type": "opType",
        "Input Shapes": "inputShapes",
        "Input Data Types": "inputDataTypes",
        "Input Formats": "inputFormats",
        "Output Shapes": "outputShapes",
        "Output Data Types": "outputDataTypes",
        "Output Formats": "outputFormats",
    }
    for pair in pairs:
        rows = [row for row in pair.text.kernels if not row["Name"].startswith("hcom_")]
        kernels = kernel_rows(pair)
        assert len(rows) == len(kernels)
        for row, kernel in zip(rows, kernels, strict=True):
            assert (ns(row["Start Time(us)"]), ns(row["Duration(us)"])) == length(kernel)
            for column, name in names.items():
                if column in row:
                    assert pair.strings[kernel[name]] == row[column]
            assert kernel["blockDim"] == int(row["Block Dim"])
            assert kernel["mixBlockDim"] == int(row.get("Mix Block Dim", 0))
            if "opState" in kernel and "OP State" in row:
                assert pair.strings[kernel["opState"]] == row["OP State"]
        cores = pair.db.profile.rows("SELECT taskType FROM COMPUTE_TASK_INFO ORDER BY globalTaskId")
        assert [pair.strings[row["taskType"]] for row in cores] == [row["Accelerator Core"] for row in rows]


def test_counters(pairs: list[Pair]) -> None:
    for pair in pairs:
        if not has_details(pair):
            assert "TASK_PMU_INFO" not in pair.db.profile.tables
            continue
        counters: dict[int, dict[str, float]] = defaultdict(dict)
        for row in pair.db.profile.table("TASK_PMU_INFO"):
            counters[row["globalTaskId"]][pair.strings[row["name"]]] = row["value"]
        rows = [row for row in pair.text.kernels if not row["Name"].startswith("hcom_")]
        assert len(counters) == sum(row["Accelerator Core"] != "AI_CPU" for row in rows)
        columns = {"aicore_time(us)": "aic_total_time", "aiv_time(us)": "aiv_total_time"}
        for row, kernel in zip(rows, kernel_rows(pair), strict=True):
            if row["Accelerator Core"] == "AI_CPU":
                continue
            counted = counters[kernel["globalTaskId"]]
            assert len(counted) == 28
            for column, value in row.items():
                name = columns.get(column, column.removesuffix("(us)"))
                if name not in counted:
                    continue
                scale = 1000 if column.endswith("(us)") else 1
                assert abs(float(value) - counted[name] / scale) <= HALF_LAST_DIGIT
            assert counted["aiv_mac_time"] == counted["aiv_mte1_ratio"] == 0


def test_collectives(pairs: list[Pair]) -> None:
    for pair in pairs:
        types = pair.db.profile.enumeration("ENUM_HCCL_DATA_TYPE")
        threads = pair.text.threads("HCCL", "Communication")
        lane = [*pair.text.lane("HCCL"), *pair.text.lane("Communication")]
        events = [e for e in lane if threads[e["tid"]].startswith("Group ")]
        text = [
            (e["name"], *span(e), *(e["args"][key] for key in ("connection_id", "data_type", "alg_type", "count")))
            for e in sorted(events, key=lambda e: ns(e["ts"]))
        ]
        db = [
            (
                pair.strings[row["opName"]],
                *length(row),
                row["connectionId"],
                types[row["dataType"]],
                pair.strings[row["algType"]],
                row["count"],
            )
            for row in collective_rows(pair)
        ]
        assert db == text
        listed = [row for row in pair.text.kernels if row["Name"].startswith("hcom_")]
        assert [(row["Name"], ns(row["Start Time(us)"]), ns(row["Duration(us)"])) for row in listed] == [
            row[:3] for row in db
        ]


def test_steps_of_collectives(pairs: list[Pair]) -> None:
    for pair in pairs:
        lane = [*pair.text.lane("HCCL"), *pair.text.lane("Communication")]
        threads = pair.text.threads("HCCL", "Communication")
        parts = [e for e in lane if threads[e["tid"]].startswith("Plane ")]
        if "COMMUNICATION_TASK_INFO" not in pair.db.profile.tables:
            assert not parts
            continue
        enums = {
            "link type": ("linkType", pair.db.profile.enumeration("ENUM_HCCL_LINK_TYPE")),
            "transport type": ("transportType", pair.db.profile.enumeration("ENUM_HCCL_TRANSPORT_TYPE")),
            "data type": ("dataType", pair.db.profile.enumeration("ENUM_HCCL_DATA_TYPE")),
        }
        plain = {"src rank": "srcRank", "dst rank": "dstRank", "size(Byte)": "size"}
        text = Counter(
            (*span(e), e["name"], int(threads[e["tid"]].split()[1]), *(e["args"][key] for key in (*enums, *plain)))
            for e in sorted(parts, key=lambda e: ns(e["ts"]))
        )
        rows = pair.db.profile.rows(
            "SELECT i.*, t.startNs, t.endNs, o.opName FROM COMMUNICATION_TASK_INFO i JOIN TASK t USING (globalTaskId) "
            "JOIN COMMUNICATION_OP o ON o.opId = i.opId AND o.connectionId = t.connectionId"
        )
        db = Counter(
            (
                *length(row),
                pair.strings[row["taskType"]],
                row["planeId"],
                *(members[row[name]] for name, members in enums.values()),
                *(row[name] for name in plain.values()),
            )
            for row in rows
        )
        assert db == text and text
        assert all(row["name"] == row["opName"] for row in rows)


def test_calls_into_cann(pairs: list[Pair]) -> None:
    for pair in pairs:
        levels = pair.db.profile.enumeration("ENUM_API_TYPE")
        rows = pair.db.profile.table("CANN_API")
        db = Counter(
            (*length(row), row["globalTid"] & 0xFFFFFFFF, levels[row["type"]], row["connectionId"]) for row in rows
        )
        events = pair.text.lane("CANN")
        if not events:  # level 0: only the database has them
            assert len(rows) > 500 and not has_details(pair)
            continue
        text = Counter((*span(e), e["tid"], e["args"]["level"], e["args"]["connection_id"]) for e in events)
        assert db == text
        names = {e["args"]["connection_id"]: e["name"].partition("@")[2] for e in events}
        assert {row["connectionId"]: pair.strings[row["name"]] for row in rows} == names


def test_launches_join_with_their_tasks(pairs: list[Pair]) -> None:
    for pair in pairs:
        calls = {row["connectionId"]: length(row) for row in pair.db.profile.table("CANN_API")}
        points = {e["id"]: ns(e["ts"]) for e in flows(pair, "HostToDevice", "s")}
        ends = {(e["tid"], ns(e["ts"])): points[e["id"]] for e in flows(pair, "HostToDevice", "f")}
        threads = pair.text.threads("HCCL", "Communication")
        lane = [*pair.text.lane("HCCL"), *pair.text.lane("Communication")]
        groups = {e["name"]: e["tid"] for e in lane if threads[e["tid"]].startswith("Group ")}
        kernels = kernel_rows(pair)
        for row in kernels:
            start, duration = calls[row["connectionId"]]
            assert start <= ends[row["streamId"], row["startNs"]] <= start + duration
        for row in collective_rows(pair):
            start, duration = calls[row["connectionId"]]
            group = groups[pair.strings[row["opName"]]]
            assert start <= ends[group, row["startNs"]] <= start + duration


def flows(pair: Pair, category: str, phase: str) -> list[Event]:
    return [e for e in pair.text.trace if e.get("cat") == category and e["ph"] == phase]


def test_framework_calls(pairs: list[Pair]) -> None:
    for pair in pairs:
        kinds = {"op": {"cpu_op", "user_annotation"}, "queue": {"enqueue", "dequeue"}, "trace": {"python_function"}}
        types = pair.db.profile.enumeration("ENUM_API_TYPE")
        rows = pair.db.profile.table("PYTORCH_API")
        assert all(isinstance(row["startNs"], str) for row in rows)
        lane = pair.text.lane("Python")
        if not any(e["cat"] == "enqueue" for e in lane):
            assert not [row for row in rows if types[row["type"]] == "queue"]
            del kinds["queue"]
        for kind, categories in kinds.items():
            text = Counter((*span(e), e["tid"], e["name"]) for e in lane if e["cat"] in categories)
            db = Counter(
                (*length(row), row["globalTid"] & 0xFFFFFFFF, pair.strings[row["name"]])
                for row in rows
                if types[row["type"]] == kind
            )
            assert db == text and text


def operators(pair: Pair) -> dict[tuple[int, int, str], Record]:
    rows = pair.db.profile.rows("SELECT * FROM PYTORCH_API WHERE type = 50001")
    return {(row["globalTid"] & 0xFFFFFFFF, int(row["startNs"]), pair.strings[row["name"]]): row for row in rows}


def test_operators(pairs: list[Pair]) -> None:
    for pair in pairs:
        rows = operators(pair)
        stacks: dict[int, list[str]] = defaultdict(list)
        for row in pair.db.profile.rows("SELECT * FROM PYTORCH_CALLCHAINS ORDER BY id, stackDepth"):
            stacks[row["id"]].append(pair.strings[row["stack"]])
        events = [e for e in pair.text.lane("Python") if e["cat"] in {"cpu_op", "user_annotation"}]
        assert len(rows) == len(events)
        for event in events:
            row, args = rows[event["tid"], ns(event["ts"]), event["name"]], event["args"]
            assert row["sequenceNumber"] == args["Sequence number"]
            assert row["fwdThreadId"] == args["Fwd thread id"]
            # as in real files, each of the two is in the column of the other
            assert pair.strings[row["inputDtypes"]] == args.get("Input Dims", "")
            assert pair.strings[row["inputShapes"]] == args.get("Input type", "")
            stack = stacks[row["callchainId"]] if row["callchainId"] is not None else []
            assert ";\r\n".join(stack) == args.get("Call stack", "")


def connections(pair: Pair) -> dict[int, list[int]]:
    members: dict[int, list[int]] = defaultdict(list)
    for row in pair.db.profile.table("CONNECTION_IDS"):
        members[row["id"]].append(row["connectionId"])
    return members


def test_the_queue(pairs: list[Pair]) -> None:
    for pair in pairs:
        lane = pair.text.lane("Python")
        members = connections(pair)
        times: dict[int, set[int]] = defaultdict(set)
        for event in lane:
            if event["cat"] in {"enqueue", "dequeue"}:
                times[event["args"]["correlation_id"]].add(ns(event["ts"]))
        joined: dict[int, set[int]] = defaultdict(set)
        for row in pair.db.profile.rows("SELECT * FROM PYTORCH_API WHERE type = 50002"):
            (connection,) = members[row["connectionId"]]
            joined[connection].add(int(row["startNs"]))
        if not times:
            assert not joined
            continue
        offsets = {db - text for text, db in zip(sorted(times), sorted(joined), strict=True)}
        assert sorted(map(sorted, joined.values())) == sorted(map(sorted, times.values()))
        assert offsets == {max(row["connectionId"] for row in pair.db.profile.table("CANN_API")) + 1}


def test_operators_join_with_their_tasks(pairs: list[Pair]) -> None:
    for pair in pairs:
        members = connections(pair)
        task_starts: dict[int, set[int]] = defaultdict(set)
        for row in (*kernel_rows(pair), *collective_rows(pair)):
            task_starts[row["connectionId"]].add(row["startNs"])
        db = {
            (tid, start, begin)
            for (tid, start, _), row in operators(pair).items()
            for connection in members.get(row["connectionId"], [])
            for begin in task_starts.get(connection, ())
        }
        origins = {e["id"]: (e["tid"], ns(e["ts"])) for e in flows(pair, "async_npu", "s")}
        known = set().union(*task_starts.values())
        text = {(*origins[e["id"]], ns(e["ts"])) for e in flows(pair, "async_npu", "f") if ns(e["ts"]) in known}
        assert db == text and len(text) == len(known)


def test_forward_operators_join_with_their_nodes(pairs: list[Pair]) -> None:
    for pair in pairs:
        members = connections(pair)
        ends: dict[int, set[tuple[int, int]]] = defaultdict(set)
        launches = {row["connectionId"] for row in pair.db.profile.table("CANN_API")}
        for (tid, start, _), row in operators(pair).items():
            for connection in members.get(row["connectionId"], []):
                if connection not in launches:
                    ends[connection].add((tid, start))
        text: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for event in (*flows(pair, "fwdbwd", "s"), *flows(pair, "fwdbwd", "f")):
            text[event["id"]].add((event["tid"], ns(event["ts"])))
        assert sorted(map(sorted, ends.values())) == sorted(map(sorted, text.values()))
        assert len(ends) > 20


def test_garbage_collections(pairs: list[Pair]) -> None:
    for pair in pairs:
        lane = pair.text.lane("Python GC")
        assert ("GC_RECORD" in pair.db.profile.tables) == bool(lane)
        if lane:
            rows = pair.db.profile.table("GC_RECORD")
            assert [length(row) for row in rows] == list(map(span, lane))
            assert {(row["globalTid"] >> 32, row["globalTid"] & 0xFFFFFFFF) for row in rows} == {
                (pair.text.lane("Python")[0]["pid"], event["tid"]) for event in lane
            }
            (info,) = pair.text.root.glob("profiler_info*.json")
            config = json.loads(info.read_text())["config"]["experimental_config"]
            assert min(event["dur"] for event in lane) >= 1000 * config["_gc_detect_threshold"]


def test_step_times(pairs: list[Pair]) -> None:
    for pair in pairs:
        text = pair.text.table("step_trace_time.csv")
        for row, record in zip(text, pair.db.analysis.table("StepTraceTime"), strict=True):
            assert record.pop("step") == row.pop("Step")
            # A gap that begins after the last task is free time of a step in text exports, and of none in databases.
            gap = float(row["Stage"]) - record["stage"]
            assert gap == pytest.approx(float(row["Free"]) - record["free"], abs=HALF_LAST_DIGIT)
            assert gap == pytest.approx(closing_gap(pair, row["Step"]) if gap else 0, abs=HALF_LAST_DIGIT)
            text_values = [float(row[key]) for key in row if key not in {"Stage", "Free"}]
            assert [record[key] for key in record if key not in {"stage", "free"}] == text_values
        steps = {row["id"]: length(row) for row in pair.db.profile.table("STEP_TIME")}
        events = [e for e in pair.text.lane("Python") if e["name"].startswith("ProfilerStep#")]
        assert steps == {int(e["name"].partition("#")[2]): span(e) for e in events}


def closing_gap(pair: Pair, step: str) -> float:
    """us from the end of the last kernel or collective of a step to the first of the next one."""
    rows = pair.text.kernels
    ends = [ns(r["Start Time(us)"]) + ns(r["Duration(us)"]) for r in rows if r["Step Id"] == step]
    return (min(s for s in (ns(r["Start Time(us)"]) for r in rows) if s >= max(ends)) - max(ends)) / 1000


def test_communication_tables(pairs: list[Pair]) -> None:
    for pair in pairs:
        if not (pair.text.output / "communication.json").exists():
            assert "CommAnalyzerTime" not in pair.db.analysis.tables
            continue
        times = {
            (row["step"], f"{row['hccl_op_name']}@{row['group_name']}"): row
            for row in pair.db.analysis.table("CommAnalyzerTime")
        }
        packets: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
        for row in pair.db.analysis.table("CommAnalyzerBandwidth"):
            name = f"{row['hccl_op_name']}@{row['group_name']}"
            packets[row["step"], name, row["transport_type"]].append(row)
        count = 0
        for step, content in pair.text.json("communication.json").items():
            for name, op in (content["p2p"] | content["collective"]).items():
                if name == "Total Op Info":
                    continue
                count += 1
                check_times(times[step, name], op["Communication Time Info"])
                for transport, traffic in op["Communication Bandwidth Info"].items():
                    check_traffic(packets[step, name, transport], traffic)
        assert count == len(times) > 0


def check_times(row: Record, info: dict[str, float]) -> None:
    columns = {"Elapse": "elapse", "Transit": "transit", "Wait": "wait", "Synchronization": "synchronization"}
    for key, column in columns.items():
        assert row[f"{column}_time"] == info[f"{key} Time(ms)"]
    assert row["idle_time"] == info["Idle Time(ms)"]
    assert row["start_timestamp"] == info["Start Timestamp(us)"]


def check_traffic(rows: list[Record], traffic: dict[str, Any]) -> None:
    if not traffic["Transit Size(MB)"]:
        assert not rows
        return
    assert {row["transit_size"] for row in rows} == {traffic["Transit Size(MB)"]}
    assert {row["bandwidth"] for row in rows} == {traffic["Bandwidth(GB/s)"]}
    sizes = {row["package_size"]: [row["count"], row["total_duration"]] for row in rows if row["package_size"]}
    assert sizes == {float(size): content for size, content in traffic["Size Distribution"].items()}


def test_links(pairs: list[Pair]) -> None:
    for pair in pairs:
        if not (pair.text.output / "communication_matrix.json").exists():
            continue
        text = {
            (step, *key.split("@"), *link.split("-")): (
                use["Transport Type"],
                use["Transit Size(MB)"],
                use["Transit Time(ms)"],
                use["Bandwidth(GB/s)"],
                use.get("Op Name", ""),
            )
            for step, content in pair.text.json("communication_matrix.json").items()
            for key, links in (content["p2p"] | content["collective"]).items()
            for link, use in links.items()
        }
        keys = ("step", "hccl_op_name", "group_name", "src_rank", "dst_rank")
        values = ("transport_type", "transit_size", "transit_time", "bandwidth", "op_name")
        rows = pair.db.analysis.table("CommAnalyzerMatrix")
        assert {tuple(row[key] for key in keys): tuple(row[value] for value in values) for row in rows} == text


def test_memory(pairs: list[Pair]) -> None:
    mib = 1024 * 1024
    for pair in pairs:
        for row, record in zip(pair.text.table("operator_memory.csv"), pair.db.profile.table("OP_MEMORY"), strict=True):
            assert pair.strings[record["name"]] == row["Name"]
            assert record["size"] == float(row["Size(KB)"]) * 1024
            assert record["allocationTime"] == ns(row["Allocation Time(us)"])
            assert record["allocationTotalAllocated"] == float(row["Allocation Total Allocated(MB)"]) * mib
            if row["Release Time(us)"].strip():
                assert record["releaseTime"] == ns(row["Release Time(us)"])
                assert record["releaseTotalReserved"] == float(row["Release Total Reserved(MB)"]) * mib
            else:
                assert record["releaseTime"] is record["releaseTotalReserved"] is record["duration"] is None
        rows = pair.text.table("memory_record.csv")
        totals = [(r["Component"], ns(r["Timestamp(us)"]), r["Total Allocated(MB)"]) for r in rows]
        assert [
            (pair.strings[r["component"]], r["timestamp"], r["totalAllocated"])
            for r in pair.db.profile.table("MEMORY_RECORD")
        ] == [(name, time, float(total) * mib) for name, time, total in totals if name != "APP"]
        process = {
            (ns(r["Timestamp(us)"]), float(r["Total Reserved(MB)"]) * mib) for r in rows if r["Component"] == "APP"
        }
        assert process == {
            (r["timestampNs"], r["hbm"]) for r in pair.db.profile.table("NPU_MEM") if pair.strings[r["type"]] == "app"
        }
        modules = pair.db.profile.enumeration("ENUM_MODULE")
        assert Counter(
            (modules[r["moduleId"]], r["timestampNs"], r["totalReserved"])
            for r in pair.db.profile.table("NPU_MODULE_MEM")
        ) == Counter(
            (r["Component"], ns(r["Timestamp(us)"]), float(r["Total Reserved(MB)"]) * mib)
            for r in pair.text.table("npu_module_mem.csv")
        )


def test_settings(pairs: list[Pair]) -> None:
    for pair in pairs:
        name = f"profiler_info_{pair.rank}.json" if len(pairs) > 1 else "profiler_info.json"
        text, db = (json.loads((root / name).read_text()) for root in (pair.text.root, pair.db.root))
        kinds = [info["config"]["experimental_config"].pop("_export_type") for info in (text, db)]
        assert kinds in (["text", "db"], [["text"], ["db"]])
        assert text == db
        metadata = json.loads((pair.text.root / "profiler_metadata.json").read_text())
        stored = {row["name"]: row["value"] for row in pair.db.profile.table("META_DATA")}
        assert {key: json.loads(stored[key]) for key in metadata} == metadata
        devices = {row["Device Type"] for row in pair.text.table("operator_memory.csv")}
        if len(pairs) > 1:
            (row,) = pair.db.profile.table("RANK_DEVICE_MAP")
            assert row["rankId"] == pair.rank and devices == {f"NPU:{row['deviceId']}"}
        else:
            assert "RANK_DEVICE_MAP" not in pair.db.profile.tables
