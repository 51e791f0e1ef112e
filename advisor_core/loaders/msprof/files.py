"""File names of an msprof export: the content of each, and the option of msprof that writes it.

A file is called ``op_summary_20240101000000.csv``, or ``op_summary_slice_0_20240101000000.csv`` where the exporter cut
the table into slices; before CANN 8 device and model precede the date (``op_summary_0_1_20230101000000.csv``). Only
op_summary has been seen in a real export; the other files follow the documentation of msprof and, for their headers,
its source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

import pandas as pd

from advisor_core.contracts import tables
from advisor_core.contracts.columns import Column as TableColumn
from advisor_core.contracts.tables import TableSchema
from advisor_core.loaders import ascend_words as vocabulary
from advisor_core.loaders.ascend_pytorch import files as ascend_files
from advisor_core.loaders.readers import ports, times
from advisor_core.loaders.readers.csv_file import Column, CsvTable
from advisor_core.loaders.readers.trace_json import TABLES as TRACE_TABLES

OUTPUT: Final = "mindstudio_profiler_output"
ANALYSIS: Final = "analyze"
ANALYSED: Final = "communication_analyzer.db"
"""The file that ``msprof --analyze=on --type=db`` writes there in place of JSON."""

PROF: Final = re.compile(r"PROF_\d+_\d+_\w+")
_NAME: Final = re.compile(
    r"(?P<kind>[a-z]+\d?(?:_[a-z]+)*?)(?:_slice_(?P<slice>\d{1,6}))?(?P<numbers>(?:_\d{1,20})+)\.\w+"
)
_KIB: Final = 2.0**10

DATABASE: Final = re.compile(r"msprof_(\d{1,20})\.db")
"""Name of the DB export; the number is the time of the export."""

DEVICE: Final = "device_id"
"""A column that tables of an export of several devices carry until one device is chosen."""

INFERENCE: Final = "infer_id"
"""A column of op_summary: the how manyth run of its graph a task belongs to, until steps are made of it."""

_HELD: Final = "held_ns"
"""A column of operator_memory: how long memory was held."""


@dataclass(frozen=True)
class ExportName:
    """The parts of the name of an exported file. ``stamp``: the last of its numbers, the time of the export;
    ``slice``: -1 for a file that is whole."""

    kind: str
    slice: int
    stamp: int


@dataclass(frozen=True)
class Deliverable:
    """A kind of file. ``collect``: id of the message that says how to get it. ``csv``: None for JSON. ``alone``: such a
    file can be given in place of a profile."""

    kind: str
    suffix: str
    tables: tuple[str, ...]
    collect: str
    csv: CsvTable | None = None
    alone: bool = True

    @property
    def pattern(self) -> str:
        """The glob of the names of such files."""
        return f"{self.kind}_*{self.suffix}"


def export_name(name: str) -> ExportName | None:
    """None for a name that is not one of an export."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return ExportName(found["kind"], int(found["slice"] or -1), int(found["numbers"].rsplit("_", 1)[1]))


def _pytorch(name: str, *more: Column) -> CsvTable:
    """The table of a file of the PyTorch profiler, whose columns msprof's has too, and ``more``."""
    table = next(file.csv for file in ascend_files.DELIVERABLES if file.name == name)
    assert table is not None
    return replace(table, columns=(*table.columns, *more))


def _of_devices(table: CsvTable) -> CsvTable:
    schema = table.schema
    columns = (*schema.columns, TableColumn(DEVICE, "int", "", "device id, -1 where the export names none"))
    column = Column(DEVICE, ("Device_id", "Device ID"), "int")
    return replace(table, schema=TableSchema(schema.name, schema.meaning, columns), columns=(*table.columns, column))


def _kib(field: str, name: str) -> Column:
    return Column(field, (name,), "float", factor=_KIB)


_DEVICE_TASKS = CsvTable(
    tables.DEVICE_TASKS,
    (
        Column("name", ("kernel_name", "Kernel Name")),
        Column("task_type", ("kernel_type", "Kernel Type"), clean=vocabulary.task_type),
        Column("stream", ("stream_id", "Stream ID"), "int"),
        Column("task", ("task_id", "Task ID"), "int"),
        Column("start_ns", ("task_start(us)",), "point", essential=True),
        Column("duration_ns", ("task_time(us)",), "span", essential=True),
    ),
)


def _with(table: CsvTable, field: TableColumn, column: Column) -> CsvTable:
    schema = TableSchema(table.schema.name, table.schema.meaning, (*table.schema.columns, field))
    return replace(table, schema=schema, columns=(*table.columns, column))


def released(memory: pd.DataFrame) -> pd.DataFrame:
    """operator_memory with the time of release, which msprof writes as how long memory was held."""
    has_times = (memory["allocation_ns"] > 0) & (memory[_HELD] >= 0)
    return memory.assign(release_ns=(memory["allocation_ns"] + memory[_HELD]).where(has_times, -1))


def _graph_engine(name: str) -> str:
    """As the PyTorch profiler names operators of the graph engine, the only ones whose memory msprof records."""
    name = vocabulary.tidy(name)
    return f"cann::{name}" if name and "::" not in name else name


_OPERATOR_MEMORY = CsvTable(
    tables.OPERATOR_MEMORY,
    (
        Column("name", ("Name",), essential=True, clean=_graph_engine),
        Column("bytes", ("Size(KB)",), "float", essential=True, factor=_KIB),
        Column("allocation_ns", ("Allocation Time(us)",), "point"),
        _kib("allocated_bytes", "Allocation Total Allocated(KB)"),
        _kib("reserved_bytes", "Allocation Total Reserved(KB)"),
    ),
)

OP_SUMMARY: Final = Deliverable(
    "op_summary",
    ".csv",
    ("kernels", "core_counters"),
    "loader.collect.msprof_tasks",
    _with(
        _of_devices(_pytorch("kernel_details.csv")),
        TableColumn(INFERENCE, "int", "", "run of the graph, -1 where the export names none"),
        Column(INFERENCE, ("Infer ID",), "int"),
    ),
)
OPERATOR_MEMORY: Final = Deliverable(
    "operator_memory",
    ".csv",
    ("operator_memory",),
    "loader.collect.msprof_task_memory",
    _with(
        _of_devices(_OPERATOR_MEMORY),
        TableColumn(_HELD, "int", "ns", "how long the memory was held, -1 where it was not released"),
        Column(_HELD, ("Duration(us)",), "span"),
    ),
)
TASK_TIME: Final = Deliverable(
    "task_time", ".csv", ("device_tasks",), "loader.collect.msprof_tasks", _of_devices(_DEVICE_TASKS)
)
TIMELINE: Final = Deliverable("msprof", ".json", TRACE_TABLES, "loader.collect.msprof_timeline")

DELIVERABLES: Final = (
    OP_SUMMARY,
    TIMELINE,
    TASK_TIME,
    Deliverable(
        "op_statistic",
        ".csv",
        ("op_statistic",),
        "loader.collect.msprof_tasks",
        _of_devices(_pytorch("op_statistic.csv")),
    ),
    Deliverable(
        "api_statistic", ".csv", ("api_statistic",), "loader.collect.msprof_api", _pytorch("api_statistic.csv")
    ),
    Deliverable(
        "memory_record",
        ".csv",
        ("memory_record",),
        "loader.collect.msprof_task_memory",
        _of_devices(
            _pytorch(
                "memory_record.csv",
                _kib("allocated_bytes", "Total Allocated(KB)"),
                _kib("reserved_bytes", "Total Reserved(KB)"),
                _kib("active_bytes", "Total Active(KB)"),
            )
        ),
    ),
    OPERATOR_MEMORY,
    Deliverable(
        "npu_module_mem",
        ".csv",
        ("module_memory",),
        "loader.collect.msprof_memory",
        _of_devices(_pytorch("npu_module_mem.csv")),
    ),
    Deliverable(
        "l2_cache",
        ".csv",
        ("l2_cache",),
        "loader.collect.msprof_l2_cache",
        _of_devices(_pytorch("l2_cache.csv")),
        alone=False,
    ),
    Deliverable(
        "static_op_mem",
        ".csv",
        ("graph_memory",),
        "loader.collect.msprof_task_memory",
        _pytorch("static_op_mem.csv"),  # graphs are compiled on the host, which stands for the device there
        alone=False,
    ),
    Deliverable(
        "aicpu",
        ".csv",
        ("ai_cpu_nodes",),
        "loader.collect.msprof_ai_cpu",
        _of_devices(_pytorch("data_preprocess.csv")),
        alone=False,
    ),
    *(
        Deliverable(kind, ".csv", ("ports",), "loader.collect.msprof_ports", _of_devices(ports.SAMPLES), alone=False)
        for kind in ports.KINDS
    ),
)
"""In the order of preference where two hold the same table: tasks of the timeline know the host call they came from."""

ITERATIONS: Final = Deliverable(
    "step_trace",
    ".csv",
    (),
    "loader.collect.msprof_tasks",
    _of_devices(
        CsvTable(
            TableSchema(
                "iterations",
                "one row per run of a graph (step_trace_*.csv)",
                (
                    TableColumn("iteration", "int", "", "number of the run of its graph"),
                    TableColumn("model", "int", "", "graph"),
                    TableColumn("end_ns", "int", "ns", "end"),
                    TableColumn("duration_ns", "int", "ns", "duration"),
                ),
            ),
            (
                Column("iteration", ("Iteration ID",), "int", essential=True, least=0),
                Column("model", ("Model ID",), "int"),
                Column("end_ns", ("Iteration End(us)",), "point", essential=True),
                Column("duration_ns", ("Iteration Time(us)",), "span", essential=True, most=times.HOUR_US),
            ),
        )
    ),
)
"""Not a canonical table: it tells the steps of kernels."""

KNOWN: Final = {deliverable.kind: deliverable for deliverable in DELIVERABLES if deliverable.alone}

NEVER: Final = {
    "operators": ("loader.msprof.no_framework", "loader.collect.msprof_framework"),
    "step_trace": ("loader.msprof.no_step_trace", "loader.collect.msprof_framework"),
}
"""Tables that msprof does not export: why, and what to collect instead."""


def is_timed(name: str) -> bool:
    """Whether a file tells when the device ran what: without such a file a directory is no profile."""
    named = export_name(name)
    if named is None:
        return False
    return any(named.kind == file.kind and name.endswith(file.suffix) for file in (OP_SUMMARY, TASK_TIME, TIMELINE))
