"""Small DB exports for tests: as an old or a new version of the exporter writes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

NONE = 4294967295
T0 = 1_736_410_576_000_000_000
PROCESS = 77 << 32

OF_OPTIONS = {"l2_cache", "core_counters", "counters", "ports", "graph_memory", "ai_cpu_nodes"}
"""Canonical tables that further options of the profiler add; the exports of tests have none of them."""

Rows = Sequence[Sequence[Any]]


def write(path: Path, tables: Mapping[str, tuple[str, Rows]]) -> Path:
    """A database of tables: name to the declaration of the columns and the rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        for name, (columns, rows) in tables.items():
            database.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * (columns.count(",") + 1))
            database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    return path


class Texts:
    """STRING_IDS while rows are written: the id of each text."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.ids.setdefault(text, 1000 + 7 * len(self.ids))

    def table(self) -> tuple[str, Rows]:
        return "id INTEGER PRIMARY KEY, value TEXT", [(number, text) for text, number in self.ids.items()]


def export(*, new: bool = False, swapped: bool = False, without: Iterable[str] = ()) -> dict[str, tuple[str, Rows]]:
    """Two steps of a rank: in each a kernel that the queue launches and a collective of one plane, launched by
    operators. The kernel of the second step is a MIX kernel, stored as a whole and as its part.

    ``new``: columns of newer versions, times as integers. ``swapped``: shapes in the column of types, as real exports
    have them. Step n starts at `T0` + n ms; times below are us after that."""
    text = Texts()
    tasks: list[Sequence[Any]] = []
    compute: list[Sequence[Any]] = []
    talks: list[Sequence[Any]] = []
    parts: list[Sequence[Any]] = []
    calls: list[Sequence[Any]] = []
    framework: list[Sequence[Any]] = []
    links: list[Sequence[Any]] = []
    counters: list[Sequence[Any]] = []
    steps: list[Sequence[Any]] = []

    def call(start: int, us: int, thread: int, link: int | None, name: str, kind: int, **more: Any) -> None:
        begin: Any = start
        end: Any = start + 1000 * us
        framework.append(
            (
                begin if new else str(begin),
                end if new else str(end),
                PROCESS | thread,
                link,
                text(name),
                more.get("sequence", -1),
                0,
                more.get("types"),
                more.get("shapes"),
                more.get("chain"),
                kind,
            )
        )

    shapes, types = text("4,8;\r\n8"), text("float;\r\nfloat")
    for n in (0, 1):
        start, base = T0 + n * 1_000_000, 100 * n
        kernel, collective, forward, queued = base + 1, base + 2, base + 3, 50 + n
        steps.append((n + 5, start, start + 900_000))
        call(start, 900, 1, None, f"ProfilerStep#{n + 5}", 50001)
        own = {"shapes": types, "types": shapes} if swapped else {"shapes": shapes, "types": types}
        call(start + 10_000, 50, 1, base + 10, "aten::add", 50001, **own, chain=n)
        call(start + 20_000, 10, 1, base + 11, "aclnnAdd", 50001)
        call(start + 25_000, 2, 1, base + 12, "Enqueue", 50002)
        call(start + 30_000, 40, 2, base + 13, "Dequeue@aclnnAdd", 50002)
        call(start + 80_000, 20, 1, base + 14, "c10d::allreduce_", 50001)
        call(start + 110_000, 5, 1, None, "loop.py(3): run", 50003)
        call(start + 120_000, 5, 1, base + 15, "aten::mul", 50001, sequence=9)
        call(start + 130_000, 5, 3, base + 16, "MulBackward0", 50001, sequence=9)
        links += [(base + 10, 0), (base + 11, kernel), (base + 12, queued), (base + 13, queued)]
        links += [(base + 14, collective), (base + 15, forward), (base + 16, forward)]
        # the second pair of the queue bears the number of a kernel's connection: another numbering
        calls.append((start + 35_000, start + 45_000, 10000, PROCESS | 2, kernel, text("launch")))
        calls.append((start + 85_000, start + 95_000, 20000, PROCESS | 1, collective, text("hcom_allReduce_")))
        calls.append((start + 200_000, start + 300_000, 20000, PROCESS | 1, base + 9, text("aclrtSynchronizeDevice")))
        context = 0 if n else NONE
        if n:
            tasks.append((start + 49_000, start + 72_000, 0, kernel, base + 30, 77, text("AI_CORE"), NONE, 2, 7, NONE))
        kind = "MIX_AIV" if n else "AI_CORE"
        tasks.append(
            (
                start + 50_000,
                start + 70_000,
                0,
                kernel,
                base + 20,
                77,
                text(f"KERNEL_{kind}".replace("_MIX_AIV", "_AICORE").replace("AI_CORE", "AICORE")),
                context,
                2,
                7,
                NONE,
            )
        )
        more = (text("dynamic"), text("YES"), 3) if new else ()
        compute.append(
            (
                text(f"aclnnAdd_{n}"),
                base + 20,
                24,
                0,
                text(kind),
                text("Add"),
                *(text(word) for word in ("FORMAT_ND;ND", "FLOAT;DT_BF16", '"4,8;8"', "ND", "FLOAT", '"4,8"')),
                *more,
            )
        )
        counters += [(base + 20, text("aic_total_time"), 18_000.5), (base + 20, text("aic_total_cycles"), 777_600)]
        counters.append((base + 20, text("aic_mac_ratio"), 0.5))
        begin, end = start + 100_000, start + 400_000
        group = text("10.0.0.1%eth0_60000_0_17364105")
        talks.append(
            (text(f"hcom_allReduce__123_{n}_1"), begin, end, collective, group, n + 1, text("hcom_allReduce_"))
        )
        tasks.append((begin, end, 0, collective, base + 21, 77, text("Notify Wait"), 0, 4, 8, NONE))
        parts.append((base + 21, text("Notify_Wait"), 3, group, 0, 6 if n else NONE, 2, 0, 65535, n + 1))
        tasks.append((start + 410_000, start + 410_100, 0, 9999, base + 22, 77, text("EVENT_WAIT"), NONE, 2, 9, NONE))
        tasks.append((start + 420_000, start + 430_000, 0, 9998, base + 23, 77, text("MEMCPY_ASYNC"), NONE, 2, 9, NONE))
    chains = [(n, text(frame), depth) for n in (0, 1) for depth, frame in ((1, "main.py(2): run"), (0, "nn.py(1): f"))]
    blocks = "blockNum INTEGER, mixBlockNum INTEGER" if new else "blockDim INTEGER, mixBlockDim INTEGER"
    columns = (
        f"name INTEGER, globalTaskId INTEGER PRIMARY KEY, {blocks}, taskType INTEGER, opType INTEGER, "
        "inputFormats INTEGER, inputDataTypes INTEGER, inputShapes INTEGER, outputFormats INTEGER, "
        "outputDataTypes INTEGER, outputShapes INTEGER"
    ) + (", opState INTEGER, hf32Eligible INTEGER, blockDim INTEGER" if new else "")
    times = "INTEGER" if new else "TEXT"
    tables: dict[str, tuple[str, Rows]] = {
        "TASK": (
            "startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER, "
            "globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER",
            tasks,
        ),
        "COMPUTE_TASK_INFO": (columns, compute),
        "TASK_PMU_INFO": ("globalTaskId INTEGER, name INTEGER, value NUMERIC", counters),
        "COMMUNICATION_OP": (
            "opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER, "
            "opId INTEGER PRIMARY KEY, opType INTEGER",
            talks,
        ),
        "COMMUNICATION_TASK_INFO": (
            "globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, groupName INTEGER, srcRank INTEGER, "
            "dstRank INTEGER, transportType INTEGER, size INTEGER, linkType INTEGER, opId INTEGER",
            parts,
        ),
        "CANN_API": (
            "startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER PRIMARY KEY, "
            "name INTEGER",
            calls,
        ),
        "PYTORCH_API": (
            f"startNs {times}, endNs {times}, globalTid INTEGER, connectionId INTEGER, name INTEGER, "
            "sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, "
            "callchainId INTEGER, type INTEGER",
            framework,
        ),
        "CONNECTION_IDS": ("id INTEGER, connectionId INTEGER", links),
        "PYTORCH_CALLCHAINS": ("id INTEGER, stack INTEGER, stackDepth INTEGER", chains),
        "STEP_TIME": ("id INTEGER, startNs INTEGER, endNs INTEGER", steps),
        "META_DATA": (
            "name TEXT, value TEXT",
            [
                ("SCHEMA_VERSION", "1.0.0"),
                ("ENV_VARIABLES", '{"HCCL_ALGO": "", "ASCEND_LAUNCH_BLOCKING": "1"}'),
                ("distributed_args", '{"world_size": 8, "tensor_model_parallel_size": 2}'),
            ],
        ),
        "MEMORY_RECORD": (
            "component INTEGER, timestamp INTEGER, totalAllocated INTEGER, totalReserved INTEGER, totalActive INTEGER",
            [(text("PTA"), T0 + 5, 10, 20, 10), (text("PTA"), T0 + 9, 30, 40, None)],
        ),
        "NPU_MEM": (
            "type INTEGER, ddr NUMERIC, hbm NUMERIC, timestampNs INTEGER",
            [(text("app"), 0, 4096, T0 + 7), (text("device"), 0, 9999, T0 + 7)],
        ),
        "OP_MEMORY": (
            "name INTEGER, size INTEGER, allocationTime INTEGER, releaseTime INTEGER, streamPtr INTEGER",
            [
                (text("aten::add"), 512, T0, None, 7),
                (text("Add1"), 64, T0, T0 + 5, None),
                (text("bad"), 1, T0, T0 - 5, 7),
            ],
        ),
        "AICORE_FREQ": ("timestampNs NUMERIC, freq INTEGER", [(T0 + 50, 1650), (T0, 1800)]),
        "ENUM_MODULE": ("id INTEGER PRIMARY KEY, name TEXT", [(3, "HCCL")]),
        "NPU_MODULE_MEM": ("moduleId INTEGER, timestampNs INTEGER, totalReserved NUMERIC", [(3, T0, 1e9), (99, T0, 5)]),
        "OVERLAP_ANALYSIS": (
            "id INTEGER PRIMARY KEY, startNs INTEGER, endNs INTEGER, type INTEGER",
            [(4, T0 + 50, T0 + 70, 3), (5, T0, T0 + 50, 2)],
        ),
        "GC_RECORD": ("startNs INTEGER, endNs INTEGER, globalTid INTEGER", [(T0, T0 + 10, PROCESS | 1)]),
    }
    tables["STRING_IDS"] = text.table()
    return {name: table for name, table in tables.items() if name not in set(without)}


def analysis(*, new: bool = False) -> dict[str, tuple[str, Rows]]:
    """What the exporter computed, of the older (``deviceId`` absent) or newer form."""
    device, own = (", deviceId INTEGER", (4,)) if new else ("", ())
    name = "hcom_allReduce__123_0_1" + ("@555" if new else "")
    group = "555"
    return {
        "StepTraceTime": (
            "step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, overlapped NUMERIC, communication "
            f"NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, preparing NUMERIC{device}",
            [("5", 20, 300.5, 0, 300, 30, 350, 0, -4, *own)],
        ),
        "CommAnalyzerTime": (
            "hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, transit_time NUMERIC, "
            f"wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT, type TEXT{device}",
            [
                (name, group, (T0 + 100_000) / 1000, 0.3, 0.1, 0.05, 0, 0.15, "step5", "collective", *own),
                ("Total Op Info", "", 0, 0.3, 0.1, 0, 0, 0, "step5", "collective", *own),
            ],
        ),
        "CommAnalyzerBandwidth": (
            "hccl_op_name TEXT, group_name TEXT, transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, "
            "bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, count NUMERIC, step TEXT, type TEXT"
            f"{device}",
            [
                (name, group, "HCCS", 30, 0.1, 15.5, 0, 2, 12, "step5", "collective", *own),
                (name, group, "HCCS", 30, 0.1, 15.5, 0, 3, 2, "step5", "collective", *own),
                (name, group, "SDMA", 30, 0.1, 15.5, 0, 0, 0, "step5", "collective", *own),
                (name, group, "RDMA", 0, 0, 0, 0, 0, 0, "step5", "collective", *own),
            ],
        ),
        "CommAnalyzerMatrix": (
            "hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, transit_size "
            f"NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type TEXT, op_name TEXT{device}",
            [("allreduce-top1", group, "0", "1", "HCCS", 30, 0.1, 15.5, "step5", "collective", name, *own)],
        ),
    }


def rank(directory: Path, number: int = 0, *, info: bool = True, **how: Any) -> Path:
    """A ``*_ascend_pt`` directory with a DB export."""
    output = directory / "ASCEND_PROFILER_OUTPUT"
    write(output / f"ascend_pytorch_profiler_{number}.db", export(**how))
    write(output / "analysis.db", analysis(new=how.get("new", False)))
    if info:
        level = '{"config": {"experimental_config": {"_profiler_level": "Level1", "_export_type": "db"}}}'
        (directory / f"profiler_info_{number}.json").write_text(level)
    return directory
