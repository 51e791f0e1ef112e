"""The files of an msprof export: their names, what each holds, and which option of msprof gives it.

A file is called ``op_summary_20240101000000.csv``, or ``op_summary_slice_0_20240101000000.csv`` where the exporter cut
the table into slices; before CANN 8 device and model precede the date (``op_summary_0_1_20230101000000.csv``). Only
op_summary has been seen in a real export; the other files follow the documentation of msprof and, for their headers,
its source.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from advisor_core import tables
from advisor_core.loaders import ascend_files, vocabulary
from advisor_core.loaders.csv_file import Column, CsvTable
from advisor_core.loaders.trace_json import TABLES as TRACE_TABLES
from advisor_core.tables import Field, TableSchema

OUTPUT: Final = "mindstudio_profiler_output"
ANALYSIS: Final = "analyze"
PROF: Final = re.compile(r"PROF_\d+_\d+_\w+")
_NAME: Final = re.compile(
    r"(?P<kind>[a-z]+(?:_[a-z]+)*?)(?:_slice_(?P<slice>\d{1,6}))?(?P<numbers>(?:_\d{1,20})+)\.\w+"
)
_KIB: Final = 2.0**10

DATABASE: Final = re.compile(r"msprof_(\d{1,20})\.db")
"""Name of the DB export; the number is the time of the export."""

DEVICE: Final = "device_id"
"""A column that tables of an export of several devices carry until one device is chosen."""


@dataclass(frozen=True)
class ExportName:
    """What the name of an exported file says. ``stamp``: the last of its numbers, the time of the export;
    ``slice``: -1 for a file that is whole."""

    kind: str
    slice: int
    stamp: int


@dataclass(frozen=True)
class Deliverable:
    """A kind of file. ``collect``: id of the message that says how to get it. ``csv``: None for JSON."""

    kind: str
    suffix: str
    tables: tuple[str, ...]
    collect: str
    csv: CsvTable | None = None

    @property
    def pattern(self) -> str:
        """How a reader may look for the file."""
        return f"{self.kind}_*{self.suffix}"


def export_name(name: str) -> ExportName | None:
    """None for a name that is not one of an export."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return ExportName(found["kind"], int(found["slice"] or -1), int(found["numbers"].rsplit("_", 1)[1]))


def _pytorch(name: str, *more: Column) -> CsvTable:
    """The table of a file of the PyTorch profiler, whose columns msprof's has too, and ``more``."""
    found = next(file.csv for file in ascend_files.DELIVERABLES if file.name == name)
    assert found is not None
    return replace(found, columns=(*found.columns, *more))


def _of_devices(table: CsvTable) -> CsvTable:
    schema = table.schema
    fields = (*schema.fields, Field(DEVICE, "int", "", "device id, -1 where the export names none"))
    column = Column(DEVICE, ("Device_id", "Device ID"), "int")
    return replace(table, schema=TableSchema(schema.name, schema.meaning, fields), columns=(*table.columns, column))


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

OP_SUMMARY: Final = Deliverable(
    "op_summary", ".csv", ("kernels",), "loader.collect.msprof_tasks", _of_devices(_pytorch("kernel_details.csv"))
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
        "loader.collect.msprof_memory",
        _of_devices(
            _pytorch(
                "memory_record.csv",
                _kib("allocated_bytes", "Total Allocated(KB)"),
                _kib("reserved_bytes", "Total Reserved(KB)"),
                _kib("active_bytes", "Total Active(KB)"),
            )
        ),
    ),
    Deliverable(
        "npu_module_mem",
        ".csv",
        ("module_memory",),
        "loader.collect.msprof_memory",
        _of_devices(_pytorch("npu_module_mem.csv")),
    ),
)
"""In the order of preference where two hold the same table: tasks of the timeline know the host call they came from."""

KNOWN: Final = {deliverable.kind: deliverable for deliverable in DELIVERABLES}

NEVER: Final = {
    "operator_memory": ("loader.msprof.no_releases", "loader.collect.msprof_framework_memory"),
    "operators": ("loader.msprof.no_framework", "loader.collect.msprof_framework"),
    "step_trace": ("loader.msprof.no_step_trace", "loader.collect.msprof_framework"),
}
"""Tables that msprof does not export: why, and what to collect instead."""


def is_timed(name: str) -> bool:
    """Whether a file tells when the device ran what: without such a file a directory is no profile."""
    found = export_name(name)
    if found is None:
        return False
    return any(found.kind == file.kind and name.endswith(file.suffix) for file in (OP_SUMMARY, TASK_TIME, TIMELINE))
