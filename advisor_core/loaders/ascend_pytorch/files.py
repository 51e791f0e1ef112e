"""File names of an Ascend PyTorch Profiler text export: the content of each, and the option that writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from advisor_core.contracts import tables
from advisor_core.loaders import ascend_words as vocabulary
from advisor_core.loaders.readers import core_counters, ports, times
from advisor_core.loaders.readers.csv_file import Column, CsvTable
from advisor_core.loaders.readers.trace_json import TABLES as TRACE_TABLES

OUTPUT: Final = "ASCEND_PROFILER_OUTPUT"
_KIB: Final = 2.0**10
_MIB: Final = 2.0**20
_US: Final = 1000.0


_ON_WHOLE_CORES: Final = {
    "aic_total_cycles": ("total_cycles",),
    "aic_mac_time(us)": ("mac_time(us)", "mac_exe_time(us)"),
    "aic_scalar_time(us)": ("scalar_time(us)", "scalar_exe_time(us)"),
    "aic_mte1_time(us)": ("mte1_time(us)", "mte1_exe_time(us)"),
    "aic_mte2_time(us)": ("mte2_time(us)", "mte2_exe_time(us)"),
    "aic_fixpipe_time(us)": ("fixpipe_time(us)", "fixpipe_exe_time(us)"),
    "aiv_vec_time(us)": ("vec_time(us)", "vec_exe_time(us)"),
    "aiv_mte3_time(us)": ("mte3_time(us)", "mte3_exe_time(us)"),
}
"""Chips whose cores have cube and vector units together (910A, 310P, 200I/500 A2) name pipes without a core: by the
reference of msprof's files, with ``--aic-metrics`` PipeUtilization and PipelineExecuteUtilization. Their pipes to and
from memory serve both units; they stand where the pipe of this kind moves most."""


@dataclass(frozen=True)
class Deliverable:
    """A file in `OUTPUT`. ``collect``: id of the message that says how to get it. ``from_level1``: absent below.
    ``alone``: a directory with this file and no other is a profile."""

    name: str
    tables: tuple[str, ...]
    collect: str
    from_level1: bool = False
    csv: CsvTable | None = None
    alone: bool = True


def _pipe(field: str, name: str, factor: float = _US) -> Column:
    """A counter; after its name on chips whose cube and vector cores count apart come those on others."""
    return Column(field, (name, *_ON_WHOLE_CORES.get(name, ())), "float", factor=factor, least=0)


def _span(field: str, name: str) -> Column:
    return Column(field, (name,), "span")


_KERNELS = CsvTable(
    tables.KERNELS,
    (
        Column("step", ("Step Id",), "int"),
        Column("name", ("Name", "Op Name"), essential=True),
        Column("type", ("Type", "OP Type")),
        Column("core", ("Accelerator Core", "Task Type"), clean=vocabulary.core),
        Column("start_ns", ("Start Time(us)", "Task Start Time(us)"), "point", essential=True),
        Column("duration_ns", ("Duration(us)", "Task Duration(us)"), "span", essential=True, most=times.HOUR_US),
        Column("wait_ns", ("Wait Time(us)", "Task Wait Time(us)"), "span"),
        Column("stream", ("Stream ID",), "int"),
        Column("task", ("Task ID",), "int"),
        Column("model", ("Model ID",), "int", none=vocabulary.UINT32_NONE),
        Column("op_state", ("OP State",)),
        Column("block_dim", ("Block Dim", "Block Num"), "int"),
        Column("mix_block_dim", ("Mix Block Dim", "Mix Block Num"), "int"),
        Column("hf32", ("HF32 Eligible",)),
        Column("input_shapes", ("Input Shapes",), clean=vocabulary.shapes),
        Column("input_dtypes", ("Input Data Types",), clean=vocabulary.dtypes),
        Column("input_formats", ("Input Formats",), clean=vocabulary.formats),
        Column("output_shapes", ("Output Shapes",), clean=vocabulary.shapes),
        Column("output_dtypes", ("Output Data Types",), clean=vocabulary.dtypes),
        Column("output_formats", ("Output Formats",), clean=vocabulary.formats),
        _pipe("aic_ns", "aicore_time(us)"),
        _pipe("aic_cycles", "aic_total_cycles", 1),
        _pipe("aic_mac_ns", "aic_mac_time(us)"),
        _pipe("aic_scalar_ns", "aic_scalar_time(us)"),
        _pipe("aic_mte1_ns", "aic_mte1_time(us)"),
        _pipe("aic_mte2_ns", "aic_mte2_time(us)"),
        _pipe("aic_fixpipe_ns", "aic_fixpipe_time(us)"),
        _pipe("aiv_ns", "aiv_time(us)"),
        _pipe("aiv_cycles", "aiv_total_cycles", 1),
        _pipe("aiv_vec_ns", "aiv_vec_time(us)"),
        _pipe("aiv_scalar_ns", "aiv_scalar_time(us)"),
        _pipe("aiv_mte2_ns", "aiv_mte2_time(us)"),
        _pipe("aiv_mte3_ns", "aiv_mte3_time(us)"),
        _pipe("cube_utilization", "cube_utilization(%)", 0.01),
    ),
    more=core_counters.COLUMNS,
)

_STEP_TRACE = CsvTable(
    tables.STEP_TRACE,
    (
        Column("step", ("Step",), "int"),
        Column("computing_ns", ("Computing",), "float", essential=True, factor=_US, least=0),
        _pipe("uncovered_communication_ns", "Communication(Not Overlapped)"),
        _pipe("overlapped_ns", "Overlapped"),
        _pipe("communication_ns", "Communication"),
        _pipe("free_ns", "Free"),
        _pipe("stage_ns", "Stage"),
        _pipe("bubble_ns", "Bubble"),
        # across two clocks, so it may be negative
        Column("preparing_ns", ("Preparing",), "float", factor=_US),
    ),
)

_OPERATORS = CsvTable(
    tables.OPERATORS,
    (
        Column("name", ("Name",), essential=True),
        Column("input_shapes", ("Input Shapes",), clean=vocabulary.shapes),
        Column("call_stack", ("Call Stack",), clean=vocabulary.stack),
        _span("host_self_ns", "Host Self Duration(us)"),
        Column("host_total_ns", ("Host Total Duration(us)",), "span", essential=True),
        _span("device_self_ns", "Device Self Duration(us)"),
        _span("device_total_ns", "Device Total Duration(us)"),
    ),
)

_OP_STATISTIC = CsvTable(
    tables.OP_STATISTIC,
    (
        Column("type", ("OP Type",), essential=True),
        Column("core", ("Core Type",), clean=vocabulary.core),
        Column("count", ("Count",), "int", least=0),
        Column("total_ns", ("Total Time(us)",), "span", essential=True),
        _span("min_ns", "Min Time(us)"),
        _span("mean_ns", "Avg Time(us)"),
        _span("max_ns", "Max Time(us)"),
        _pipe("share", "Ratio(%)", 0.01),
    ),
)

_API_STATISTIC = CsvTable(
    tables.API_STATISTIC,
    (
        Column("level", ("Level",), clean=vocabulary.api_level),
        Column("name", ("API Name",), essential=True),
        Column("count", ("Count",), "int", least=0),
        Column("total_ns", ("Time(us)",), "span", essential=True),
        _span("mean_ns", "Avg(us)"),
        _span("min_ns", "Min(us)"),
        _span("max_ns", "Max(us)"),
    ),
)

_MEMORY_RECORD = CsvTable(
    tables.MEMORY_RECORD,
    (
        Column("component", ("Component",), essential=True),
        Column("time_ns", ("Timestamp(us)",), "point", essential=True),
        Column("allocated_bytes", ("Total Allocated(MB)",), "float", factor=_MIB),
        Column("reserved_bytes", ("Total Reserved(MB)",), "float", factor=_MIB),
        Column("active_bytes", ("Total Active(MB)",), "float", factor=_MIB),
    ),
)

_OPERATOR_MEMORY = CsvTable(
    tables.OPERATOR_MEMORY,
    (
        Column("name", ("Name",), essential=True),
        Column("bytes", ("Size(KB)",), "float", essential=True, factor=_KIB),
        Column("allocation_ns", ("Allocation Time(us)",), "point"),
        Column("release_ns", ("Release Time(us)",), "point"),
        Column("allocated_bytes", ("Allocation Total Allocated(MB)",), "float", factor=_MIB),
        Column("reserved_bytes", ("Allocation Total Reserved(MB)",), "float", factor=_MIB),
    ),
    interval=("allocation_ns", "release_ns"),
)

_MODULE_MEMORY = CsvTable(
    tables.MODULE_MEMORY,
    (
        Column("component", ("Component",), essential=True),
        Column("time_ns", ("Timestamp(us)",), "point", essential=True),
        Column("reserved_bytes", ("Total Reserved(MB)",), "float", factor=_MIB),
        Column("reserved_bytes", ("Total Reserved(KB)",), "float", factor=_KIB),
    ),
)

_L2_CACHE = CsvTable(
    tables.L2_CACHE,
    (
        Column("stream", ("Stream Id", "Stream ID"), "int", essential=True, least=0),
        Column("task", ("Task Id", "Task ID"), "int", essential=True, least=0),
        Column("name", ("Op Name",)),
        Column("hit_rate", ("Hit Rate",), "float", least=0, most=1),
        Column("victim_rate", ("Victim Rate",), "float", least=0),
    ),
)

_END_OF_GRAPH = 4294967295
"""The time of release in static_op_mem.csv of what is released with its graph."""

_DEVICE = ("Device_id",)

_GRAPH_MEMORY = CsvTable(
    tables.GRAPH_MEMORY,
    (
        Column("graph", ("Graph ID",), "int"),
        Column("subgraph", ("Model Name",)),
        Column("name", ("Op Name",), essential=True),
        Column("allocated_node", ("Node Index Start",), "int", essential=True, least=0),
        Column("released_node", ("Node Index End",), "int", essential=True, least=0, none=_END_OF_GRAPH),
        Column("bytes", ("Size(KB)",), "float", essential=True, factor=_KIB, least=0),
    ),
    others=_DEVICE,
)


def _stage(field: str, name: str, *, essential: bool = False) -> tuple[Column, Column]:
    """A time of data_preprocess.csv, in us; before CANN 7 in ms."""
    return (
        Column(field, (f"{name}(us)",), "float", essential=essential, factor=1e3, least=0),
        Column(field, (f"{name}(ms)",), "float", essential=essential, factor=1e6, least=0),
    )


_AI_CPU_NODES = CsvTable(
    tables.AI_CPU_NODES,
    (
        Column("time_ns", ("Timestamp(us)",), "point"),
        Column("name", ("Node",), essential=True),
        *_stage("compute_ns", "Compute_time"),
        *_stage("copy_ns", "Memcpy_time"),
        *_stage("run_ns", "Task_time"),
        *_stage("dispatch_ns", "Dispatch_time"),
        *_stage("total_ns", "Total_time", essential=True),
        Column("stream", ("Stream ID", "Stream Id"), "int"),
        Column("task", ("Task ID", "Task Id"), "int"),
    ),
    others=_DEVICE,
)

KERNELS: Final = Deliverable("kernel_details.csv", ("kernels", "core_counters"), "loader.collect.npu", csv=_KERNELS)
TRACE: Final = Deliverable("trace_view.json", TRACE_TABLES, "loader.collect.npu")
COMMUNICATION: Final = Deliverable(
    "communication.json", ("collectives", "collective_bandwidth"), "loader.collect.communication", from_level1=True
)
MATRIX: Final = Deliverable("communication_matrix.json", ("links",), "loader.collect.communication", from_level1=True)

DELIVERABLES: Final = (
    KERNELS,
    Deliverable("step_trace_time.csv", ("step_trace",), "loader.collect.step", csv=_STEP_TRACE),
    Deliverable("operator_details.csv", ("operators",), "loader.collect.cpu", csv=_OPERATORS),
    Deliverable("op_statistic.csv", ("op_statistic",), "loader.collect.level1", from_level1=True, csv=_OP_STATISTIC),
    Deliverable("api_statistic.csv", ("api_statistic",), "loader.collect.level1", from_level1=True, csv=_API_STATISTIC),
    COMMUNICATION,
    MATRIX,
    Deliverable("memory_record.csv", ("memory_record",), "loader.collect.memory", csv=_MEMORY_RECORD),
    Deliverable("operator_memory.csv", ("operator_memory",), "loader.collect.memory", csv=_OPERATOR_MEMORY),
    Deliverable("npu_module_mem.csv", ("module_memory",), "loader.collect.memory", csv=_MODULE_MEMORY),
    Deliverable("l2_cache.csv", ("l2_cache",), "loader.collect.l2_cache", csv=_L2_CACHE, alone=False),
    *(
        Deliverable(f"{name}.csv", ("ports",), "loader.collect.ports", csv=ports.SAMPLES, alone=False)
        for name in ports.KINDS
    ),
    Deliverable("static_op_mem.csv", ("graph_memory",), "loader.collect.graph_memory", csv=_GRAPH_MEMORY, alone=False),
    Deliverable("data_preprocess.csv", ("ai_cpu_nodes",), "loader.collect.level2", csv=_AI_CPU_NODES, alone=False),
    TRACE,
)
NAMES: Final = frozenset(deliverable.name for deliverable in DELIVERABLES if deliverable.alone)
"""Files that make a directory a profile."""

UNREAD: Final[Mapping[str, str]] = {
    "hccs.csv": "HCCS",
    "pcie.csv": "PCIe",
    "soc_pmu.csv": "",
}
"""Files that options of the profiler add (sys_interconnection, l2_cache) and that have no canonical table: a report
says so, so that nobody takes its silence for an answer. Two of them are the least, the most and the mean of a lane of
the trace: where this part of `COUNTERS` was read, nothing is lost. No source names the columns of soc_pmu.csv."""
