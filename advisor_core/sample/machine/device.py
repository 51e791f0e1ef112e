"""The device of one rank: a compute stream and one per communication group, each of them in order."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import count

from ..kernels import Kernel
from ..program import Communicate
from ..timeline import COMPUTE_STREAM, Collective, DeviceTask, LaunchPoint
from .chip import Costs
from .context import RankContext
from .des import Chain, Channel, Process, Signal
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


@dataclass(eq=False, slots=True)
class KernelTask:
    """A kernel under the name that its launch gave it. ``gap``: to the task before it on a busy stream; ``after``: what
    it waits for."""

    kernel: Kernel
    name: str
    launch: LaunchPoint | None
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
    """Runs the tasks of all streams and records them. ``done``: when the last task of each step has ended, by its
    number, for each stream."""

    def __init__(self, context: RankContext, costs: Costs, groups: Groups) -> None:
        self._context = context
        self._costs = costs
        self._groups = groups
        timeline = context.timeline
        communication = [group.stream for group in timeline.layout.groups(timeline.rank)]
        self.streams = (COMPUTE_STREAM, *communication)
        self._queues: dict[int, Channel[StreamTask]] = {stream: Channel(context.simulator) for stream in self.streams}
        self._traffic = Traffic()
        self._normal = context.draws.standard_normal(f"{context.timeline.rank}/device")
        self.done: dict[int, dict[int, int]] = {stream: {} for stream in self.streams}
        self._task_ids = {COMPUTE_STREAM: count(11_051), **{stream: count(806) for stream in communication}}

    def post(self, stream: int, task: StreamTask, at: int) -> None:
        """Put a task at the end of a stream."""
        self._queues[stream].post(task, at)

    def stream(self, number: int) -> Process:
        """The process of one stream: the next task starts when it is delivered and the one before is done."""
        chain, queue, done = Chain(self._context.now), self._queues[number], self.done[number]
        while True:
            task = yield from queue.get(chain)
            if isinstance(task, KernelTask):
                chain.at = max(chain.at + task.gap, task.ready)
                yield from self._kernel(task, number, chain)
            elif isinstance(task, Marker):
                chain.at += STREAM_GAP_NS
                self._context.simulator.fire(task.reached, chain.at)
                continue
            else:
                chain.at = max(chain.at + STREAM_GAP_NS, task.ready)
                if isinstance(task, EventTask):
                    yield from self._event(task, number, chain)
                elif isinstance(task, CopyTask):
                    yield from self._copy(task, number, chain)
                else:
                    yield from self._collective(task, number, chain)
            done[task.step] = chain.at

    def _kernel(self, task: KernelTask, stream: int, chain: Chain) -> Process:
        context = self._context
        if task.after is not None:
            yield from chain.wait(task.after)
        start = chain.at
        mhz = context.timeline.mhz(start)
        cost = self._costs.of(task.kernel, mhz)
        scale = max(0.95, 1 + KERNEL_SPREAD * next(self._normal))
        scale *= context.disturbance.of_kernel()
        duration_ns = round(cost.duration_ns * scale)
        factor = context.disturbance.contention(task.kernel)
        if factor == 1.0:
            chain.at += duration_ns
        else:
            yield from self._slowed(chain, duration_ns, factor)
        if context.records:
            scale *= (chain.at - start) / max(1, duration_ns)
            record = yield from self._record(task.name, task.kernel.core, stream, chain, start, task.step, task.launch)
            record.kernel, record.cost, record.scale, record.mhz = task.kernel, cost, scale, mhz

    def _slowed(self, chain: Chain, duration_ns: int, factor: float) -> Process:
        """Run a kernel that takes so long by itself, and longer by a factor where data of the rank moves meanwhile."""
        began = chain.at
        # What begins while it runs is not known before: whenever it should be done it looks again.
        while (end := self._traffic.end(began, duration_ns, factor)) > self._context.now:
            yield end - self._context.now
        chain.at = end

    def _copy(self, task: CopyTask, stream: int, chain: Chain) -> Process:
        start = chain.at
        chain.at += COPY_NS + round(1e9 * task.nbytes / PCIE_BYTES_PER_S)
        if self._context.records:
            yield from self._record("MEMCPY_ASYNC", "PCIE_DMA_SQE", stream, chain, start, task.step, task.launch)

    def _event(self, task: EventTask, stream: int, chain: Chain) -> Process:
        start = chain.at
        if task.waits:
            yield from chain.wait(task.event)
        chain.at += EVENT_NS
        if self._context.records:
            name = "EVENT_WAIT" if task.waits else "EVENT_RECORD"
            yield from self._record(name, f"{name}_SQE", stream, chain, start, task.step, None, task.connection)
        if not task.waits:
            self._context.simulator.fire(task.event, chain.at)

    def _collective(self, task: CollectiveTask, stream: int, chain: Chain) -> Process:
        # Random numbers of links are drawn, and data moves, in the order of time.
        yield self._context.behind(chain)
        start = chain.at
        request = task.request
        rank = request.group.local(self._context.timeline.rank)
        meeting = self._groups.meeting(request, rank)
        if meeting.arrive(rank, request, start):
            self._context.simulator.fire(meeting.met, start)
        yield from chain.wait(meeting.met)
        plan = self._groups.plan(meeting, request)
        chain.at = plan.end(rank, meeting.arrivals)
        self._traffic.add(max(meeting.arrivals.values()), chain.at)
        if not self._context.records:
            return
        yield self._context.behind(chain)
        self._context.timeline.collectives.append(
            Collective(
                operation=request.operation,
                group=request.group,
                index=request.index,
                data=request.data,
                step=task.step,
                task_id=next(self._task_ids[stream]),
                start=start,
                end=chain.at,
                launch=task.launch,
                tasks=plan.tasks(rank, meeting.arrivals),
            )
        )

    def _record(
        self,
        name: str,
        task_type: str,
        stream: int,
        chain: Chain,
        start: int,
        step: int,
        launch: LaunchPoint | None,
        connection: int = 0,
    ) -> Generator[int | Signal, None, DeviceTask]:
        yield self._context.behind(chain)  # the tasks of all streams are recorded in the order in which they end
        task = DeviceTask(
            name=name,
            task_type=task_type,
            stream=stream,
            task_id=next(self._task_ids[stream]),
            start=start,
            end=chain.at,
            step=step,
            connection=connection if launch is None else launch.connection,
            launch=launch,
        )
        self._context.timeline.tasks.append(task)
        return task
