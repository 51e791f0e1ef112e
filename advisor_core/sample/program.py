"""The instructions of host threads: the vocabulary of a training program.

A program is a list of instructions. A rank's main thread runs one; ``Backward`` hands another to
the autograd thread. Instructions carry no time, only what is done; the threads add their costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

from .kernels import Kernel, Tensor
from .layout import CommunicationGroup


@dataclass(frozen=True, slots=True)
class Launch:
    """Kernels that one framework call puts on the device.

    ``compiled`` takes the path through the operator compiler (``aclopCompileAndExecute``)
    instead of a prebuilt binary.
    """

    acl: str
    kernels: tuple[Kernel, ...]
    compiled: bool = False


@dataclass(eq=False, slots=True)
class Op:
    """An operator call; ``sequence`` links a forward operator to its backward node."""

    name: str
    inputs: tuple[Tensor, ...]
    launch: Launch | None
    allocates: tuple[Tensor, ...] = ()
    sequence: int = -1
    scalars: int = 0
    frees: list[Tensor] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Enter:
    """Open a span: a Python function or module with its frame, else an annotated region.

    ``step`` marks the region of a profiled step.
    """

    name: str
    frame: str | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Leave:
    """Close the innermost open span."""


@dataclass(frozen=True, slots=True)
class NextBatch:
    """Ask the data loader for the next batch and copy it to the device."""

    batch: Tensor
    loading_ns: int
    loader: bool = True
    """Without a loader the batch is in the memory of the host already: it is only copied."""


@dataclass(frozen=True, slots=True)
class Item:
    """Read one number back from the device, then spend some Python time on it."""

    source: Tensor
    python_ns: int = 0


@dataclass(frozen=True, slots=True)
class Replay:
    """Replay operators that were captured as a graph, which hold their memory for good. ``updated``: those of them
    whose parameters the host gives anew at each replay, which then wait for that."""

    ops: tuple[Op, ...]
    updated: tuple[Op, ...] = ()


@dataclass(frozen=True, slots=True)
class Backward:
    """Run a program on the autograd thread and wait until it has been dispatched."""

    program: tuple[Instruction, ...]


Collective = Literal["allReduce", "allGather", "reduceScatter", "alltoallv"]
PointToPoint = Literal["batchSendRecv", "send", "receive"]
POINT_TO_POINT: frozenset[str] = frozenset(get_args(PointToPoint))


@dataclass(frozen=True, slots=True)
class Communicate:
    """Put an operation on the stream of a group, after what the compute stream has so far.

    ``data``: what is reduced, what this rank contributes (allGather, alltoallv), keeps (reduceScatter), sends or
    receives. ``index``: which of this rank's operations in the group it is, as its name says. ``sends``: bytes by
    member of the group, for operations between pairs. ``peer`` and ``exchange``: of a point-to-point operation, the
    other end's place in the group and which of the two ranks' operations with each other it is.
    """

    operation: Collective | PointToPoint
    group: CommunicationGroup
    index: int
    data: Tensor
    sends: tuple[tuple[int, int], ...] = ()
    peer: int | None = None
    exchange: int = -1


@dataclass(frozen=True, slots=True)
class AwaitCommunication:
    """Let the compute stream wait for an operation."""

    request: Communicate


Call = Op | Communicate | AwaitCommunication


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the autograd graph and the operators that compute its gradient, with the transfers between them."""

    name: str
    sequence: int
    calls: tuple[Call, ...]

    @property
    def ops(self) -> tuple[Op, ...]:
        """The operators alone."""
        return tuple(one for one in self.calls if isinstance(one, Op))


@dataclass(frozen=True, slots=True)
class Python:
    """Work of the interpreter that calls no operator, nanoseconds."""

    ns: int


@dataclass(frozen=True, slots=True)
class OpenMark:
    """Begin a marked range (``mstx.range_start``)."""

    message: str


@dataclass(frozen=True, slots=True)
class CloseMark:
    """End the marked range that began last."""


Instruction = (
    Op
    | Node
    | Enter
    | Leave
    | NextBatch
    | Item
    | Replay
    | Backward
    | Communicate
    | AwaitCommunication
    | Python
    | OpenMark
    | CloseMark
)


def _operators(program: list[Instruction]) -> list[Op]:
    """All operator calls in the order of execution."""
    ops: list[Op] = []
    for instruction in program:
        if isinstance(instruction, Op):
            ops.append(instruction)
        elif isinstance(instruction, Node):
            ops.extend(instruction.ops)
        elif isinstance(instruction, Backward):
            ops.extend(_operators(list(instruction.program)))
    return ops


def free_after_last_use(program: list[Instruction], kept: Iterable[Tensor] = ()) -> None:
    """Give every operator the tensors that nothing uses after it; the ones in ``kept`` are held for good."""
    held = {id(tensor.storage) for tensor in kept}
    last: dict[int, tuple[Op, Tensor]] = {}
    for op in _operators(program):
        for tensor in (*op.inputs, *op.allocates):
            owner = tensor.storage
            if not owner.persistent and id(owner) not in held:
                last[id(owner)] = (op, owner)
    for op, tensor in last.values():
        op.frees.append(tensor)


def memory_use(program: Iterable[Instruction]) -> Iterator[tuple[tuple[Tensor, ...], list[Tensor]]]:
    """In the order of execution: the tensors that need memory, and those that are given back right afterwards."""
    for instruction in program:
        if isinstance(instruction, NextBatch):
            yield (instruction.batch,), []
        elif isinstance(instruction, Op):
            yield instruction.allocates, instruction.frees
        elif isinstance(instruction, Node):
            for op in instruction.ops:
                yield op.allocates, op.frees
        elif isinstance(instruction, Backward):
            yield from memory_use(instruction.program)


def first_step(program: list[Instruction]) -> list[Instruction]:
    """The instructions before the second step."""
    begins = [place for place, what in enumerate(program) if isinstance(what, Enter) and what.step is not None]
    return program[: begins[1]] if len(begins) > 1 else program
