"""Tables of device tasks: kernel_details.csv, op_statistic.csv and step_trace_time.csv."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ..chip import CUBE_PIPES, VECTOR_PIPES, CoreUse
from ..kernels import Kernel, Tensor
from ..timeline import NOT_IN_GRAPH, Collective, DeviceTask, Timeline
from .fields import Cell, Names, Row, mean, quoted, shape_text, us, us_column
from .overlap import OverlapAnalysis, OverlapEvent, collective_name

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


def kernel_details(timeline: Timeline, names: Names) -> Iterator[Row]:
    """One row per kernel and per collective, in the order of their start."""
    yield [*_device_first(names), *_BEFORE_PMU, *_PMU]
    rows: list[DeviceTask | Collective] = [*timeline.kernels, *timeline.collectives]
    free_since = 0
    for row in sorted(rows, key=lambda row: row.start):
        wait = max(0, row.start - free_since) if free_since else 0
        free_since = max(free_since, row.end)
        head: list[Cell] = [row.step, *names.device(timeline.device)]
        if isinstance(row, Collective):
            missing: list[Cell] = ["N/A"] * (len(_PMU) + 9)
            yield [
                *head,
                NOT_IN_GRAPH,
                "N/A",
                "N/A",
                collective_name(row),
                "hcom_allReduce_",
                "N/A",
                names.collective_core,
                us_column(row.start),
                us(row.end - row.start),
                us(wait),
                0,
                *missing,
            ]
        else:
            yield [*head, *_kernel_row(timeline, row, wait)]


def _device_first(names: Names) -> list[Cell]:
    return ["Step Id", *names.device_header]


def _kernel_row(timeline: Timeline, task: DeviceTask, wait: int) -> list[Cell]:
    kernel, cost = task.kernel, task.cost
    assert kernel is not None and cost is not None
    main = cost.vector if cost.cube is None else cost.cube
    mixed = cost.vector.blocks if cost.cube is not None and cost.vector is not None else 0
    blocks = main.blocks if main is not None else 0
    duration = task.end - task.start
    cube, cycles = _core_columns(timeline, cost.cube, task.scale, CUBE_PIPES)
    vector, _ = _core_columns(timeline, cost.vector, task.scale, VECTOR_PIPES)
    chip = timeline.chip
    utilization = round(1e5 * cycles / (chip.mhz * chip.cube_cores * duration), 3) if cycles else 0
    return [
        NOT_IN_GRAPH,
        task.task_id,
        task.stream,
        task.name,
        kernel.type,
        "dynamic",
        kernel.core,
        us_column(task.start),
        us(duration),
        us(wait),
        blocks,
        mixed,
        "NO",
        *_tensor_columns(kernel),
        "N/A",
        *cube,
        *vector,
        utilization,
    ]


def _tensor_columns(kernel: Kernel) -> list[Cell]:
    return [column for tensors in (kernel.inputs, kernel.outputs) for column in _describe(tensors)]


def _describe(tensors: tuple[Tensor, ...]) -> list[Cell]:
    return [
        quoted(map(shape_text, tensors)),
        ";".join(tensor.dtype.device_name for tensor in tensors),
        ";".join(tensor.fmt for tensor in tensors),
    ]


def _core_columns(
    timeline: Timeline, use: CoreUse | None, scale: float, pipes: tuple[str, ...]
) -> tuple[list[Cell], int]:
    """Time, cycles, pipe times and ratios of one kind of core; ratios refer to the core's own time."""
    if use is None:
        return [0.0, 0, *[0.0] * (2 * len(pipes) + 1)], 0
    time_us = round(use.time_ns * scale / 1000, 3)
    cycles = round(time_us * timeline.chip.mhz * use.blocks)
    columns: list[Cell] = [time_us, cycles]
    for pipe in pipes:
        ratio = round(use.ratios[pipe], 3)
        columns += [round(time_us * ratio, 3), ratio]
    return [*columns, round(use.icache_miss, 3)], cycles


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
    """The breakdown of every step, added up from the overlap analysis as the exporter does (facts A5).

    An event belongs to the step in whose window it starts. The window begins with the first task
    of the step and ends with its last one, or with the step on the host if that is later.
    """
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
    events = OverlapAnalysis.of(timeline).events()
    for step in timeline.steps:
        launched = [task for task in timeline.tasks if task.step == step.number and task.launch is not None]
        launched_collectives = [part for part in timeline.collectives if part.step == step.number]
        tasks: list[DeviceTask | Collective] = [*launched, *launched_collectives]
        start = min(task.start for task in tasks)
        end = max(step.end, *(task.end for task in tasks))
        inside = [event for event in events if start <= event.start < end]
        busy = [event.start for event in inside if event.lane in {"Computing", "Communication"}]
        sums = {lane: _time(inside, lane) for lane in OverlapAnalysis.LANES}
        exposed = sums["Communication(Not Overlapped)"]
        stage = max(event.end for event in inside) - min(event.start for event in inside)
        yield [
            *names.device(timeline.device),
            step.number,
            us(sums["Computing"]),
            us(exposed),
            us(sums["Communication"] - exposed),
            us(sums["Communication"]),
            us(sums["Free"]),
            us(stage),
            0,
            us(exposed),
            us(min(busy) - step.start),
        ]


def _time(events: list[OverlapEvent], lane: str) -> int:
    return sum(event.end - event.start for event in events if event.lane == lane)
