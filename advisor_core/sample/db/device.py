"""Tables of what ran on the device: tasks, kernels and their counters, collectives and their steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..export.counters import Counters, block_counts, counters
from ..export.generation import Names
from ..export.overlap import collective_name, collective_type
from ..export.planes import HARDWARE_NAMES, INVALID, plane_step
from ..export.recording import Recording
from ..export.values import collective_dtype, tensor_texts
from ..machine.chip import CUBE_PIPES, VECTOR_PIPES
from ..timeline import NOT_IN_GRAPH, Collective, DeviceTask, PlaneTask, Timeline
from .database import Database, Strings, Value
from .enums import DATA_TYPES, LINK_TYPES, RDMA_TYPES, TRANSPORT_TYPES, number

_KERNEL_TASKS = {
    "AI_CORE": "KERNEL_AICORE",
    "AI_VECTOR_CORE": "KERNEL_AIVEC",
    "MIX_AIC": "KERNEL_AICORE",
    "MIX_AIV": "KERNEL_AICORE",
    "AI_CPU": "KERNEL_AICPU",
}
"""The scheduler's name of the task of a kernel, by the core it runs on."""
_BEFORE_NS, _AFTER_NS = 600, 500
"""Time by which the task of a whole collective reaches beyond its first and last step (real files: 1.2, 1.5 us)."""
_NO_NOTIFY = 2**63 - 1
_VECTOR_PIPES = (VECTOR_PIPES[0], "mac", VECTOR_PIPES[1], "mte1", *VECTOR_PIPES[2:])
"""With the two that vector cores do not have: the file has counters of them all the same."""
_MISSING = "N/A"


@dataclass(frozen=True, slots=True)
class _Task:
    """A row of ``TASK`` and what it carries out; ``part`` only for a step of a collective."""

    start: int
    end: int
    connection: int
    type: str
    context: int
    stream: int
    task_id: int
    owner: DeviceTask | Collective
    part: PlaneTask | None = None


class DeviceTables:
    """The tables of one rank; tasks are numbered in the order of their start."""

    def __init__(self, timeline: Timeline, names: Names, recording: Recording, strings: Strings) -> None:
        self._timeline = timeline
        self._newer = names.has_versions
        self._recording = recording
        self._strings = strings
        tasks = [*_own_tasks(timeline), *_collective_tasks(timeline)]
        self._tasks = sorted(tasks, key=lambda task: task.start)

    def write(self, database: Database) -> None:
        """Write all of them."""
        database.table("TASK", self._task_rows())
        database.table("COMPUTE_TASK_INFO", self._kernel_rows(), newer=self._newer)
        database.table("COMMUNICATION_OP", self._collective_rows(), newer=self._newer)
        if self._recording.details:
            database.table("COMMUNICATION_TASK_INFO", self._step_rows(), newer=self._newer)
            database.table("TASK_PMU_INFO", self._counter_rows())

    def _task_rows(self) -> Iterator[tuple[Value, ...]]:
        for number_, task in enumerate(self._tasks):
            yield (
                task.start,
                task.end,
                self._timeline.device,
                task.connection,
                number_,
                self._timeline.pid,
                self._strings(task.type),
                task.context,
                task.stream,
                task.task_id,
                NOT_IN_GRAPH,
            )

    def _kernels(self) -> Iterator[tuple[int, DeviceTask]]:
        for number_, task in enumerate(self._tasks):
            if isinstance(task.owner, DeviceTask) and task.owner.kernel is not None:
                yield number_, task.owner

    def _kernel_rows(self) -> Iterator[tuple[Value, ...]]:
        for number_, task in self._kernels():
            assert task.kernel is not None
            blocks, texts, state = (0, 0), [_MISSING] * 8, _MISSING
            if self._recording.details:
                blocks, state = block_counts(task), "dynamic"
                (shapes, types, formats), (out_shapes, out_types, out_formats) = tensor_texts(task.kernel)
                texts = [task.kernel.core, task.kernel.type, formats, types, shapes, out_formats, out_types, out_shapes]
            row = (self._strings(task.name), number_, *blocks, *map(self._strings, [*texts, _MISSING]))
            yield (*row, self._strings(state)) if self._newer else row

    def _counter_rows(self) -> Iterator[tuple[Value, ...]]:
        metrics: list[dict[str, float]] = []
        kernels = [(number_, task) for number_, task in self._kernels() if _has_counters(task)]
        for _, task in kernels:
            assert task.cost is not None
            cube, vector = counters(task, task.cost.cube), counters(task, task.cost.vector)
            metrics.append({**_metrics("aic", cube, CUBE_PIPES), **_metrics("aiv", vector, _VECTOR_PIPES)})
        for name in metrics[0] if metrics else ():
            for (number_, _), values in zip(kernels, metrics, strict=True):
                yield number_, self._strings(name), values[name]

    def _collective_rows(self) -> Iterator[tuple[Value, ...]]:
        for number_, collective in enumerate(self._timeline.collectives, 1):
            row = (
                self._strings(collective_name(collective)),
                collective.start,
                collective.end,
                collective.launch.connection,
                self._strings(collective.group.key),
                number_,
                0,
                0,
                number(DATA_TYPES, collective_dtype(collective)),
                self._strings("MESH-RING"),
                collective.data.nbytes // collective.data.dtype.size,
                self._strings(collective_type(collective)),
            )
            yield (*row, self._timeline.device) if self._newer else row

    def _step_rows(self) -> Iterator[tuple[Value, ...]]:
        numbers = {id(collective): count for count, collective in enumerate(self._timeline.collectives, 1)}
        for number_, task in enumerate(self._tasks):
            if task.part is None or not isinstance(task.owner, Collective):
                continue
            part, step = task.part, plane_step(task.owner, task.part)
            row = (
                self._strings(collective_name(task.owner)),
                number_,
                self._strings(part.kind),
                part.plane,
                self._strings(task.owner.group.key),
                _NO_NOTIFY if step.notify is None else step.notify,
                number(RDMA_TYPES, INVALID),
                task.owner.group.local(self._timeline.rank),
                NOT_IN_GRAPH if part.peer is None else part.peer,
                number(TRANSPORT_TYPES, step.transport),
                part.nbytes,
                number(DATA_TYPES, step.dtype),
                number(LINK_TYPES, step.link),
                numbers[id(task.owner)],
            )
            moved = 1e9 * part.nbytes / (part.end - part.start)
            yield (*row, 1, moved) if self._newer else row


def _own_tasks(timeline: Timeline) -> Iterator[_Task]:
    for task in timeline.tasks:
        type_ = task.name if task.kernel is None else _KERNEL_TASKS[task.kernel.core]
        yield _Task(task.start, task.end, task.connection, type_, task.subtask, task.stream, task.task_id, owner=task)


def _collective_tasks(timeline: Timeline) -> Iterator[_Task]:
    """The steps of every collective, and the task around them, which the scheduler takes for one of the cube."""
    for collective in timeline.collectives:
        connection, task_id = collective.launch.connection, collective.task_id
        start, end, stream = collective.start - _BEFORE_NS, collective.end + _AFTER_NS, collective.group.stream
        yield _Task(start, end, connection, "AI_CORE", NOT_IN_GRAPH, stream, task_id, owner=collective)
        for part in collective.tasks:
            yield _Task(
                part.start,
                part.end,
                connection,
                HARDWARE_NAMES[part.kind],
                part.context,
                stream,
                task_id,
                owner=collective,
                part=part,
            )


def _has_counters(task: DeviceTask) -> bool:
    """Whether a kernel ran on cores that count."""
    return task.cost is not None and (task.cost.cube is not None or task.cost.vector is not None)


def _metrics(core: str, counted: Counters | None, pipes: tuple[str, ...]) -> dict[str, float]:
    """The counters of one kind of core by their names: times in ns, zeros where it was not used."""
    values: dict[str, float] = {
        f"{core}_total_time": counted.time_ns if counted else 0,
        f"{core}_total_cycles": counted.cycles if counted else 0,
    }
    for pipe in pipes:
        used = counted is not None and pipe in counted.ratios
        values[f"{core}_{pipe}_time"] = counted.pipe_ns(pipe) if counted and used else 0
        values[f"{core}_{pipe}_ratio"] = counted.ratios[pipe] if counted and used else 0
    values[f"{core}_icache_miss_rate"] = counted.icache_miss if counted else 0
    return values
