"""The columns of every table that is written, as in real files (docs/sources.md#database-export).

``added`` are the columns that only newer files have, ``leading`` those of them that come first.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """Columns as SQL, and an index where the real file has one."""

    columns: tuple[str, ...]
    added: tuple[str, ...] = ()
    leading: tuple[str, ...] = ()
    index: tuple[str, str] | None = None


def _integers(text: str) -> tuple[str, ...]:
    return tuple(f"{name} INTEGER" for name in text.split())


def _mixed(text: str) -> tuple[str, ...]:
    return tuple(column.strip() for column in text.split(","))


ENUM = Table(("id INTEGER PRIMARY KEY", "name TEXT"))

TABLES: dict[str, Table] = {
    "NPU_INFO": Table(_mixed("id INTEGER, name TEXT")),
    "SESSION_TIME_INFO": Table(_integers("startTimeNs endTimeNs")),
    "HOST_INFO": Table(_mixed("hostUid TEXT, hostName TEXT")),
    "META_DATA": Table(_mixed("name TEXT, value TEXT")),
    "STRING_IDS": Table(_mixed("id INTEGER PRIMARY KEY, value TEXT")),
    "RANK_DEVICE_MAP": Table(_integers("rankId deviceId")),
    "AICORE_FREQ": Table(_mixed("deviceId INTEGER, timestampNs NUMERIC, freq INTEGER")),
    "TASK": Table(
        _integers(
            "startNs endNs deviceId connectionId globalTaskId globalPid taskType contextId streamId taskId modelId"
        ),
        index=("TaskIndex", "startNs,globalTaskId"),
    ),
    "COMPUTE_TASK_INFO": Table(
        (
            "name INTEGER",
            "globalTaskId INTEGER PRIMARY KEY",
            *_integers(
                "blockDim mixBlockDim taskType opType inputFormats inputDataTypes inputShapes outputFormats "
                "outputDataTypes outputShapes attrInfo"
            ),
        ),
        added=_integers("opState"),
    ),
    "TASK_PMU_INFO": Table(_mixed("globalTaskId INTEGER, name INTEGER, value NUMERIC")),
    "COMMUNICATION_TASK_INFO": Table(
        _integers(
            "name globalTaskId taskType planeId groupName notifyId rdmaType srcRank dstRank transportType size "
            "dataType linkType opId"
        ),
        added=("isMaster INTEGER", "bandwidth NUMERIC"),
        index=("CommunicationTaskIndex", "globalTaskId"),
    ),
    "COMMUNICATION_OP": Table(
        (
            *_integers("opName startNs endNs connectionId groupName"),
            "opId INTEGER PRIMARY KEY",
            *_integers("relay retry dataType algType"),
            "count NUMERIC",
            "opType INTEGER",
        ),
        added=_integers("deviceId"),
    ),
    "CANN_API": Table((*_integers("startNs endNs type globalTid"), "connectionId INTEGER PRIMARY KEY", "name INTEGER")),
    "PYTORCH_API": Table(
        (
            "startNs TEXT",
            "endNs TEXT",
            *_integers(
                "globalTid connectionId name sequenceNumber fwdThreadId inputDtypes inputShapes callchainId type"
            ),
        )
    ),
    "CONNECTION_IDS": Table(_integers("id connectionId")),
    "PYTORCH_CALLCHAINS": Table(_integers("id stack stackDepth")),
    "MSTX_EVENTS": Table(
        _integers("startNs endNs eventType rangeId category message globalTid endGlobalTid domainId connectionId")
    ),
    "GC_RECORD": Table(_integers("startNs endNs globalTid")),
    "STEP_TIME": Table(_integers("id startNs endNs")),
    "NPU_MEM": Table(
        _mixed("type INTEGER, ddr NUMERIC, hbm NUMERIC, timestampNs INTEGER, deviceId INTEGER"),
    ),
    "NPU_MODULE_MEM": Table(
        _mixed("moduleId INTEGER, timestampNs INTEGER, totalReserved NUMERIC, deviceId INTEGER"),
    ),
    "MEMORY_RECORD": Table(
        _integers("component timestamp totalAllocated totalReserved totalActive streamPtr deviceId")
    ),
    "OP_MEMORY": Table(
        _integers(
            "name size allocationTime releaseTime activeReleaseTime duration activeDuration allocationTotalAllocated "
            "allocationTotalReserved allocationTotalActive releaseTotalAllocated releaseTotalReserved "
            "releaseTotalActive streamPtr deviceId"
        )
    ),
    "CommAnalyzerBandwidth": Table(
        _mixed(
            "hccl_op_name TEXT, group_name TEXT, transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, "
            "bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, count NUMERIC, "
            "total_duration NUMERIC, step TEXT, type TEXT"
        )
    ),
    "CommAnalyzerMatrix": Table(
        _mixed(
            "hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, "
            "transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, step TEXT, type TEXT, op_name TEXT"
        )
    ),
    "CommAnalyzerTime": Table(
        _mixed(
            "hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, transit_time NUMERIC, "
            "wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, step TEXT, type TEXT"
        )
    ),
    "StepTraceTime": Table(
        _mixed(
            "step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, overlapped NUMERIC, "
            "communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, "
            "communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC"
        ),
        leading=_integers("deviceId"),
    ),
}
