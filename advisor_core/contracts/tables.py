"""The canonical tables: one vocabulary for every export format.

Times are int64 ns (points in time: ns since the epoch), sizes int64 bytes. Repeated strings are categoricals.
``float`` columns may hold NaN, integer columns use -1, text uses '' where the export has no value. Every table has
``source_row``: where a row was read, as its `RowSource` understands it (the 1-based line of a CSV, the ordinal of a
trace event, the number of a row among those read of a database); `RowSource.positions` turns it into what a reader can
look up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

import numpy as np
import pandas as pd

from advisor_core.contracts.columns import Column, Dtype
from advisor_core.contracts.frames import frame_of
from advisor_core.contracts.keys import Key

if TYPE_CHECKING:
    import numpy.typing as npt

PositionKind = Literal["line", "offset", "rowid"]
Int64Array: TypeAlias = "npt.NDArray[np.int64]"


class RowSource(Protocol):
    """The file a table was read from."""

    @property
    def file(self) -> str:
        """Path relative to the input."""
        ...

    @property
    def position(self) -> PositionKind: ...

    @property
    def sha256(self) -> str | None: ...

    def positions(self, source_rows: Int64Array) -> Int64Array:
        """1-based lines, 0-based byte offsets or rowids of the given source rows."""
        ...

    def tables(self, source_rows: Int64Array) -> Sequence[str]:
        """The table of a database that each of the given source rows is in; empty for a file that has no tables."""
        ...


@dataclass(frozen=True, eq=False)
class TableSchema(Key["pd.DataFrame"]):
    """The content of a canonical table, and the key to its frame."""

    columns: tuple[Column, ...]

    def units(self) -> dict[str, str]:
        return {column.name: column.unit for column in self.columns}

    def empty(self) -> pd.DataFrame:
        return self.conform(pd.DataFrame(index=pd.RangeIndex(0)))

    def conform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """``frame`` with exactly the columns of the schema, in order, typed; what is missing is filled with the
        'no value' of its type. Raises ValueError where a column cannot take its type."""
        given = {str(name): values for name, values in frame.items()}
        columns = (*self.columns, SOURCE_ROW)
        typed_columns = [
            _typed(given[column.name], column) if column.name in given else _absent(column, len(frame))
            for column in columns
        ]
        return frame_of({column.name: array for column, array in zip(columns, typed_columns, strict=True)}, len(frame))


SOURCE_ROW = Column("source_row", "int", "", "where the row was read")


@dataclass(frozen=True)
class Table:
    """A canonical table and the file its rows come from."""

    schema: TableSchema
    frame: pd.DataFrame
    source: RowSource

    def positions(self, rows: Int64Array) -> Int64Array:
        """Positions in the file of the rows at ``rows`` (0-based row numbers of the frame)."""
        return self.source.positions(self.frame["source_row"].to_numpy()[rows])

    def tables(self, rows: Int64Array) -> Sequence[str]:
        """Tables of the database that the rows at ``rows`` are in; empty where the source is no database."""
        return self.source.tables(self.frame["source_row"].to_numpy()[rows])


@dataclass(frozen=True)
class RowRef:
    """Rows of a canonical table, by their 0-based number in its frame."""

    table: TableSchema
    rows: Int64Array


def row_refs(frame: pd.DataFrame) -> list[RowRef]:
    """References to the rows that ``table`` and ``row`` of a frame name, one for each table, in order of the frame."""
    tables, rows = frame["table"].astype(str).to_numpy(), frame["row"].to_numpy(dtype=np.int64)
    return [RowRef(SCHEMAS[name], rows[tables == name]) for name in dict.fromkeys(tables.tolist())]


_DTYPES: Mapping[Dtype, Literal["int64", "float64", "bool"]] = {"int": "int64", "float": "float64", "bool": "bool"}
"""Types of numpy by name: tables are declared by commands that measure nothing, too."""


def _typed(values: pd.Series, column: Column) -> Any:
    # A column that is right already stays as it is: most are, and a table has dozens.
    if column.dtype == "text":
        values = values if isinstance(values.dtype, pd.CategoricalDtype) else values.astype("category")
        # Categories are plain objects in every table, as names of columns are: an Arrow array of them, of pandas 3, is
        # turned back and forth whenever rows are compared or grouped, and does not mix with plain ones.
        texts = values.cat.categories
        if texts.dtype == object:
            return values.array
        return pd.Categorical.from_codes(values.cat.codes.to_numpy(), categories=texts.astype(object))
    wanted = _DTYPES[column.dtype]
    return (values if values.dtype == wanted else values.astype(wanted)).to_numpy()


@cache
def _without_text() -> pd.CategoricalDtype:
    """One for all columns: to make it takes longer than to make a column of it."""
    return pd.CategoricalDtype(pd.Index([""], dtype=object))


def _absent(column: Column, rows: int) -> object:
    if column.dtype == "text":
        return pd.Categorical.from_codes(np.zeros(rows, dtype=np.int8), dtype=_without_text())
    if column.dtype == "int":
        return np.full(rows, -1, dtype=np.int64)
    return np.full(rows, np.nan) if column.dtype == "float" else np.zeros(rows, dtype=bool)


def _schema(name: str, meaning: str, rows: Iterable[tuple[str, Dtype, str, str, str]]) -> TableSchema:
    """``rows``: name, dtype, unit, meaning and Chinese heading of each column."""
    columns = (Column(name, dtype, unit, meaning, zh=zh) for name, dtype, unit, meaning, zh in rows)
    return TableSchema(name, meaning, tuple(columns))


STEP_TRACE = _schema(
    "step_trace",
    "the exporter's own summary of each step (step_trace_time.csv, StepTraceTime)",
    [
        ("step", "int", "", "step id, -1 where the export names none", "step"),
        ("computing_ns", "float", "ns", "union of compute tasks", "计算"),
        ("uncovered_communication_ns", "float", "ns", "communication not covered by computing", "未掩盖通信"),
        ("overlapped_ns", "float", "ns", "communication covered by computing", "已掩盖"),
        ("communication_ns", "float", "ns", "union of collectives", "通信"),
        ("free_ns", "float", "ns", "neither computing nor communicating", "空闲"),
        ("stage_ns", "float", "ns", "first to last device task, less the bubble", "流水级"),
        ("bubble_ns", "float", "ns", "time in receive operations", "流水线空泡"),
        ("preparing_ns", "float", "ns", "host start of the step to its first device task", "准备"),
    ],
)

KERNELS = _schema(
    "kernels",
    "one row per device task that computes or communicates (kernel_details.csv, op_summary_*.csv, COMPUTE_TASK_INFO)",
    [
        ("step", "int", "", "step id, -1 where the export names none", "step"),
        ("name", "text", "", "kernel name", "名称"),
        ("type", "text", "", "operator type, '' where the level does not record it", "类型"),
        ("core", "text", "", "AI_CORE, AI_VECTOR_CORE, MIX_AIC, MIX_AIV, AI_CPU, DSA, COMMUNICATION or ''", "核类型"),
        ("start_ns", "int", "ns", "start", "开始"),
        ("duration_ns", "int", "ns", "duration; of a collective: including its waiting", "时长"),
        ("wait_ns", "int", "ns", "gap since the previous task ended, as the exporter computed it", "等待"),
        ("stream", "int", "", "stream id", "流"),
        ("task", "int", "", "task id", "任务号"),
        ("model", "int", "", "graph id, -1 for a kernel that is not in a graph", "图编号"),
        ("op_state", "text", "", "static or dynamic", "静态或动态"),
        ("block_dim", "int", "", "logical blocks", "核数"),
        ("mix_block_dim", "int", "", "logical blocks on the second core type of a MIX kernel", "第二类核的核数"),
        ("hf32", "text", "", "YES or NO: eligible for HF32", "HF32"),
        ("input_shapes", "text", "", "shapes, ';' between tensors, ',' between axes, no quotes", "输入 shape"),
        ("input_dtypes", "text", "", "canonical dtypes, ';' between tensors", "输入类型"),
        ("input_formats", "text", "", "canonical formats, ';' between tensors", "输入格式"),
        ("output_shapes", "text", "", "as input_shapes", "输出 shape"),
        ("output_dtypes", "text", "", "as input_dtypes", "输出类型"),
        ("output_formats", "text", "", "as input_formats", "输出格式"),
        ("aic_ns", "float", "ns", "time on the cube cores, mean over cores", "aic 耗时"),
        ("aic_cycles", "float", "cycles", "cycles of all cube cores", "aic 周期数"),
        ("aic_mac_ns", "float", "ns", "cube pipe", "aic mac"),
        ("aic_scalar_ns", "float", "ns", "scalar pipe of the cube core", "aic scalar"),
        ("aic_mte1_ns", "float", "ns", "L1 to L0", "aic mte1"),
        ("aic_mte2_ns", "float", "ns", "memory to L1", "aic mte2"),
        ("aic_fixpipe_ns", "float", "ns", "L0C to memory", "aic fixpipe"),
        ("aiv_ns", "float", "ns", "time on the vector cores, mean over cores", "aiv 耗时"),
        ("aiv_cycles", "float", "cycles", "cycles of all vector cores", "aiv 周期数"),
        ("aiv_vec_ns", "float", "ns", "vector pipe", "aiv vec"),
        ("aiv_scalar_ns", "float", "ns", "scalar pipe of the vector core", "aiv scalar"),
        ("aiv_mte2_ns", "float", "ns", "memory to UB", "aiv mte2"),
        ("aiv_mte3_ns", "float", "ns", "UB to memory", "aiv mte3"),
        (
            "cube_utilization",
            "float",
            "ratio",
            "cube cycles over cycles of the duration: occupancy, not efficiency",
            "cube 占用率",
        ),
    ],
)

OPERATORS = _schema(
    "operators",
    "one row per framework operator call (operator_details.csv)",
    [
        ("name", "text", "", "operator", "名称"),
        ("input_shapes", "text", "", "shapes, ';' between tensors", "输入 shape"),
        ("call_stack", "text", "", "innermost frame first, one per line", "调用栈"),
        ("host_self_ns", "int", "ns", "host time without children", "host 自身耗时"),
        ("host_total_ns", "int", "ns", "host time with children", "host 总耗时"),
        ("device_self_ns", "int", "ns", "device time of its own kernels", "device 自身耗时"),
        ("device_total_ns", "int", "ns", "device time with children", "device 总耗时"),
    ],
)

OP_STATISTIC = _schema(
    "op_statistic",
    "the exporter's totals by operator type (op_statistic.csv)",
    [
        ("type", "text", "", "operator type", "类型"),
        ("core", "text", "", "core type, as in kernels", "核类型"),
        ("count", "int", "", "calls", "数量"),
        ("total_ns", "int", "ns", "summed duration", "合计"),
        ("min_ns", "int", "ns", "shortest", "最短"),
        ("mean_ns", "int", "ns", "mean", "均值"),
        ("max_ns", "int", "ns", "longest", "最长"),
        ("share", "float", "ratio", "of the total of all types", "占比"),
    ],
)

API_STATISTIC = _schema(
    "api_statistic",
    "the exporter's totals by CANN API (api_statistic.csv); nested calls count at every level",
    [
        ("level", "text", "", "acl, model, node, runtime or communication", "级别"),
        ("name", "text", "", "API", "名称"),
        ("count", "int", "", "calls", "数量"),
        ("total_ns", "int", "ns", "summed time", "合计"),
        ("mean_ns", "int", "ns", "mean", "均值"),
        ("min_ns", "int", "ns", "shortest", "最短"),
        ("max_ns", "int", "ns", "longest", "最长"),
    ],
)

COLLECTIVES = _schema(
    "collectives",
    "one row per collective or point-to-point operation (communication.json, metadata of NCCL). The split of elapse_ns "
    "into transit, wait and idle is taken from one plane and contradicts the tasks of the other planes: show it, do "
    "not rely on it",
    [
        ("step", "int", "", "step id, -1 where the export names none", "step"),
        ("name", "text", "", "for example hcom_allReduce__586_0_1", "名称"),
        ("group", "text", "", "hash of the communication group", "通信域"),
        ("kind", "text", "", "collective or p2p", "类别"),
        ("start_ns", "int", "ns", "start", "开始"),
        ("elapse_ns", "int", "ns", "duration including waiting", "总时长"),
        ("transit_ns", "int", "ns", "as the exporter says", "传输"),
        ("wait_ns", "int", "ns", "as the exporter says", "等待"),
        ("synchronization_ns", "int", "ns", "as the exporter says", "同步"),
        ("idle_ns", "int", "ns", "as the exporter says", "空闲"),
        ("operation", "text", "", "allReduce, send, ...; '' where only the name tells", "通信算子"),
        ("index", "int", "", "n-th call of the group, the same number on every rank; -1 by the name only", "序号"),
        ("members", "int", "", "ranks in the group, -1 unknown", "成员数"),
        ("bytes", "int", "B", "moved over links by this rank, -1 where it is told by transport", "字节数"),
    ],
)

COLLECTIVE_BANDWIDTH = _schema(
    "collective_bandwidth",
    "what each operation moved over each transport (communication.json)",
    [
        ("step", "int", "", "step id", "step"),
        ("name", "text", "", "operation", "名称"),
        ("group", "text", "", "hash of the group", "通信域"),
        ("transport", "text", "", "RDMA, HCCS, PCIE, SDMA (= HCCS + PCIE + SIO) or SIO", "传输方式"),
        ("bytes", "int", "B", "moved", "字节数"),
        ("transit_ns", "int", "ns", "time moving", "传输"),
        ("bandwidth", "float", "B/s", "bytes over transit time", "带宽"),
        ("packets", "int", "", "packets", "包数"),
        ("max_packet_bytes", "int", "B", "largest packet", "最大包"),
        ("large_packet_ratio", "float", "ratio", "as the exporter says", "大包占比"),
    ],
)

LINKS = _schema(
    "links",
    "what each operation moved between each pair of group-local ranks (communication_matrix.json)",
    [
        ("step", "int", "", "step id", "step"),
        ("name", "text", "", "operation, for example allreduce-top1", "名称"),
        ("group", "text", "", "hash of the group", "通信域"),
        ("op", "text", "", "the operation it was read from", "来源算子"),
        ("source_rank", "int", "", "group-local rank", "源 rank"),
        ("target_rank", "int", "", "group-local rank", "目标 rank"),
        ("transport", "text", "", "LOCAL, HCCS, RDMA, PCIE or SIO", "传输方式"),
        ("bytes", "int", "B", "moved", "字节数"),
        ("transit_ns", "int", "ns", "time moving", "传输"),
        ("bandwidth", "float", "B/s", "bytes over transit time", "带宽"),
    ],
)

HOST_EVENTS = _schema(
    "host_events",
    "what threads of the host did (trace_view.json: the Python and CANN processes); runtime: calls of CANN, CUDA, HIP",
    [
        (
            "category",
            "text",
            "",
            "cpu_op, python_function, enqueue, dequeue, user_annotation, runtime, gc, os or mstx",
            "类别",
        ),
        (
            "name",
            "text",
            "",
            "as the trace names it (aten::add, Dequeue@aclnnAdd, AscendCL@aclnnAdd, Node@launch)",
            "名称",
        ),
        ("thread", "int", "", "OS thread id", "线程"),
        ("start_ns", "int", "ns", "start", "开始"),
        ("duration_ns", "int", "ns", "duration", "时长"),
        ("correlation", "int", "", "enqueue and dequeue: joins the two", "关联号"),
        ("connection", "int", "", "runtime: joins the call and the tasks it launched, -1 where beyond int64", "连接号"),
        ("item", "text", "", "runtime: what was launched (kernel name)", "下发对象"),
        ("call_stack", "text", "", "innermost frame first, one per line", "调用栈"),
        ("input_shapes", "text", "", "cpu_op: shapes of the inputs", "输入 shape"),
    ],
)

DEVICE_TASKS = _schema(
    "device_tasks",
    "what ran on each stream of the device (trace_view.json: Ascend Hardware)",
    [
        ("name", "text", "", "task", "名称"),
        ("task_type", "text", "", "AI_CORE, EVENT_WAIT_SQE, NOTIFY_WAIT, SDMA and so on", "任务类型"),
        ("stream", "int", "", "stream id", "流"),
        ("task", "int", "", "task id", "任务号"),
        ("connection", "int", "", "joins host call and task", "连接号"),
        ("start_ns", "int", "ns", "start", "开始"),
        ("duration_ns", "int", "ns", "duration", "时长"),
    ],
)

COMMUNICATION_TASKS = _schema(
    "communication_tasks",
    "what collectives did (trace_view.json: HCCL or Communication): the operations and the tasks of their planes",
    [
        ("lane", "text", "", "'Group 0 Communication' for whole operations, 'Plane 3' for tasks", "泳道"),
        ("group", "int", "", "index of the group the lane belongs to, -1 unknown", "通信域"),
        ("plane", "int", "", "plane of a task, -1 for a whole operation", "plane"),
        ("name", "text", "", "hcom_allReduce__586_0_1, Notify_Wait, Memcpy, Reduce_Inline, ...", "名称"),
        ("start_ns", "int", "ns", "start", "开始"),
        ("duration_ns", "int", "ns", "duration", "时长"),
        ("own_rank", "int", "", "group-local rank of this device", "本 rank"),
        ("peer_rank", "int", "", "group-local rank it moves data from or to, or waits for; -1 none", "对端 rank"),
        ("bytes", "int", "B", "moved", "字节数"),
        ("link", "text", "", "ON_CHIP, HCCS, PCIE, ROCE, SIO", "链路"),
        ("transport", "text", "", "LOCAL, SDMA, RDMA", "传输方式"),
        ("connection", "int", "", "joins host call and operation", "连接号"),
    ],
)

FLOWS = _schema(
    "flows",
    "arrows of the trace, one row per end (trace_view.json)",
    [
        ("kind", "text", "", "torch_to_npu, host_to_device, task_queue, forward_backward or mstx", "类别"),
        ("end", "text", "", "s (start) or f (finish)", "结束"),
        (
            "flow",
            "int",
            "",
            "id; ids beyond int64 are mapped to negative numbers, the same id to the same number",
            "箭头",
        ),
        ("thread", "int", "", "thread id of the host, or tid of a device lane", "线程"),
        ("device", "bool", "", "true where the end lies in a device or communication lane", "device"),
        ("time_ns", "int", "ns", "when", "时间"),
    ],
)

OVERLAP = _schema(
    "overlap",
    "the exporter's own analysis of overlap (trace_view.json: Overlap Analysis)",
    [
        ("kind", "text", "", "Computing, Communication, Communication(Not Overlapped) or Free", "类别"),
        ("start_ns", "int", "ns", "start", "开始"),
        ("duration_ns", "int", "ns", "duration", "时长"),
    ],
)

FREQUENCY = _schema(
    "frequency",
    "clock of the AI cores (trace_view.json: AI Core Freq)",
    [("time_ns", "int", "ns", "when it changed", "时间"), ("mhz", "float", "MHz", "clock from then on", "频率")],
)

MEMORY_RECORD = _schema(
    "memory_record",
    "memory over time by component (memory_record.csv)",
    [
        ("component", "text", "", "APP, PTA, GE, PTA+GE, WORKSPACE", "组件"),
        ("time_ns", "int", "ns", "when", "时间"),
        ("allocated_bytes", "float", "B", "allocated", "已分配"),
        ("reserved_bytes", "float", "B", "reserved", "已预留"),
        ("active_bytes", "float", "B", "active", "活跃显存"),
    ],
)

OPERATOR_MEMORY = _schema(
    "operator_memory",
    "allocations by operator (operator_memory.csv)",
    [
        ("name", "text", "", "operator", "名称"),
        ("bytes", "float", "B", "size; negative: freed without a recorded allocation", "字节数"),
        ("allocation_ns", "int", "ns", "when allocated, -1 before the window", "申请时间"),
        ("release_ns", "int", "ns", "when released, -1 after the window", "释放时刻"),
        ("allocated_bytes", "float", "B", "total allocated at allocation", "已分配"),
        ("reserved_bytes", "float", "B", "total reserved at allocation", "已预留"),
    ],
)

MODULE_MEMORY = _schema(
    "module_memory",
    "memory over time by component of CANN (npu_module_mem.csv)",
    [
        ("component", "text", "", "APP, HCCL, RUNTIME, SLOG, ...", "组件"),
        ("time_ns", "int", "ns", "when", "时间"),
        ("reserved_bytes", "float", "B", "reserved", "已预留"),
    ],
)

L2_CACHE = _schema(
    "l2_cache",
    "how tasks of the device met the L2 cache (l2_cache.csv)",
    [
        ("stream", "int", "", "stream id", "流"),
        ("task", "int", "", "task id", "任务号"),
        ("name", "text", "", "kernel name", "名称"),
        ("hit_rate", "float", "ratio", "accesses that hit, of all; A2 and A3 record none", "L2 命中率"),
        ("victim_rate", "float", "ratio", "accesses that drove other data out, of all; may exceed 1", "L2 换出率"),
    ],
)

CORE_COUNTERS = _schema(
    "core_counters",
    "what the cores counted of a kernel beside the times of pipes: one group of aic_metrics in a recording "
    "(kernel_details.csv, op_summary_*.csv, TASK_PMU_INFO)",
    [
        ("start_ns", "int", "ns", "start of the kernel, as in kernels", "开始"),
        ("stream", "int", "", "stream id, as in kernels", "流"),
        ("task", "int", "", "task id, as in kernels", "任务号"),
        ("counter", "text", "", "as the exporter names it, without unit: aic_main_mem_read_bw", "计数器"),
        ("value", "float", "", "B/s of a bandwidth, ratio of a ratio, B of data moved, else a count", "值"),
    ],
)

COUNTERS = _schema(
    "counters",
    "rates of the memory, the caches and the links of a device, sampled over time (trace_view.json: HBM, DDR, LLC, "
    "HCCS, PCIe, QoS; tables of these names)",
    [
        ("part", "text", "", "HBM, DDR, LLC, HCCS, PCIe or QoS", "部件"),
        ("channel", "text", "", "the one of several of its kind, '' where there is one", "通道"),
        ("counter", "text", "", "read, write, receive, transmit, moved, or one of these with what it is of", "计数器"),
        ("unit", "text", "", "B/s, ratio or ns", "单位"),
        ("time_ns", "int", "ns", "end of the interval that was sampled", "时间"),
        ("value", "float", "", "mean over the interval, in the unit", "值"),
    ],
)

PORTS = _schema(
    "ports",
    "what network ports of a device moved and lost, sampled over time (nic.csv, roce.csv; NIC, ROCE, NETDEV_STATS)",
    [
        ("port", "text", "", "NIC or RoCE and its number; MAC for what the adapter counts", "端口"),
        ("time_ns", "int", "ns", "end of the interval that was sampled", "时间"),
        ("capacity", "float", "B/s", "what the port can move in one direction", "端口带宽"),
        ("received", "float", "B/s", "received", "接收"),
        ("sent", "float", "B/s", "sent", "发送"),
        ("receive_packets", "float", "1/s", "packets received", "接收包"),
        ("transmit_packets", "float", "1/s", "packets sent", "发送包"),
        ("faulty", "bool", "", "packets had errors or were dropped in this interval", "有错包或丢包"),
        ("error_packets", "float", "count", "of them: with errors; NaN where only their share is recorded", "错包"),
        ("dropped_packets", "float", "count", "of them: dropped; NaN where only their share is recorded", "丢包"),
        ("sent_again", "float", "count", "packets sent again because no answer came in time", "超时重传包"),
        ("pause_frames", "float", "count", "pause frames (PFC) received: the switch held this port back", "PFC 帧"),
        ("congestion_notices", "float", "count", "congestion notifications (CNP) received", "CNP 包"),
    ],
)

GRAPH_MEMORY = _schema(
    "graph_memory",
    "memory of the operators of compiled graphs, as the compiler laid it out (static_op_mem.csv, static_op_mem_*.csv)",
    [
        ("graph", "int", "", "graph id, -1 where the export names none", "图"),
        ("subgraph", "text", "", "root node of the subgraph, 0 where the graph has none", "子图"),
        ("name", "text", "", "operator; TOTAL: all that the graph asks for", "名称"),
        ("allocated_node", "int", "", "when it is allocated, in nodes of the graph", "分配时刻"),
        ("released_node", "int", "", "when it is released, in nodes of the graph; -1 with the graph", "释放时刻"),
        ("bytes", "float", "B", "size", "字节数"),
    ],
)

AI_CPU_NODES = _schema(
    "ai_cpu_nodes",
    "nodes that prepare data on the AI CPU, stage by stage (data_preprocess.csv, aicpu_*.csv)",
    [
        ("time_ns", "int", "ns", "when it was recorded, -1 where the export does not say", "时间"),
        ("name", "text", "", "node", "名称"),
        ("compute_ns", "float", "ns", "computing", "计算"),
        ("copy_ns", "float", "ns", "copying memory", "拷贝"),
        ("run_ns", "float", "ns", "running: preparing the operator, computing and copying", "执行"),
        ("dispatch_ns", "float", "ns", "being handed to a thread", "分发"),
        ("total_ns", "float", "ns", "handing over, scheduling and running together", "合计"),
        ("stream", "int", "", "stream id, -1 where the export names none", "流"),
        ("task", "int", "", "task id, -1 where the export names none", "任务号"),
    ],
)

SCHEMAS: dict[str, TableSchema] = {
    schema.name: schema
    for schema in (
        STEP_TRACE,
        KERNELS,
        OPERATORS,
        OP_STATISTIC,
        API_STATISTIC,
        COLLECTIVES,
        COLLECTIVE_BANDWIDTH,
        LINKS,
        HOST_EVENTS,
        DEVICE_TASKS,
        COMMUNICATION_TASKS,
        FLOWS,
        OVERLAP,
        FREQUENCY,
        MEMORY_RECORD,
        OPERATOR_MEMORY,
        MODULE_MEMORY,
        L2_CACHE,
        CORE_COUNTERS,
        COUNTERS,
        PORTS,
        GRAPH_MEMORY,
        AI_CPU_NODES,
    )
}
