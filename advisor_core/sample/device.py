"""The device of one rank: a compute stream and a communication stream, each of them in order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from .chip import Chip, KernelCost
from .context import RankContext
from .des import Channel, Process, Signal
from .group import Group
from .kernels import Kernel
from .program import AllReduce
from .timeline import COMMUNICATION_STREAM, COMPUTE_STREAM, Collective, DeviceTask, LaunchPoint

DELIVERY_NS = 13_000
"""From the launch call to the earliest start on an idle device (facts B1: some us to 20 us)."""
STREAM_GAP_NS = 1_100
"""Between two tasks of a busy stream."""
EVENT_NS = 20
COPY_NS = 2_300
PCIE_BYTES_PER_S = 22e9
KERNEL_SPREAD = 0.012


@dataclass(frozen=True, slots=True)
class KernelTask:
    """A kernel under the name that its launch gave it."""

    kernel: Kernel
    name: str
    launch: LaunchPoint
    ready: int
    step: int


@dataclass(frozen=True, slots=True)
class CopyTask:
    """A copy from the host."""

    nbytes: int
    launch: LaunchPoint
    ready: int
    step: int


@dataclass(frozen=True, slots=True)
class EventTask:
    """Records an event for another stream, or waits for one."""

    event: Signal
    waits: bool
    connection: int
    ready: int
    step: int


@dataclass(frozen=True, slots=True)
class CollectiveTask:
    """This rank's part of a collective."""

    request: AllReduce
    launch: LaunchPoint
    ready: int
    step: int


@dataclass(frozen=True, slots=True)
class Marker:
    """Tells a waiting thread that everything before it is done."""

    reached: Signal


StreamTask = KernelTask | CopyTask | EventTask | CollectiveTask | Marker


class Device:
    """Runs the tasks of both streams and records them."""

    def __init__(self, context: RankContext, chip: Chip, group: Group) -> None:
        self._context = context
        self._chip = chip
        self._group = group
        self._streams: dict[int, Channel[StreamTask]] = {
            COMPUTE_STREAM: Channel(context.simulator),
            COMMUNICATION_STREAM: Channel(context.simulator),
        }
        self._task_ids = {COMPUTE_STREAM: count(11_051), COMMUNICATION_STREAM: count(806)}

    def post(self, stream: int, task: StreamTask) -> None:
        """Put a task at the end of a stream."""
        self._streams[stream].post(task)

    def stream(self, number: int) -> Process:
        """The process of one stream: the next task starts when it is delivered and the one before is done."""
        while True:
            task = yield from self._streams[number].get()
            if isinstance(task, Marker):
                yield STREAM_GAP_NS
                self._context.simulator.fire(task.reached)
                continue
            yield max(STREAM_GAP_NS, task.ready - self._context.now)
            if isinstance(task, EventTask):
                yield from self._event(task, number)
            elif isinstance(task, KernelTask):
                yield from self._kernel(task, number)
            elif isinstance(task, CopyTask):
                yield from self._copy(task, number)
            else:
                yield from self._collective(task, number)

    def _kernel(self, task: KernelTask, stream: int) -> Process:
        start = self._context.now
        cost: KernelCost = self._chip.cost(task.kernel)
        scale = max(0.95, 1 + KERNEL_SPREAD * self._context.random["device"].gauss(0, 1))
        yield round(cost.duration_ns * scale)
        record = self._record(task.name, task.kernel.core, stream, start, task.step, task.launch)
        record.kernel, record.cost, record.scale = task.kernel, cost, scale

    def _copy(self, task: CopyTask, stream: int) -> Process:
        start = self._context.now
        yield COPY_NS + round(1e9 * task.nbytes / PCIE_BYTES_PER_S)
        self._record("MEMCPY_ASYNC", "PCIE_DMA_SQE", stream, start, task.step, task.launch)

    def _event(self, task: EventTask, stream: int) -> Process:
        start = self._context.now
        if task.waits:
            yield task.event
        yield EVENT_NS
        name = "EVENT_WAIT" if task.waits else "EVENT_RECORD"
        self._record(name, f"{name}_SQE", stream, start, task.step, None, task.connection)
        if not task.waits:
            self._context.simulator.fire(task.event)

    def _collective(self, task: CollectiveTask, stream: int) -> Process:
        start = self._context.now
        data, index = task.request.elements, task.request.index
        meeting = self._group.meeting(index)
        rank = self._context.timeline.rank
        if meeting.arrive(rank, start):
            self._context.simulator.fire(meeting.met)
        yield meeting.met
        plan = self._group.plan(index, data.nbytes)
        parts = plan.tasks(rank, meeting.arrivals)
        end = max(part.end for part in parts)
        yield end - self._context.now
        self._context.timeline.collectives.append(
            Collective(index, data, task.step, next(self._task_ids[stream]), start, end, task.launch, parts)
        )

    def _record(
        self,
        name: str,
        task_type: str,
        stream: int,
        start: int,
        step: int,
        launch: LaunchPoint | None,
        connection: int = 0,
    ) -> DeviceTask:
        task = DeviceTask(
            name=name,
            task_type=task_type,
            stream=stream,
            task_id=next(self._task_ids[stream]),
            start=start,
            end=self._context.now,
            step=step,
            connection=connection if launch is None else launch.connection,
            launch=launch,
        )
        self._context.timeline.tasks.append(task)
        return task
