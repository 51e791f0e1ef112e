"""The second half of dispatch: the task queue, and the calls into CANN.

With a task queue a thread of its own empties it; without one the framework thread calls CANN itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from ..program import Communicate, NextBatch, Op, Replay
from ..timeline import COMPUTE_STREAM, HostSpan, LaunchPoint, QueueEntry
from .context import WORKSPACE_SHARE, RankContext
from .des import Channel, Process, Signal
from .device import DELIVERY_NS, GRAPH_GAP_NS, CollectiveTask, CopyTask, Device, EventTask, KernelTask, Marker

QUEUE_CAPACITY = 4096
"""Entries of the task queue of torch_npu."""
FIRST_CALL = 3
"""The first call of an interface costs this much more: its workspace and tiling are not cached yet."""


@dataclass(frozen=True, slots=True)
class PostEvent:
    """Record an event on a stream or let the stream wait for it."""

    event: Signal
    waits: bool
    stream: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Asks for notice when the queue, and then the compute stream, have run empty."""

    queue: Signal
    stream: Signal


@dataclass(frozen=True, slots=True)
class Update:
    """Gives a captured operator its parameters for this replay."""

    given: Signal


Work = Op | NextBatch | Communicate | PostEvent | Replay | Update


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of the task queue."""

    operator: str
    work: Work
    span: HostSpan
    correlation: int
    tid: int
    start: int
    end: int
    step: int


class CannThread:
    """Takes requests, calls CANN for them and puts their tasks on streams.

    Without ``queued`` it does so on the thread that submits; with ``blocking`` every launch waits for its kernels; with
    ``workspace`` it asks each operator for the scratch memory that it needs, and takes that from a pool of its own.
    """

    def __init__(
        self,
        context: RankContext,
        device: Device,
        *,
        queued: bool = True,
        blocking: bool = False,
        workspace: bool = False,
    ) -> None:
        self._context = context
        self.workspace = workspace
        self._queued = queued
        self._blocking = blocking
        self._device = device
        self._queue: Channel[_Entry | Drain] = Channel(context.simulator, QUEUE_CAPACITY)
        self._correlation = count(8_226)
        self._compiled = count()
        self._called: set[str] = set()

    def submit(self, operator: str, work: Work, span: HostSpan) -> Process:
        """Called by a framework thread: enter a request, waiting while the queue is full, or serve it at once."""
        context = self._context
        start = context.now
        if not self._queued:
            yield from self._serve(_Entry(operator, work, span, -1, span.tid, start, start, context.step), span.tid)
            return
        yield context.vary("host", 2_800)
        yield from self._queue.room()
        correlation = next(self._correlation)
        self._queue.post(_Entry(operator, work, span, correlation, span.tid, start, context.now, context.step))

    def drain(self, drain: Drain) -> Process:
        """Called by a framework thread: ask for notice when everything submitted so far is done."""
        if not self._queued:
            self._finish(drain)
            return
        yield from self._queue.room()
        self._queue.post(drain)

    def run(self) -> Process:
        """The process of the thread that empties the queue."""
        context = self._context
        tid = context.timeline.acl_tid
        while True:
            slept = self._queue.empty
            entry = yield from self._queue.get()
            if slept:
                yield context.disturbance.wake_up_ns()
            if isinstance(entry, Drain):
                self._finish(entry)
                continue
            yield context.vary("cann", 1_900)
            start = context.now
            yield from self._serve(entry, tid)
            yield context.vary("cann", 900)
            context.timeline.queue.append(
                QueueEntry(entry.operator, entry.correlation, entry.tid, entry.start, entry.end, start, context.now)
            )

    def _finish(self, drain: Drain) -> None:
        self._context.simulator.fire(drain.queue)
        self._device.post(COMPUTE_STREAM, Marker(drain.stream))

    def _serve(self, entry: _Entry, tid: int) -> Process:
        if isinstance(entry.work, Op):
            yield from self._launch(entry, entry.work, tid)
        elif isinstance(entry.work, NextBatch):
            yield from self._copy(entry, entry.work, tid)
        elif isinstance(entry.work, Communicate):
            yield from self._launch_collective(entry, entry.work, tid)
        elif isinstance(entry.work, Replay):
            yield from self._replay(entry, entry.work, tid)
        elif isinstance(entry.work, Update):
            yield from self._update(entry.work, tid)
        else:
            yield from self._post_event(entry, entry.work, tid)

    def _launch(self, entry: _Entry, op: Op, tid: int) -> Process:
        assert op.launch is not None
        context, launch = self._context, op.launch
        yield context.vary("cann", 900)
        outer = context.now
        if launch.compiled:
            names = [f"{kernel.type}{next(self._compiled)}" for kernel in launch.kernels]
            yield from self._compile(tid)
        else:
            names = [kernel.name for kernel in launch.kernels]
            yield context.vary("cann", context.costs.cann * (1 if launch.acl in self._called else FIRST_CALL))
            self._called.add(launch.acl)
            if self.workspace:
                own = context.costs.autograd if entry.span.is_backward else context.costs.operator
                yield context.vary("cann", own * WORKSPACE_SHARE)
                context.request_workspace(launch)
        for kernel, name in zip(launch.kernels, names, strict=True):
            start = context.now
            yield context.vary("cann", context.costs.launch * 0.7)
            handed = context.now
            yield context.vary("cann", context.costs.launch * 0.3)
            connection = context.call("Node@launch", tid, start, "launch", "node", name)
            point = LaunchPoint(tid, handed, connection, None, entry.span)
            self._device.post(COMPUTE_STREAM, KernelTask(kernel, name, point, handed + DELIVERY_NS, entry.step))
        yield context.vary("cann", 1_500)
        if launch.compiled:
            context.call("AscendCL@aclopCompileAndExecute", tid, outer, "ACL_OP", "acl")
        else:
            context.call(f"AscendCL@{launch.acl}", tid, outer, "ACL_NN", "acl")
        if self._blocking:
            done = Signal()
            self._device.post(COMPUTE_STREAM, Marker(done))
            start = context.now
            yield done
            yield context.vary("cann", 6_000)
            context.call("AscendCL@aclrtSynchronizeStreamWithTimeout", tid, start, "ACL_RTS", "acl")

    def _replay(self, entry: _Entry, replay: Replay, tid: int) -> Process:
        """All kernels of the graph with one call, which takes longer the more there are."""
        context, costs = self._context, self._context.costs
        launches = [(op, op.launch) for op in replay.ops if op.launch is not None]
        kernels = [(op, kernel) for op, launch in launches for kernel in launch.kernels]
        start = context.now
        yield context.vary("cann", costs.replay + costs.replayed * len(kernels))
        handed = context.now
        yield context.vary("cann", 1_500)
        connection = context.call("AscendCL@aclmdlRIExecuteAsync", tid, start, "ACL_RTS", "acl")
        point = LaunchPoint(tid, handed, connection, None, entry.span)
        for op, kernel in kernels:
            task = KernelTask(
                kernel, kernel.name, point, handed + DELIVERY_NS, entry.step, GRAPH_GAP_NS, context.parameters_of(op)
            )
            self._device.post(COMPUTE_STREAM, task)

    def _update(self, update: Update, tid: int) -> Process:
        context = self._context
        start = context.now
        yield context.vary("cann", context.costs.cann)
        context.call("AscendCL@aclmdlRICaptureTaskUpdateEnd", tid, start, "ACL_RTS", "acl")
        context.simulator.fire(update.given)

    def _compile(self, tid: int) -> Process:
        """The operator compiler looks the operator up and selects or builds its binary."""
        context = self._context
        yield context.vary("cann", 6_000)
        start = context.now
        yield context.vary("cann", 21_000)
        context.call("AscendCL@opCompile", tid, start, "ACL_OP", "acl")
        yield context.vary("cann", context.costs.compile)

    def _copy(self, entry: _Entry, work: NextBatch, tid: int) -> Process:
        context = self._context
        start = context.now
        yield context.vary("cann", 15_000)
        connection = context.call("AscendCL@aclrtMemcpyAsync", tid, start, "ACL_RTS", "acl")
        point = LaunchPoint(tid, start, connection, connection, entry.span)
        ready = context.now + DELIVERY_NS
        self._device.post(COMPUTE_STREAM, CopyTask(work.batch.nbytes, point, ready, entry.step))

    def _launch_collective(self, entry: _Entry, work: Communicate, tid: int) -> Process:
        context = self._context
        yield context.vary("cann", 9_000)
        outer = context.now
        yield context.vary("cann", context.costs.collective)
        start = context.now
        yield context.vary("cann", 28_000)
        ready = context.now + DELIVERY_NS
        context.call("Hccl@Launch_Ffts", tid, start, "master", "hccl", "Launch_Ffts")
        yield context.vary("cann", 12_000)
        name = f"hcom_{work.operation}_"
        acl = context.call(f"AscendCL@{name}", tid, outer, "HOST_HCCL", "acl", name)
        connection = context.call("Node@launch", tid, outer, "launch", "node", name)
        point = LaunchPoint(tid, outer, connection, acl << 32 | 0xFFFFFFFF, entry.span)
        self._device.post(work.group.stream, CollectiveTask(work, point, ready, entry.step))

    def _post_event(self, entry: _Entry, work: PostEvent, tid: int) -> Process:
        context = self._context
        start = context.now
        yield context.vary("cann", 5_500)
        name = "aclrtStreamWaitEvent" if work.waits else "aclrtRecordEvent"
        connection = context.call(f"AscendCL@{name}", tid, start, "ACL_RTS", "acl")
        ready = context.now + DELIVERY_NS
        self._device.post(work.stream, EventTask(work.event, work.waits, connection, ready, entry.step))
