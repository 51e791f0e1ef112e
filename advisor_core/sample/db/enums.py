"""The enumerations that a file carries along, and the numbers that rows take from them
(docs/sources.md#database-export)."""

from __future__ import annotations

from ..export.generation import Names
from ..export.planes import INVALID
from .database import Database

NONE = {65534: "N/A", 65535: INVALID}
API_TYPES = {5000: "runtime", 5500: "hccl", 10000: "node", 15000: "model", 20000: "acl"}
FRAMEWORK_TYPES = {50001: "op", 50002: "queue", 50003: "trace", 50004: "mstx"}
DATA_TYPES = {
    0: "INT8",
    1: "INT16",
    2: "INT32",
    3: "FP16",
    4: "FP32",
    5: "INT64",
    6: "UINT64",
    7: "UINT8",
    8: "UINT16",
    9: "UINT32",
    10: "FP64",
    11: "BFP16",
    12: "INT128",
    **NONE,
}
LINK_TYPES = {
    0: "ON_CHIP",
    1: "HCCS",
    2: "PCIE",
    3: "ROCE",
    4: "SIO",
    5: "HCCS_SW",
    6: "STANDARD_ROCE",
    7: "RESERVED",
    **NONE,
}
TRANSPORT_TYPES = {0: "SDMA", 1: "RDMA", 2: "LOCAL", **NONE}
RDMA_TYPES = {
    0: "RDMA_SEND_NOTIFY",
    1: "RDMA_SEND_PAYLOAD",
    2: "RDMA_PAYLOAD_PREPARE",
    3: "RDMA_PAYLOAD_CHECK",
    4: "RDMA_PAYLOAD_ACK",
    5: "RDMA_SEND_OP",
    **NONE,
}
MSTX_TYPES = {0: "marker", 1: "push/pop", 2: "start/end", 3: "marker_ex"}
_MODULES = """
SLOG IDEDD IDEDH HCCL FMK HIAIENGINE DVPP RUNTIME CCE HDC DRV MDCFUSION MDCLOCATION MDCPERCEPTION MDCFSM MDCCOMMON
MDCMONITOR MDCBSWP MDCDEFAULT MDCSC MDCPNC MLL DEVMM KERNEL LIBMEDIA CCECPU ASCENDDK ROS HCCP ROCE TEFUSION PROFILING
DP APP TS TSDUMP AICPU LP TDT FE MD MB ME IMU IMP GE MDCFUSA CAMERA ASCENDCL TEEOS ISP SIS HSM DSS PROCMGR BBOX
AIVECTOR TBE FV MDCMAP TUNE HSS FFTS OP UDF HICAID TSYNC AUDIO TPRT ASCENDCKERNEL ASYS ATRACE RTC SYSMONITOR AMP
ADETECT MBUFF CUSTOM
"""
MODULES = dict(enumerate(_MODULES.split()))


def number(members: dict[int, str], name: str) -> int:
    """The number of a member."""
    return next(key for key, value in members.items() if value == name)


def enumerations(database: Database, names: Names) -> None:
    """All enumerations."""
    database.enumeration("ENUM_MODULE", MODULES)
    api = {**API_TYPES, 5500: names.collective.lower(), **FRAMEWORK_TYPES}
    database.enumeration("ENUM_API_TYPE", api)
    database.enumeration("ENUM_HCCL_DATA_TYPE", DATA_TYPES)
    database.enumeration("ENUM_HCCL_LINK_TYPE", LINK_TYPES)
    database.enumeration("ENUM_HCCL_TRANSPORT_TYPE", TRANSPORT_TYPES)
    database.enumeration("ENUM_HCCL_RDMA_TYPE", RDMA_TYPES)
    database.enumeration("ENUM_MSTX_EVENT_TYPE", MSTX_TYPES)
