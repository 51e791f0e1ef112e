"""The record of a simulated rank: one timeline from which every exported file is derived.

All times are int64 nanoseconds since the epoch; spans are half open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from .kernels import Kernel, Tensor
from .layout import CommunicationGroup, Layout
from .machine.chip import Chip, KernelCost

COMPUTE_STREAM = 2
NOT_IN_GRAPH = 4294967295
"""The model id of a task that belongs to no graph, and the subtask id of one without context."""


SpanKind = Literal["operator", "annotation", "python"]
PlaneTaskKind = Literal["Memcpy", "Reduce_Inline", "Notify_Record", "Notify_Wait"]


@dataclass(eq=False, slots=True)
class HostSpan:
    """A framework span: an operator call (``cpu_op``), an annotation or a Python function."""

    name: str
    kind: SpanKind
    tid: int
    start: int
    parent: HostSpan | None
    end: int = 0
    inputs: tuple[Tensor, ...] = ()
    scalars: int = 0
    sequence: int = -1
    is_backward: bool = False
    frames: tuple[str, ...] = ()
    python_id: int = -1


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A task in the queue between a framework thread and the thread that calls CANN."""

    operator: str
    correlation: int
    tid: int
    enqueue_start: int
    enqueue_end: int
    dequeue_start: int
    dequeue_end: int


@dataclass(frozen=True, slots=True)
class CannCall:
    """A call into CANN. ``connection`` is the id under which its device tasks are known."""

    name: str
    tid: int
    start: int
    end: int
    mode: str
    level: str
    id: str
    item: str
    connection: int


@dataclass(frozen=True, slots=True)
class LaunchPoint:
    """The call in which the host handed a task over: the source of the ``HostToDevice`` flow.

    ``flow`` is the id of that flow where the call determines it; else the task does.
    """

    tid: int
    time: int
    connection: int
    flow: int | None
    span: HostSpan


@dataclass(eq=False, slots=True)
class DeviceTask:
    """A task on a device stream; ``launch`` is missing for events, which have no flow."""

    name: str
    task_type: str
    stream: int
    task_id: int
    start: int
    end: int
    step: int
    connection: int
    launch: LaunchPoint | None = None
    kernel: Kernel | None = None
    cost: KernelCost | None = None
    scale: float = 1.0
    subtask: int = NOT_IN_GRAPH
    mhz: int = 0


@dataclass(frozen=True, slots=True)
class PlaneTask:
    """A step of a collective on one plane (link) of its group."""

    kind: PlaneTaskKind
    plane: int
    start: int
    end: int
    peer: int | None
    nbytes: int
    context: int


@dataclass(eq=False, slots=True)
class Collective:
    """One operation of a communication group as this rank saw it, from its own arrival on.

    ``operation`` is a collective or, between two members, ``batchSendRecv``, ``send`` or ``receive``.
    """

    operation: str
    group: CommunicationGroup
    index: int
    data: Tensor
    step: int
    task_id: int
    start: int
    end: int
    launch: LaunchPoint
    tasks: list[PlaneTask]


@dataclass(frozen=True, slots=True)
class Allocation:
    """A tensor's stay in the caching allocator, with the totals in bytes right after it came and went; the latter are
    missing if it outlived the profile."""

    operator: str
    nbytes: int
    start: int
    total_at_start: int
    reserved_at_start: int
    end: int | None = None
    total_at_end: int | None = None
    reserved_at_end: int | None = None


@dataclass(frozen=True, slots=True)
class Workspace:
    """The pool for scratch memory of operators right after a request to it, bytes."""

    time: int
    allocated: int
    reserved: int


@dataclass(frozen=True, slots=True)
class GarbageCollection:
    """The interpreter collects garbage, and no thread of it runs."""

    tid: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A range that the code marked itself (``mstx.range_start`` and ``range_end``)."""

    message: str
    tid: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Step:
    """A profiled step on the host."""

    number: int
    start: int
    end: int


@dataclass(slots=True)
class Timeline:
    """Everything one rank recorded. ``layout``: how the ranks of its job are arranged."""

    rank: int
    device: int
    world_size: int
    pid: int
    autograd_tid: int
    acl_tid: int
    chip: Chip
    resident_bytes: int
    reserved_bytes: int = 0
    """Memory of the allocator when the profile begins; ``resident_bytes``: the allocated part of it."""
    steps: list[Step] = field(default_factory=list)
    spans: list[HostSpan] = field(default_factory=list)
    queue: list[QueueEntry] = field(default_factory=list)
    cann: list[CannCall] = field(default_factory=list)
    tasks: list[DeviceTask] = field(default_factory=list)
    collectives: list[Collective] = field(default_factory=list)
    allocations: list[Allocation] = field(default_factory=list)
    start: int = 0
    end: int = 0
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that are set; exports record some of them."""
    gc_threshold_ms: float | None = None
    """The profiler records garbage collections at least this long; ``None``: none."""
    collections: list[GarbageCollection] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    clock: list[tuple[int, int]] = field(default_factory=list)
    """Changes of the clock within the profile, MHz by time; before them it is that of the chip."""
    workspace: list[Workspace] = field(default_factory=list)

    def mhz(self, time: int) -> int:
        """The clock at a time."""
        return next((mhz for since, mhz in reversed(self.clock) if since <= time), self.chip.mhz)

    layout: Layout = field(default_factory=Layout)

    @property
    def groups(self) -> list[CommunicationGroup]:
        """The groups in which the rank communicated, in the order of their streams."""
        return sorted({part.group for part in self.collectives}, key=lambda group: group.stream)

    @property
    def kernels(self) -> list[DeviceTask]:
        """The tasks that compute, in order of start."""
        return sorted((task for task in self.tasks if task.kernel is not None), key=lambda task: task.start)
