"""What host threads are told to do: the vocabulary of a training program.

A program is a list of instructions. A rank's main thread runs one; ``Backward`` hands another to
the autograd thread. Instructions carry no time, only what is done; the threads add their costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .kernels import Kernel, Tensor


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
class Node:
    """A node of the autograd graph and the operators that compute its gradient."""

    name: str
    sequence: int
    ops: tuple[Op, ...]


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


@dataclass(frozen=True, slots=True)
class Item:
    """Read one number back from the device, then spend some Python time on it."""

    source: Tensor
    python_ns: int = 0


@dataclass(frozen=True, slots=True)
class Backward:
    """Run a program on the autograd thread and wait until it has been dispatched."""

    program: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class AllReduce:
    """Put an all-reduce on the communication stream, after what the compute stream has so far."""

    elements: Tensor
    index: int


@dataclass(frozen=True, slots=True)
class AwaitCollective:
    """Let the compute stream wait for the all-reduce of that index."""

    index: int


Instruction = Op | Node | Enter | Leave | NextBatch | Item | Backward | AllReduce | AwaitCollective


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
    """What comes before the second step."""
    begins = [place for place, what in enumerate(program) if isinstance(what, Enter) and what.step is not None]
    return program[: begins[1]] if len(begins) > 1 else program
