"""The canonical tables: one vocabulary for every export format.

Times are int64 ns (points in time: ns since the epoch), sizes int64 bytes. Repeated strings are categoricals.
``float`` columns may hold NaN, integer columns use -1, text uses '' where the export has no value. Every table has
``source_row``: where a row was read, as its `RowSource` understands it (the 1-based line of a CSV, the ordinal of a
trace event, the number of a row among those read of a database); `RowSource.positions` turns it into what a reader can
look up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from advisor_core.contracts.keys import Key

PositionKind = Literal["line", "offset", "rowid"]
Dtype = Literal["int", "float", "bool", "text"]
Int64Array = npt.NDArray[np.int64]


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
        """Which table of a database each of the given source rows is in; empty for a file that has no tables."""
        ...


@dataclass(frozen=True)
class Field:
    """A column of a canonical table."""

    name: str
    dtype: Dtype
    unit: str
    meaning: str


@dataclass(frozen=True, eq=False)
class TableSchema(Key[pd.DataFrame]):
    """What a canonical table holds, and the key to its frame."""

    fields: tuple[Field, ...]

    def units(self) -> dict[str, str]:
        return {field.name: field.unit for field in self.fields}

    def empty(self) -> pd.DataFrame:
        return self.conform(pd.DataFrame(index=pd.RangeIndex(0)))

    def conform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """``frame`` with exactly the columns of the schema, in order, typed; what is missing is filled with the
        'no value' of its type. Raises ValueError where a column cannot take its type."""
        columns: dict[str, object] = {}
        for field in (*self.fields, SOURCE_ROW):
            if field.name in frame:
                columns[field.name] = _typed(frame[field.name], field)
            else:
                columns[field.name] = _absent(field, len(frame))
        typed = pd.DataFrame(columns, index=pd.RangeIndex(len(frame)), copy=False)
        # Names as plain objects: pandas 3 makes them an Arrow array, which every small frame taken from this one has
        # to turn back to find a column.
        typed.columns = pd.Index(list(columns), dtype=object)
        return typed


SOURCE_ROW = Field("source_row", "int", "", "where the row was read")


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
    """What the columns ``table`` and ``row`` of a frame refer to, a reference for each table, in order of the frame."""
    tables, rows = frame["table"].astype(str).to_numpy(), frame["row"].to_numpy(dtype=np.int64)
    return [RowRef(SCHEMAS[name], rows[tables == name]) for name in dict.fromkeys(tables.tolist())]


def _typed(column: pd.Series, field: Field) -> pd.Series:
    column = column.reset_index(drop=True)
    if field.dtype == "text":
        return column if isinstance(column.dtype, pd.CategoricalDtype) else column.astype("category")
    if field.dtype == "int":
        return column.astype("int64")
    return column.astype("float64" if field.dtype == "float" else "bool")


def _absent(field: Field, rows: int) -> object:
    if field.dtype == "text":
        return pd.Categorical.from_codes(np.zeros(rows, dtype=np.int8), categories=pd.Index([""]))
    if field.dtype == "int":
        return np.full(rows, -1, dtype=np.int64)
    return np.full(rows, np.nan) if field.dtype == "float" else np.zeros(rows, dtype=bool)


def _schema(name: str, meaning: str, rows: Iterable[tuple[str, Dtype, str, str]]) -> TableSchema:
    return TableSchema(name, meaning, tuple(Field(*row) for row in rows))


STEP_TRACE = _schema(
    "step_trace",
    "the exporter's own summary of each step (step_trace_time.csv, StepTraceTime)",
    [
        ("step", "int", "", "step id, -1 where the export names none"),
        ("computing_ns", "float", "ns", "union of compute tasks"),
        ("uncovered_communication_ns", "float", "ns", "communication not covered by computing"),
        ("overlapped_ns", "float", "ns", "communication covered by computing"),
        ("communication_ns", "float", "ns", "union of collectives"),
        ("free_ns", "float", "ns", "neither computing nor communicating"),
        ("stage_ns", "float", "ns", "first to last device task, less the bubble"),
        ("bubble_ns", "float", "ns", "time in receive operations"),
        ("preparing_ns", "float", "ns", "host start of the step to its first device task"),
    ],
)

KERNELS = _schema(
    "kernels",
    "one row per device task that computes or communicates (kernel_details.csv, op_summary_*.csv, COMPUTE_TASK_INFO)",
    [
        ("step", "int", "", "step id, -1 where the export names none"),
        ("name", "text", "", "kernel name"),
        ("type", "text", "", "operator type, '' where the level does not record it"),
        ("core", "text", "", "AI_CORE, AI_VECTOR_CORE, MIX_AIC, MIX_AIV, AI_CPU, DSA, COMMUNICATION or ''"),
        ("start_ns", "int", "ns", "start"),
        ("duration_ns", "int", "ns", "duration; of a collective: including its waiting"),
        ("wait_ns", "int", "ns", "gap since the previous task ended, as the exporter computed it"),
        ("stream", "int", "", "stream id"),
        ("task", "int", "", "task id"),
        ("model", "int", "", "graph id, -1 for a kernel that is not in a graph"),
        ("op_state", "text", "", "static or dynamic"),
        ("block_dim", "int", "", "logical blocks"),
        ("mix_block_dim", "int", "", "logical blocks on the second core type of a MIX kernel"),
        ("hf32", "text", "", "YES or NO: eligible for HF32"),
        ("input_shapes", "text", "", "shapes, ';' between tensors, ',' between axes, no quotes"),
        ("input_dtypes", "text", "", "canonical dtypes, ';' between tensors"),
        ("input_formats", "text", "", "canonical formats, ';' between tensors"),
        ("output_shapes", "text", "", "as input_shapes"),
        ("output_dtypes", "text", "", "as input_dtypes"),
        ("output_formats", "text", "", "as input_formats"),
        ("aic_ns", "float", "ns", "time on the cube cores, mean over cores"),
        ("aic_cycles", "float", "cycles", "cycles of all cube cores"),
        ("aic_mac_ns", "float", "ns", "cube pipe"),
        ("aic_scalar_ns", "float", "ns", "scalar pipe of the cube core"),
        ("aic_mte1_ns", "float", "ns", "L1 to L0"),
        ("aic_mte2_ns", "float", "ns", "memory to L1"),
        ("aic_fixpipe_ns", "float", "ns", "L0C to memory"),
        ("aiv_ns", "float", "ns", "time on the vector cores, mean over cores"),
        ("aiv_cycles", "float", "cycles", "cycles of all vector cores"),
        ("aiv_vec_ns", "float", "ns", "vector pipe"),
        ("aiv_scalar_ns", "float", "ns", "scalar pipe of the vector core"),
        ("aiv_mte2_ns", "float", "ns", "memory to UB"),
        ("aiv_mte3_ns", "float", "ns", "UB to memory"),
        (
            "cube_utilization",
            "float",
            "ratio",
            "cube cycles over cycles of the duration: occupancy, not efficiency",
        ),
    ],
)

OPERATORS = _schema(
    "operators",
    "one row per framework operator call (operator_details.csv)",
    [
        ("name", "text", "", "operator"),
        ("input_shapes", "text", "", "shapes, ';' between tensors"),
        ("call_stack", "text", "", "innermost frame first, one per line"),
        ("host_self_ns", "int", "ns", "host time without children"),
        ("host_total_ns", "int", "ns", "host time with children"),
        ("device_self_ns", "int", "ns", "device time of its own kernels"),
        ("device_total_ns", "int", "ns", "device time with children"),
    ],
)

OP_STATISTIC = _schema(
    "op_statistic",
    "the exporter's totals by operator type (op_statistic.csv)",
    [
        ("type", "text", "", "operator type"),
        ("core", "text", "", "core type, as in kernels"),
        ("count", "int", "", "calls"),
        ("total_ns", "int", "ns", "summed duration"),
        ("min_ns", "int", "ns", "shortest"),
        ("mean_ns", "int", "ns", "mean"),
        ("max_ns", "int", "ns", "longest"),
        ("share", "float", "ratio", "of the total of all types"),
    ],
)

API_STATISTIC = _schema(
    "api_statistic",
    "the exporter's totals by CANN API (api_statistic.csv); nested calls count at every level",
    [
        ("level", "text", "", "acl, model, node, runtime or communication"),
        ("name", "text", "", "API"),
        ("count", "int", "", "calls"),
        ("total_ns", "int", "ns", "summed time"),
        ("mean_ns", "int", "ns", "mean"),
        ("min_ns", "int", "ns", "shortest"),
        ("max_ns", "int", "ns", "longest"),
    ],
)

COLLECTIVES = _schema(
    "collectives",
    "one row per collective or point-to-point operation (communication.json, metadata of NCCL). The split of elapse_ns "
    "into transit, wait and idle is taken from one plane and contradicts the tasks of the other planes: show it, do "
    "not rely on it",
    [
        ("step", "int", "", "step id, -1 where the export names none"),
        ("name", "text", "", "for example hcom_allReduce__586_0_1"),
        ("group", "text", "", "hash of the communication group"),
        ("kind", "text", "", "collective or p2p"),
        ("start_ns", "int", "ns", "start"),
        ("elapse_ns", "int", "ns", "duration including waiting"),
        ("transit_ns", "int", "ns", "as the exporter says"),
        ("wait_ns", "int", "ns", "as the exporter says"),
        ("synchronization_ns", "int", "ns", "as the exporter says"),
        ("idle_ns", "int", "ns", "as the exporter says"),
        ("operation", "text", "", "allReduce, send, ...; '' where only the name tells"),
        ("index", "int", "", "n-th call of the group, the same number on every rank; -1 where only the name tells"),
        ("members", "int", "", "ranks in the group, -1 unknown"),
        ("bytes", "int", "B", "moved over links by this rank, -1 where it is told by transport"),
    ],
)

COLLECTIVE_BANDWIDTH = _schema(
    "collective_bandwidth",
    "what each operation moved over each transport (communication.json)",
    [
        ("step", "int", "", "step id"),
        ("name", "text", "", "operation"),
        ("group", "text", "", "hash of the group"),
        ("transport", "text", "", "RDMA, HCCS, PCIE, SDMA (= HCCS + PCIE + SIO) or SIO"),
        ("bytes", "int", "B", "moved"),
        ("transit_ns", "int", "ns", "time moving"),
        ("bandwidth", "float", "B/s", "bytes over transit time"),
        ("packets", "int", "", "packets"),
        ("max_packet_bytes", "int", "B", "largest packet"),
        ("large_packet_ratio", "float", "ratio", "as the exporter says"),
    ],
)

LINKS = _schema(
    "links",
    "what each operation moved between each pair of group-local ranks (communication_matrix.json)",
    [
        ("step", "int", "", "step id"),
        ("name", "text", "", "operation, for example allreduce-top1"),
        ("group", "text", "", "hash of the group"),
        ("op", "text", "", "the operation it was read from"),
        ("source_rank", "int", "", "group-local rank"),
        ("target_rank", "int", "", "group-local rank"),
        ("transport", "text", "", "LOCAL, HCCS, RDMA, PCIE or SIO"),
        ("bytes", "int", "B", "moved"),
        ("transit_ns", "int", "ns", "time moving"),
        ("bandwidth", "float", "B/s", "bytes over transit time"),
    ],
)

HOST_EVENTS = _schema(
    "host_events",
    "what threads of the host did (trace_view.json: the Python and CANN processes)",
    [
        ("category", "text", "", "cpu_op, python_function, enqueue, dequeue, user_annotation, cann, gc, os or mstx"),
        ("name", "text", "", "as the trace names it (aten::add, Dequeue@aclnnAdd, AscendCL@aclnnAdd, Node@launch)"),
        ("thread", "int", "", "OS thread id"),
        ("start_ns", "int", "ns", "start"),
        ("duration_ns", "int", "ns", "duration"),
        ("correlation", "int", "", "enqueue and dequeue: joins the two"),
        ("connection", "int", "", "CANN: joins the call and the tasks it launched, -1 where beyond int64"),
        ("item", "text", "", "CANN: what was launched (kernel name)"),
        ("call_stack", "text", "", "innermost frame first, one per line"),
        ("input_shapes", "text", "", "cpu_op: shapes of the inputs"),
    ],
)

DEVICE_TASKS = _schema(
    "device_tasks",
    "what ran on each stream of the device (trace_view.json: Ascend Hardware)",
    [
        ("name", "text", "", "task"),
        ("task_type", "text", "", "AI_CORE, EVENT_WAIT_SQE, NOTIFY_WAIT, SDMA and so on"),
        ("stream", "int", "", "stream id"),
        ("task", "int", "", "task id"),
        ("connection", "int", "", "joins host call and task"),
        ("start_ns", "int", "ns", "start"),
        ("duration_ns", "int", "ns", "duration"),
    ],
)

COMMUNICATION_TASKS = _schema(
    "communication_tasks",
    "what collectives did (trace_view.json: HCCL or Communication): the operations and the tasks of their planes",
    [
        ("lane", "text", "", "'Group 0 Communication' for whole operations, 'Plane 3' for tasks"),
        ("group", "int", "", "index of the group the lane belongs to, -1 unknown"),
        ("plane", "int", "", "plane of a task, -1 for a whole operation"),
        ("name", "text", "", "hcom_allReduce__586_0_1, Notify_Wait, Memcpy, Reduce_Inline, ..."),
        ("start_ns", "int", "ns", "start"),
        ("duration_ns", "int", "ns", "duration"),
        ("own_rank", "int", "", "group-local rank of this device"),
        ("peer_rank", "int", "", "group-local rank it moves data from or to, or waits for; -1 none"),
        ("bytes", "int", "B", "moved"),
        ("link", "text", "", "ON_CHIP, HCCS, PCIE, ROCE, SIO"),
        ("transport", "text", "", "LOCAL, SDMA, RDMA"),
        ("connection", "int", "", "joins host call and operation"),
    ],
)

FLOWS = _schema(
    "flows",
    "arrows of the trace, one row per end (trace_view.json)",
    [
        ("kind", "text", "", "torch_to_npu, host_to_device, task_queue, forward_backward or mstx"),
        ("end", "text", "", "s (start) or f (finish)"),
        ("flow", "int", "", "id; ids beyond int64 are mapped to negative numbers, the same id to the same number"),
        ("thread", "int", "", "thread id of the host, or tid of a device lane"),
        ("device", "bool", "", "true where the end lies in a device or communication lane"),
        ("time_ns", "int", "ns", "when"),
    ],
)

OVERLAP = _schema(
    "overlap",
    "the exporter's own analysis of overlap (trace_view.json: Overlap Analysis)",
    [
        ("kind", "text", "", "Computing, Communication, Communication(Not Overlapped) or Free"),
        ("start_ns", "int", "ns", "start"),
        ("duration_ns", "int", "ns", "duration"),
    ],
)

FREQUENCY = _schema(
    "frequency",
    "clock of the AI cores (trace_view.json: AI Core Freq)",
    [("time_ns", "int", "ns", "when it changed"), ("mhz", "float", "MHz", "clock from then on")],
)

MEMORY_RECORD = _schema(
    "memory_record",
    "memory over time by component (memory_record.csv)",
    [
        ("component", "text", "", "APP, PTA, GE, PTA+GE, WORKSPACE"),
        ("time_ns", "int", "ns", "when"),
        ("allocated_bytes", "float", "B", "allocated"),
        ("reserved_bytes", "float", "B", "reserved"),
        ("active_bytes", "float", "B", "active"),
    ],
)

OPERATOR_MEMORY = _schema(
    "operator_memory",
    "allocations by operator (operator_memory.csv)",
    [
        ("name", "text", "", "operator"),
        ("bytes", "float", "B", "size; negative: freed without a recorded allocation"),
        ("allocation_ns", "int", "ns", "when allocated, -1 before the window"),
        ("release_ns", "int", "ns", "when released, -1 after the window"),
        ("allocated_bytes", "float", "B", "total allocated at allocation"),
        ("reserved_bytes", "float", "B", "total reserved at allocation"),
    ],
)

MODULE_MEMORY = _schema(
    "module_memory",
    "memory over time by component of CANN (npu_module_mem.csv)",
    [
        ("component", "text", "", "APP, HCCL, RUNTIME, SLOG, ..."),
        ("time_ns", "int", "ns", "when"),
        ("reserved_bytes", "float", "B", "reserved"),
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
    )
}
