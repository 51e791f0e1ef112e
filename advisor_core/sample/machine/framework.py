"""The first half of dispatch: framework threads that run a program and submit its work."""

from __future__ import annotations

from collections.abc import Iterable

from ..kernels import Tensor
from ..program import (
    AwaitCommunication,
    Backward,
    CloseMark,
    Communicate,
    Enter,
    Instruction,
    Item,
    Leave,
    NextBatch,
    Node,
    Op,
    OpenMark,
    Python,
    Replay,
)
from ..timeline import COMPUTE_STREAM, GarbageCollection, HostSpan, Mark, SpanKind, Step
from .allocator import DriverCall
from .cann import CannThread, Drain, PostEvent, Update
from .context import WORKSPACE_SHARE, RankContext
from .des import Chain, Process, Signal

_INTERFACES = {
    "allReduce": ("c10d::allreduce_", "HcclAllreduce"),
    "allGather": ("c10d::_allgather_base_", "HcclAllgather"),
    "reduceScatter": ("c10d::_reduce_scatter_base_", "HcclReduceScatter"),
    "alltoallv": ("c10d::alltoall_base_", "HcclAlltoAllV"),
    "batchSendRecv": ("c10d::batch_isend_irecv", "HcclBatchSendRecv"),
    "send": ("c10d::send", "HcclSend"),
    "receive": ("c10d::recv_", "HcclRecv"),
}
"""The caller of an operation, and the interface that it calls."""

_REPLAY = "NPUGraph::replay"

_DRIVER = {"malloc": "AscendCL@aclMallocMemInner", "free": "AscendCL@aclrtFree"}


class FrameworkThread:
    """The main thread or the autograd thread: runs instructions and keeps a stack of open spans."""

    def __init__(self, context: RankContext, cann: CannThread, chain: Chain, *, backward: bool = False) -> None:
        self._context = context
        self._cann = cann
        self._chain = chain
        self._vary = context.host
        self._records = context.records
        self._backward = backward
        self._tid = context.timeline.autograd_tid if backward else context.timeline.pid
        self._unseen = HostSpan("", "operator", self._tid, 0, None, is_backward=backward)
        self._open: list[HostSpan] = []
        self._frames: list[str] = []
        self._step_span: HostSpan | None = None
        self._marks: list[tuple[str, int]] = []

    def run(self, program: Iterable[Instruction]) -> Process:
        """Execute the instructions one after the other."""
        for instruction in program:
            if isinstance(instruction, Op):
                yield from self._operator(instruction)
            elif isinstance(instruction, Node):
                yield from self._node(instruction)
            elif isinstance(instruction, Enter):
                self._enter(instruction)
            elif isinstance(instruction, Leave):
                self._chain.at += self._vary(1_500)
                self._leave()
            elif isinstance(instruction, NextBatch):
                yield from self._next_batch(instruction)
            elif isinstance(instruction, Item):
                yield from self._item(instruction)
            elif isinstance(instruction, Replay):
                yield from self._replay(instruction)
            elif isinstance(instruction, Backward):
                yield from self._run_backward(instruction)
            elif isinstance(instruction, Python):
                self._chain.at += self._vary(instruction.ns)
            elif isinstance(instruction, OpenMark):
                self._chain.at += self._vary(3_000)
                self._marks.append((instruction.message, self._chain.at))
            elif isinstance(instruction, CloseMark):
                self._chain.at += self._vary(3_000)
                message, start = self._marks.pop()
                self._context.timeline.marks.append(Mark(message, self._tid, start, self._chain.at))
            elif isinstance(instruction, Communicate):
                yield from self._communicate(instruction)
            else:
                yield from self._await_communication(instruction)

    def synchronize_device(self) -> Process:
        """Wait for everything on the device, as the profiler does when it stops."""
        yield from self._synchronized("AscendCL@aclrtSynchronizeDevice", 9_000)

    def _synchronized(self, call: str, mean_ns: int) -> Process:
        """Wait until the queue and the compute stream are empty, in a call that returns a little later."""
        chain, drain = self._chain, Drain(Signal(), Signal())
        yield from self._cann.drain(drain, chain)
        yield from chain.wait(drain.queue)
        start = chain.at
        yield from chain.wait(drain.stream)
        chain.at += self._vary(mean_ns)
        yield from self._call(call, start)

    def _call(self, name: str, start: int) -> Process:
        """Record a call into CANN that ends now."""
        if self._records:
            yield self._context.behind(self._chain)
            self._context.call(name, self._tid, start, "ACL_RTS", "acl")

    # --- spans -----------------------------------------------------------------------------------

    def _begin(
        self,
        name: str,
        kind: SpanKind = "operator",
        *,
        inputs: tuple[Tensor, ...] = (),
        scalars: int = 0,
        sequence: int = -1,
    ) -> HostSpan:
        if not self._records:
            self._open.append(self._unseen)
            return self._unseen
        span = HostSpan(
            name=name,
            kind=kind,
            tid=self._tid,
            start=self._chain.at,
            parent=self._open[-1] if self._open else None,
            inputs=inputs,
            scalars=scalars,
            sequence=sequence,
            is_backward=self._backward,
            frames=tuple(self._frames),
        )
        self._open.append(span)
        self._context.timeline.spans.append(span)
        return span

    def _end(self) -> None:
        self._open.pop().end = self._chain.at

    def _enter(self, what: Enter) -> None:
        self._chain.at += self._vary(2_500)
        if what.step is not None:
            self._context.step = what.step
        if not self._records:
            self._open.append(self._unseen)
            return
        if what.frame is None:
            span = self._begin(what.name, "annotation")
        else:
            self._frames.append(what.frame)
            span = self._begin(what.name, "python")
            span.python_id = self._context.next_python_id()
        if what.step is not None:
            self._step_span = span

    def _leave(self) -> None:
        span = self._open[-1]
        self._end()
        if span.kind == "python":
            self._frames.pop()
        elif span is self._step_span:
            self._context.timeline.steps.append(Step(self._context.step, span.start, span.end))

    # --- operators -------------------------------------------------------------------------------

    def _operator(self, op: Op) -> Process:
        context, costs, chain, vary = self._context, self._context.costs, self._chain, self._vary
        own = costs.autograd if self._backward else costs.operator
        if context.garbage_is_due():
            start = chain.at
            chain.at += vary(costs.gc_pause)
            context.timeline.collections.append(GarbageCollection(self._tid, start, chain.at))
        chain.at += vary(4_000 if self._backward else costs.python)
        self._begin(op.name, inputs=op.inputs, scalars=op.scalars, sequence=op.sequence)
        chain.at += vary(own * 0.6)
        for tensor in op.allocates:
            if calls := context.allocate(tensor, op.name, chain.at):
                yield from self._driver(calls)
        if op.launch is not None:
            span = self._begin(op.launch.acl)
            if not self._cann.workspace:
                chain.at += vary(own * WORKSPACE_SHARE)
            yield from self._cann.submit(op.launch.acl, op, span, chain)
            chain.at += vary(700)
            self._end()
        chain.at += vary(own * 0.15)
        self._end()
        for tensor in op.frees:
            if calls := context.free(tensor, chain.at):
                yield from self._driver(calls)

    def _driver(self, calls: list[DriverCall]) -> Process:
        """Take memory from the driver or give it back, which what runs on the device may still use."""
        for call in calls:
            if call == "synchronize":
                yield from self.synchronize_device()
                continue
            start = self._chain.at
            self._chain.at += self._vary(self._context.costs.malloc_ns)
            yield from self._call(_DRIVER[call], start)

    def _node(self, node: Node) -> Process:
        (first, *_) = node.ops
        self._chain.at += self._vary(5_000)
        self._begin(f"autograd::engine::evaluate_function: {node.name}")
        self._chain.at += self._vary(3_500)
        self._begin(node.name, inputs=first.inputs[:1], sequence=node.sequence)
        for one in node.calls:
            if isinstance(one, Op):
                yield from self._operator(one)
            elif isinstance(one, Communicate):
                yield from self._communicate(one)
            else:
                yield from self._await_communication(one)
        self._end()
        self._chain.at += self._vary(2_500)
        self._end()

    def _replay(self, replay: Replay) -> Process:
        """One call for all operators; then, while they run, the new parameters of some."""
        context, costs = self._context, self._context.costs
        self._chain.at += self._vary(costs.python + costs.operator)
        span = self._begin(_REPLAY)
        updates = [(op, Update(context.expect_parameters(op))) for op in replay.updated]
        yield from self._cann.submit(_REPLAY, replay, span, self._chain)
        self._chain.at += self._vary(700)
        self._end()
        for op, update in updates:
            self._chain.at += self._vary(costs.python)
            span = self._begin(f"{op.name}.out", inputs=op.inputs, scalars=op.scalars)
            self._chain.at += self._vary(costs.operator)
            yield from self._cann.submit(f"{op.name}.out", update, span, self._chain)
            self._end()

    def _run_backward(self, instruction: Backward) -> Process:
        """The autograd thread runs while this one waits for it."""
        self._chain.at += self._vary(45_000)
        self._chain.at += self._vary(30_000)
        yield from FrameworkThread(self._context, self._cann, self._chain, backward=True).run(instruction.program)
        self._chain.at += self._vary(25_000)

    # --- data in and out -------------------------------------------------------------------------

    def _next_batch(self, instruction: NextBatch) -> Process:
        if instruction.loader:
            self._chain.at += self._vary(6_000)
            self._begin("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__")
            self._chain.at += self._vary(instruction.loading_ns)
            self._end()
        self._chain.at += self._vary(20_000)
        self._begin("aten::to", inputs=(instruction.batch,), scalars=4)
        self._begin("aten::_to_copy", inputs=(instruction.batch,), scalars=5)
        self._chain.at += self._vary(35_000)
        yield from self._driver(self._context.allocate(instruction.batch, "aten::empty_strided", self._chain.at))
        span = self._begin("acl_memcpy_host_to_device")
        yield from self._cann.submit("acl_memcpy_host_to_device", instruction, span, self._chain)
        self._end()
        self._end()
        self._end()

    def _item(self, instruction: Item) -> Process:
        """Wait until the queue and the compute stream are empty, then copy one number."""
        context = self._context
        self._chain.at += self._vary(context.costs.python * 0.4)
        self._begin("aten::item", inputs=(instruction.source,))
        self._chain.at += self._vary(context.costs.operator * 0.4)
        self._begin("aten::_local_scalar_dense", inputs=(instruction.source,))
        self._chain.at += self._vary(8_000)
        yield from self._synchronized("AscendCL@aclrtSynchronizeStreamWithTimeout", 6_000)
        self._chain.at += self._vary(1_500)
        start = self._chain.at
        self._chain.at += self._vary(42_000)
        yield from self._call("AscendCL@aclrtMemcpy", start)
        self._chain.at += self._vary(5_000)
        self._end()
        self._chain.at += self._vary(4_000)
        self._end()
        if instruction.python_ns:
            self._chain.at += self._vary(instruction.python_ns)

    # --- communication ---------------------------------------------------------------------------

    def _communicate(self, request: Communicate) -> Process:
        """Compute stream: record; stream of the group: wait, communicate, record."""
        context = self._context
        operator, interface = _INTERFACES[request.operation]
        self._chain.at += self._vary(8_000 if self._backward else context.costs.python * 0.5)
        self._begin(operator, scalars=5)
        self._chain.at += self._vary(9_000)
        computed, stream = Signal(), request.group.stream
        yield from self._event(PostEvent(computed, waits=False, stream=COMPUTE_STREAM))
        yield from self._event(PostEvent(computed, waits=True, stream=stream))
        self._begin(interface, inputs=(request.data,))
        self._chain.at += self._vary(5_000)
        inner = self._begin(interface)
        yield from self._cann.submit(interface, request, inner, self._chain)
        self._end()
        self._end()
        yield from self._event(PostEvent(context.communicated(request), waits=False, stream=stream))
        self._end()

    def _await_communication(self, instruction: AwaitCommunication) -> Process:
        self._chain.at += self._vary(3_000)
        done = self._context.communicated(instruction.request)
        yield from self._event(PostEvent(done, waits=True, stream=COMPUTE_STREAM))

    def _event(self, work: PostEvent) -> Process:
        name = "wait_event" if work.waits else "record_event"
        span = self._begin(name)
        self._chain.at += self._vary(1_800)
        yield from self._cann.submit(name, work, span, self._chain)
        self._end()
