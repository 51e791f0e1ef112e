"""Tables of device tasks: kernel_details.csv, op_statistic.csv and step_trace_time.csv."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ..export.counters import Counters, block_counts, counters
from ..export.generation import Cell, Names
from ..export.overlap import collective_name, collective_type
from ..export.recording import Recording
from ..export.steps import step_times
from ..export.units import us
from ..export.values import tensor_texts
from ..machine.chip import CUBE_PIPES, VECTOR_PIPES
from ..timeline import NOT_IN_GRAPH, Collective, DeviceTask, Timeline
from .fields import Row, mean, us_column

_WITHOUT_DETAILS: list[Cell] = [
    "Name",
    "Type",
    "Accelerator Core",
    "Start Time(us)",
    "Duration(us)",
    "Wait Time(us)",
    "Block Dim",
]
"""The columns of level 0 (docs/sources.md#columns-of-kernel-details)."""
_BEFORE_PMU: list[Cell] = [
    "Model ID",
    "Task ID",
    "Stream ID",
    "Name",
    "Type",
    "OP State",
    "Accelerator Core",
    "Start Time(us)",
    "Duration(us)",
    "Wait Time(us)",
    "Block Dim",
    "Mix Block Dim",
    "HF32 Eligible",
    "Input Shapes",
    "Input Data Types",
    "Input Formats",
    "Output Shapes",
    "Output Data Types",
    "Output Formats",
    "Context ID",
]


def _pipe_headers(core: str, pipes: tuple[str, ...]) -> list[Cell]:
    return [f"{core}_{pipe}_{what}" for pipe in pipes for what in ("time(us)", "ratio")]


_PMU: list[Cell] = [
    "aicore_time(us)",
    "aic_total_cycles",
    *_pipe_headers("aic", CUBE_PIPES),
    "aic_icache_miss_rate",
    "aiv_time(us)",
    "aiv_total_cycles",
    *_pipe_headers("aiv", VECTOR_PIPES),
    "aiv_icache_miss_rate",
    "cube_utilization(%)",
]


def kernel_details(timeline: Timeline, names: Names, recording: Recording) -> Iterator[Row]:
    """One row per kernel and per collective, in the order of their start."""
    columns = [*_BEFORE_PMU, *_PMU] if recording.details else _WITHOUT_DETAILS
    yield ["Step Id", *names.device_header, *columns]
    rows: list[DeviceTask | Collective] = [*timeline.kernels, *timeline.collectives]
    free_since = 0
    for row in sorted(rows, key=lambda row: row.start):
        wait = max(0, row.start - free_since) if free_since else 0
        free_since = max(free_since, row.end)
        head: list[Cell] = [row.step, *names.device(timeline.device)]
        times: list[Cell] = [us_column(row.start), us(row.end - row.start), us(wait)]
        if not recording.details:
            yield [*head, *_row_without_details(row, names), *times, 0]
        elif isinstance(row, Collective):
            missing: list[Cell] = ["N/A"] * (len(_PMU) + 9)
            identity: list[Cell] = [NOT_IN_GRAPH, "N/A", "N/A", collective_name(row), collective_type(row), "N/A"]
            yield [*head, *identity, names.collective_core, *times, 0, *missing]
        else:
            yield [*head, *_kernel_row(timeline, row, times)]


def _row_without_details(row: DeviceTask | Collective, names: Names) -> list[Cell]:
    """Name, type and core: only a collective has a core."""
    if isinstance(row, Collective):
        return [collective_name(row), "N/A", names.collective_core]
    return [row.name, "N/A", "N/A"]


def _kernel_row(timeline: Timeline, task: DeviceTask, times: list[Cell]) -> list[Cell]:
    kernel, cost, chip = task.kernel, task.cost, timeline.chip
    assert kernel is not None and cost is not None
    cube, vector = counters(task, cost.cube), counters(task, cost.vector)
    cycles = cube.cycles if cube is not None else 0
    utilization = round(1e5 * cycles / (task.mhz * chip.cube_cores * (task.end - task.start)), 3) if cycles else 0
    columns: list[Cell] = [*_core_columns(cube, CUBE_PIPES), *_core_columns(vector, VECTOR_PIPES), utilization]
    return [
        NOT_IN_GRAPH,
        task.task_id,
        task.stream,
        task.name,
        kernel.type,
        "dynamic",
        kernel.core,
        *times,
        *block_counts(task),
        "NO",
        *(text for texts in tensor_texts(kernel) for text in texts),
        "N/A",
        *(columns if cube is not None or vector is not None else ["N/A"] * len(_PMU)),
    ]


def _core_columns(counted: Counters | None, pipes: tuple[str, ...]) -> list[Cell]:
    """Time, cycles, pipe times and ratios of one kind of core; ratios refer to the core's own time."""
    if counted is None:
        return [0.0, 0, *[0.0] * (2 * len(pipes) + 1)]
    columns: list[Cell] = [round(counted.time_ns / 1000, 3), counted.cycles]
    for pipe in pipes:
        columns += [round(counted.pipe_ns(pipe) / 1000, 3), counted.ratios[pipe]]
    return [*columns, counted.icache_miss]


def op_statistic(timeline: Timeline, names: Names) -> Iterator[Row]:
    """Time by operator type and core type, largest first; without communication."""
    yield [
        *names.device_header,
        "OP Type",
        "Core Type",
        "Count",
        "Total Time(us)",
        "Min Time(us)",
        "Avg Time(us)",
        "Max Time(us)",
        "Ratio(%)",
    ]
    durations: dict[tuple[str, str], list[float]] = defaultdict(list)
    for task in timeline.kernels:
        assert task.kernel is not None
        durations[task.kernel.type, task.kernel.core].append(us(task.end - task.start))
    total = sum(map(sum, durations.values()))
    for (type_, core), values in sorted(durations.items(), key=lambda item: -sum(item[1])):
        time = sum(values)
        yield [
            *names.device(timeline.device),
            type_,
            core,
            len(values),
            round(time, 3),
            min(values),
            round(mean(values), 3),
            max(values),
            round(100 * time / total, 3),
        ]


def step_trace_time(timeline: Timeline, names: Names) -> Iterator[Row]:
    """The breakdown of every step."""
    yield [
        *names.device_header,
        "Step",
        "Computing",
        "Communication(Not Overlapped)",
        "Overlapped",
        "Communication",
        "Free",
        "Stage",
        "Bubble",
        "Communication(Not Overlapped and Exclude Receive)",
        "Preparing",
    ]
    for step in step_times(timeline, closing_gap=True):
        yield [*names.device(timeline.device), step.number, *(us(time) if time else 0 for time in step.breakdown)]
