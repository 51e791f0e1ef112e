"""The second half of dispatch: the task queue, and the calls into CANN.

With a task queue a thread of its own empties it; without one the framework thread calls CANN itself.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from itertools import count

from ..program import Communicate, NextBatch, Op, Replay
from ..timeline import COMPUTE_STREAM, HostSpan, LaunchPoint, QueueEntry
from .context import WORKSPACE_SHARE, RankContext
from .des import Chain, Channel, Process, Signal
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


@dataclass(eq=False, slots=True)
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
        self._vary = context.cann
        self.workspace = workspace
        self._queued = queued
        self._blocking = blocking
        self._device = device
        self._queue: Channel[_Entry | Drain] = Channel(context.simulator, QUEUE_CAPACITY)
        self._correlation = count(8_226)
        self._compiled = count()
        self._called: set[str] = set()

    def submit(self, operator: str, work: Work, span: HostSpan, chain: Chain) -> Process:
        """Called by a framework thread: enter a request, waiting while the queue is full, or serve it at once."""
        start, step = chain.at, self._context.step
        if not self._queued:
            yield from self._serve(_Entry(operator, work, span, -1, span.tid, start, start, step), span.tid, chain)
            return
        chain.at += self._context.host(2_800)
        yield from self._queue.room(chain)
        correlation = next(self._correlation)
        self._queue.post(_Entry(operator, work, span, correlation, span.tid, start, chain.at, step), chain.at)

    def drain(self, drain: Drain, chain: Chain) -> Process:
        """Called by a framework thread: ask for notice when everything submitted so far is done."""
        if not self._queued:
            self._finish(drain, chain)
            return
        yield from self._queue.room(chain)
        self._queue.post(drain, chain.at)

    def run(self) -> Process:
        """The process of the thread that empties the queue."""
        context = self._context
        tid = context.timeline.acl_tid
        chain = Chain(context.simulator.now)
        while True:
            before = chain.at
            entry = yield from self._queue.get(chain)
            if chain.at > before:
                chain.at += context.disturbance.wake_up_ns()
            if isinstance(entry, Drain):
                self._finish(entry, chain)
                continue
            chain.at += self._vary(1_900)
            start = chain.at
            yield from self._serve(entry, tid, chain)
            chain.at += self._vary(900)
            if context.records:
                context.timeline.queue.append(
                    QueueEntry(entry.operator, entry.correlation, entry.tid, entry.start, entry.end, start, chain.at)
                )

    def _finish(self, drain: Drain, chain: Chain) -> None:
        self._context.simulator.fire(drain.queue, chain.at)
        self._device.post(COMPUTE_STREAM, Marker(drain.stream), chain.at)

    def _call(
        self, name: str, tid: int, chain: Chain, start: int, mode: str, level: str, item: str = "0"
    ) -> Generator[int | Signal, None, int]:
        """Record a call that ends now; returns its connection id."""
        if not self._context.records:
            return 0
        yield self._context.behind(chain)
        return self._context.call(name, tid, start, mode, level, item)

    def _serve(self, entry: _Entry, tid: int, chain: Chain) -> Process:
        if isinstance(entry.work, Op):
            yield from self._launch(entry, entry.work, tid, chain)
        elif isinstance(entry.work, NextBatch):
            yield from self._copy(entry, entry.work, tid, chain)
        elif isinstance(entry.work, Communicate):
            yield from self._launch_collective(entry, entry.work, tid, chain)
        elif isinstance(entry.work, Replay):
            yield from self._replay(entry, entry.work, tid, chain)
        elif isinstance(entry.work, Update):
            yield from self._update(entry.work, tid, chain)
        else:
            yield from self._post_event(entry, entry.work, tid, chain)

    def _launch(self, entry: _Entry, op: Op, tid: int, chain: Chain) -> Process:
        assert op.launch is not None
        context, launch = self._context, op.launch
        chain.at += self._vary(900)
        outer = chain.at
        if launch.compiled:
            names = [f"{kernel.type}{next(self._compiled)}" for kernel in launch.kernels]
            yield from self._compile(tid, chain)
        else:
            names = [kernel.name for kernel in launch.kernels]
            chain.at += self._vary(context.costs.cann * (1 if launch.acl in self._called else FIRST_CALL))
            self._called.add(launch.acl)
            if self.workspace:
                own = context.costs.autograd if entry.span.is_backward else context.costs.operator
                chain.at += self._vary(own * WORKSPACE_SHARE)
                context.request_workspace(launch, chain.at)
        for kernel, name in zip(launch.kernels, names, strict=True):
            start = chain.at
            chain.at += self._vary(context.costs.launch * 0.7)
            handed = chain.at
            chain.at += self._vary(context.costs.launch * 0.3)
            point = None
            if context.records:
                connection = yield from self._call("Node@launch", tid, chain, start, "launch", "node", name)
                point = LaunchPoint(tid, handed, connection, None, entry.span)
            task = KernelTask(kernel, name, point, handed + DELIVERY_NS, entry.step)
            self._device.post(COMPUTE_STREAM, task, chain.at)
        chain.at += self._vary(1_500)
        if context.records:
            name, mode = (f"AscendCL@{launch.acl}", "ACL_NN")
            if launch.compiled:
                name, mode = ("AscendCL@aclopCompileAndExecute", "ACL_OP")
            yield from self._call(name, tid, chain, outer, mode, "acl")
        if self._blocking:
            done = Signal()
            self._device.post(COMPUTE_STREAM, Marker(done), chain.at)
            start = chain.at
            yield from chain.wait(done)
            chain.at += self._vary(6_000)
            yield from self._call("AscendCL@aclrtSynchronizeStreamWithTimeout", tid, chain, start, "ACL_RTS", "acl")

    def _replay(self, entry: _Entry, replay: Replay, tid: int, chain: Chain) -> Process:
        """All kernels of the graph with one call, which takes longer the more there are."""
        context, costs = self._context, self._context.costs
        launches = [(op, op.launch) for op in replay.ops if op.launch is not None]
        kernels = [(op, kernel) for op, launch in launches for kernel in launch.kernels]
        start = chain.at
        chain.at += self._vary(costs.replay + costs.replayed * len(kernels))
        handed = chain.at
        chain.at += self._vary(1_500)
        connection = yield from self._call("AscendCL@aclmdlRIExecuteAsync", tid, chain, start, "ACL_RTS", "acl")
        point = LaunchPoint(tid, handed, connection, None, entry.span)
        for op, kernel in kernels:
            task = KernelTask(
                kernel, kernel.name, point, handed + DELIVERY_NS, entry.step, GRAPH_GAP_NS, context.parameters_of(op)
            )
            self._device.post(COMPUTE_STREAM, task, chain.at)

    def _update(self, update: Update, tid: int, chain: Chain) -> Process:
        context = self._context
        start = chain.at
        chain.at += self._vary(context.costs.cann)
        yield from self._call("AscendCL@aclmdlRICaptureTaskUpdateEnd", tid, chain, start, "ACL_RTS", "acl")
        context.simulator.fire(update.given, chain.at)

    def _compile(self, tid: int, chain: Chain) -> Process:
        """The operator compiler looks the operator up and selects or builds its binary."""
        context = self._context
        chain.at += self._vary(6_000)
        start = chain.at
        chain.at += self._vary(21_000)
        yield from self._call("AscendCL@opCompile", tid, chain, start, "ACL_OP", "acl")
        chain.at += self._vary(context.costs.compile)

    def _copy(self, entry: _Entry, work: NextBatch, tid: int, chain: Chain) -> Process:
        start = chain.at
        chain.at += self._vary(15_000)
        connection = yield from self._call("AscendCL@aclrtMemcpyAsync", tid, chain, start, "ACL_RTS", "acl")
        point = LaunchPoint(tid, start, connection, connection, entry.span)
        ready = chain.at + DELIVERY_NS
        self._device.post(COMPUTE_STREAM, CopyTask(work.batch.nbytes, point, ready, entry.step), chain.at)

    def _launch_collective(self, entry: _Entry, work: Communicate, tid: int, chain: Chain) -> Process:
        context = self._context
        chain.at += self._vary(9_000)
        outer = chain.at
        chain.at += self._vary(context.costs.collective)
        start = chain.at
        chain.at += self._vary(28_000)
        ready = chain.at + DELIVERY_NS
        yield from self._call("Hccl@Launch_Ffts", tid, chain, start, "master", "hccl", "Launch_Ffts")
        chain.at += self._vary(12_000)
        name = f"hcom_{work.operation}_"
        acl = yield from self._call(f"AscendCL@{name}", tid, chain, outer, "HOST_HCCL", "acl", name)
        connection = yield from self._call("Node@launch", tid, chain, outer, "launch", "node", name)
        point = LaunchPoint(tid, outer, connection, acl << 32 | 0xFFFFFFFF, entry.span)
        self._device.post(work.group.stream, CollectiveTask(work, point, ready, entry.step), chain.at)

    def _post_event(self, entry: _Entry, work: PostEvent, tid: int, chain: Chain) -> Process:
        start = chain.at
        chain.at += self._vary(5_500)
        name = "aclrtStreamWaitEvent" if work.waits else "aclrtRecordEvent"
        connection = yield from self._call(f"AscendCL@{name}", tid, chain, start, "ACL_RTS", "acl")
        ready = chain.at + DELIVERY_NS
        self._device.post(work.stream, EventTask(work.event, work.waits, connection, ready, entry.step), chain.at)
