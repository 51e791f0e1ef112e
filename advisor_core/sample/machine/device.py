"""The device of one rank: a compute stream and one per communication group, each of them in order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from ..kernels import Kernel
from ..program import Communicate
from ..timeline import COMPUTE_STREAM, Collective, DeviceTask, LaunchPoint
from .chip import Costs
from .context import RankContext
from .des import Channel, Process, Signal
from .group import Groups
from .physics import Traffic

DELIVERY_NS = 13_000
"""From the launch call to the earliest start on an idle device (docs/sources.md#launch-latency)."""
STREAM_GAP_NS = 1_100
"""Between two tasks of a busy stream."""
GRAPH_GAP_NS = 150
"""Between two tasks of a replayed graph (docs/sources.md#replay-of-a-graph)."""
EVENT_NS = 20
COPY_NS = 2_300
PCIE_BYTES_PER_S = 22e9
KERNEL_SPREAD = 0.012


@dataclass(frozen=True, slots=True)
class KernelTask:
    """A kernel under the name that its launch gave it. ``gap``: to the task before it on a busy stream; ``after``: what
    it waits for."""

    kernel: Kernel
    name: str
    launch: LaunchPoint
    ready: int
    step: int
    gap: int = STREAM_GAP_NS
    after: Signal | None = None


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
    """This rank's part of an operation of a group."""

    request: Communicate
    launch: LaunchPoint
    ready: int
    step: int


@dataclass(frozen=True, slots=True)
class Marker:
    """Tells a waiting thread that everything before it is done."""

    reached: Signal


StreamTask = KernelTask | CopyTask | EventTask | CollectiveTask | Marker


class Device:
    """Runs the tasks of all streams and records them."""

    def __init__(self, context: RankContext, costs: Costs, groups: Groups) -> None:
        self._context = context
        self._costs = costs
        self._groups = groups
        timeline = context.timeline
        communication = [group.stream for group in timeline.layout.groups(timeline.rank)]
        self.streams = (COMPUTE_STREAM, *communication)
        self._queues: dict[int, Channel[StreamTask]] = {stream: Channel(context.simulator) for stream in self.streams}
        self._traffic = Traffic()
        self._task_ids = {COMPUTE_STREAM: count(11_051), **{stream: count(806) for stream in communication}}

    def post(self, stream: int, task: StreamTask) -> None:
        """Put a task at the end of a stream."""
        self._queues[stream].post(task)

    def stream(self, number: int) -> Process:
        """The process of one stream: the next task starts when it is delivered and the one before is done."""
        while True:
            task = yield from self._queues[number].get()
            if isinstance(task, Marker):
                yield STREAM_GAP_NS
                self._context.simulator.fire(task.reached)
                continue
            gap = task.gap if isinstance(task, KernelTask) else STREAM_GAP_NS
            yield max(gap, task.ready - self._context.now)
            if isinstance(task, EventTask):
                yield from self._event(task, number)
            elif isinstance(task, KernelTask):
                yield from self._kernel(task, number)
            elif isinstance(task, CopyTask):
                yield from self._copy(task, number)
            else:
                yield from self._collective(task, number)

    def _kernel(self, task: KernelTask, stream: int) -> Process:
        if task.after is not None:
            yield task.after
        start = self._context.now
        mhz = self._context.timeline.mhz(start)
        cost = self._costs.of(task.kernel, mhz)
        scale = max(0.95, 1 + KERNEL_SPREAD * self._context.random["device"].gauss(0, 1))
        scale *= self._context.disturbance.of_kernel()
        yield from self._slowed(task.kernel, round(cost.duration_ns * scale))
        scale *= (self._context.now - start) / max(1, round(cost.duration_ns * scale))
        record = self._record(task.name, task.kernel.core, stream, start, task.step, task.launch)
        record.kernel, record.cost, record.scale, record.mhz = task.kernel, cost, scale, mhz

    def _slowed(self, kernel: Kernel, duration_ns: int) -> Process:
        """Run a kernel that takes so long by itself, and longer where data of the rank moves meanwhile."""
        factor = self._context.disturbance.contention(kernel)
        began, left = self._context.now, duration_ns
        if factor == 1.0:
            yield left
            return
        # What begins while it runs is not known before: whenever it should be done it looks again.
        while (end := self._traffic.end(began, left, factor)) > self._context.now:
            yield end - self._context.now

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
        request = task.request
        rank = request.group.local(self._context.timeline.rank)
        meeting = self._groups.meeting(request, rank)
        if meeting.arrive(rank, request, start):
            self._context.simulator.fire(meeting.met)
        yield meeting.met
        parts = self._groups.plan(meeting, request).tasks(rank, meeting.arrivals)
        end = max(part.end for part in parts)
        self._traffic.add(max(meeting.arrivals.values()), end)
        yield end - self._context.now
        self._context.timeline.collectives.append(
            Collective(
                operation=request.operation,
                group=request.group,
                index=request.index,
                data=request.data,
                step=task.step,
                task_id=next(self._task_ids[stream]),
                start=start,
                end=end,
                launch=task.launch,
                tasks=parts,
            )
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
