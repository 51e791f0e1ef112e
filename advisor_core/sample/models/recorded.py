"""A training step of public model code, as it was recorded operator by operator (`tests.programs.recording`).

A record has the operators below autograd in order, each with the kernels that it becomes, and the memory that every
tensor lies in. It says nothing about time.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from ..kernels import DType, Kernel, Tensor, attention, matmul, vector
from ..program import Instruction, Launch, Node, Op

ProgramName = Literal["gpt2", "llama", "qwen3"]
Part = Literal["norm", "rotary", "swiglu"]
PARTS: dict[ProgramName, tuple[Part, ...]] = {"gpt2": (), "llama": get_args(Part), "qwen3": get_args(Part)}
"""The parts that were recorded both written out and as the fused operator of torch_npu, by program."""

_FOLDER = Path(__file__).parents[1] / "recorded"
_DTYPES = {
    "bfloat16": DType.BF16,
    "float32": DType.FP32,
    "int64": DType.INT64,
    "int32": DType.INT32,
    "bool": DType.BOOL,
}
_CALLED = {"aclnnInplaceZero": "aten::zero_", "aclnnInplaceCopy": "aten::copy_"}
"""The operators that others call for a part of their work, by the function of CANN."""

_STRIDED = frozenset({"AsStrided", "StridedSlice", "Transpose", "ViewCopy"})
_CUTTING = frozenset({"AsStrided", "BroadcastTo", "GatherV2", "Index", "Slice", "StridedSlice"})
"""Kernels that read no more than they write."""

_WRITING = frozenset({"Fill", "OnesLike", "ZerosLike"})
"""Kernels that read nothing."""


class Operator(NamedTuple):
    """An operator call: ``phase`` is forward, backward or optimizer; ``node`` and ``sequence`` are those of autograd;
    ``tasks`` its kernels as they are recorded: type, function of CANN, tensors read and written, depth of a product."""

    name: str
    phase: str
    node: str
    sequence: int
    tasks: tuple[tuple[str, str, list[int], list[int], int], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """``tensors``: memory, shape and type of each. ``kept``: the memory of weights and moments, which is there before
    the step; ``tokens`` and ``loss``: that of the batch and of the result."""

    tensors: tuple[tuple[int, tuple[int, ...], DType], ...]
    kept: frozenset[int]
    tokens: int
    loss: int
    operators: tuple[Operator, ...]


def record_file(program: ProgramName, fused: Iterable[Part]) -> Path:
    """The file of the record of a program with these parts as fused operators, in the order of `PARTS`."""
    return _FOLDER / f"{'-'.join((program, *fused))}.json.gz"


@cache
def record_of(program: ProgramName, written_out: tuple[Part, ...]) -> Record:
    """The record of a program with these parts written out. Raises :class:`ValueError` for one that it does not
    have."""
    for part in written_out:
        if part not in PARTS[program]:
            raise ValueError(f"{program!r} was not recorded with and without {part!r} written out")
    parts = [part for part in PARTS[program] if part not in written_out]
    data: dict[str, Any] = json.loads(gzip.decompress(record_file(program, parts).read_bytes()))
    return Record(
        tuple((storage, tuple(shape), _DTYPES[dtype]) for storage, shape, dtype in data["tensors"]),
        frozenset(data["kept"]),
        data["tokens"],
        data["loss"],
        tuple(
            Operator(name, phase, node, sequence, tuple(tasks))
            for name, phase, node, sequence, tasks in data["operators"]
        ),
    )


class RecordedModel:
    """A record with the memory that stays from step to step."""

    def __init__(self, record: Record) -> None:
        self._record = record
        owners: dict[int, Tensor] = {}
        for storage, shape, dtype in record.tensors:
            tensor = Tensor(shape, dtype, persistent=storage in record.kept)
            if storage not in owners or tensor.nbytes > owners[storage].nbytes:
                owners[storage] = tensor
        self._owners = owners
        self.kept = [owners[storage] for storage in record.kept]

    def step(self) -> StepOfModel:
        """One step, whose other tensors are new."""
        fresh = {storage: owner if owner.persistent else owner.like() for storage, owner in self._owners.items()}
        return StepOfModel(self._record, fresh)


class StepOfModel:
    """The instructions of a recorded step. ``memory``: the tensor that owns each memory."""

    def __init__(self, record: Record, memory: dict[int, Tensor]) -> None:
        self._record, self._memory = record, memory
        self._tensors = [self._view(storage, shape, dtype) for storage, shape, dtype in record.tensors]
        self._taken = {id(owner) for owner in memory.values() if owner.persistent}

    def _view(self, storage: int, shape: tuple[int, ...], dtype: DType) -> Tensor:
        owner = self._memory[storage]
        if shape == owner.shape and dtype is owner.dtype:
            return owner
        return Tensor(shape, dtype, persistent=owner.persistent, base=owner)

    @property
    def tokens(self) -> Tensor:
        """The batch that the data loader gives."""
        return self._memory[self._record.tokens]

    @property
    def loss(self) -> Tensor:
        """The result of the forward pass."""
        return self._memory[self._record.loss]

    def forward(self) -> list[Instruction]:
        """The operators of the forward pass."""
        return list(self._ops(self._of("forward")))

    def backward(self) -> list[Instruction]:
        """The nodes of the backward pass."""
        nodes = groupby(self._of("backward"), key=lambda one: (one.node, one.sequence))
        return [Node(name, sequence, tuple(self._ops(operators))) for (name, sequence), operators in nodes]

    def optimizer(self) -> list[Instruction]:
        """The operators of the optimizer."""
        return list(self._ops(self._of("optimizer")))

    def _of(self, phase: str) -> Iterator[Operator]:
        return (operator for operator in self._record.operators if operator.phase == phase)

    def _ops(self, operators: Iterable[Operator]) -> Iterator[Op]:
        return chain.from_iterable(map(self._calls, operators))

    def _calls(self, operator: Operator) -> Iterator[Op]:
        """The operator, or those that it calls for the parts of its work."""
        if not operator.tasks:
            yield Op(operator.name, (), None)
            return
        functions = [(function, list(tasks)) for function, tasks in groupby(operator.tasks, key=lambda task: task[1])]
        for function, tasks in functions:
            kernels = tuple(self._kernel(*task) for task in tasks)
            name = operator.name if len(functions) == 1 else _CALLED.get(function, operator.name)
            forward = operator.sequence if operator.phase == "forward" else -1
            written = {id(one): one for kernel in kernels for one in kernel.outputs}
            reads = {id(one): one for kernel in kernels for one in kernel.inputs if id(one) not in written}
            yield Op(name, tuple(reads.values()), Launch(function, kernels), tuple(self._taking(written)), forward)

    def _taking(self, written: dict[int, Tensor]) -> Iterator[Tensor]:
        """The memory that is written for the first time."""
        for tensor in written.values():
            owner = tensor.storage
            if id(owner) not in self._taken:
                self._taken.add(id(owner))
                yield owner

    def _kernel(self, type_: str, function: str, read: list[int], written: list[int], depth: int) -> Kernel:
        inputs, outputs = (tuple(self._tensors[number] for number in numbers) for numbers in (read, written))
        if type_ == "MatMulV3":
            return matmul(function, inputs[0], inputs[1], outputs[0], depth)
        if type_.startswith("FlashAttention"):
            batch, heads, positions, channels = inputs[0].shape
            backward = type_.endswith("Grad")
            flops = 2 * batch * heads * positions * positions * channels  # two products, half of them masked
            return attention(function, inputs, outputs, int(2.5 * flops) if backward else flops, backward=backward)
        bytes_read, bytes_written = (sum(one.nbytes for one in tensors) for tensors in (inputs, outputs))
        if type_ in _WRITING:
            bytes_read = 0
        elif type_ in _CUTTING:
            bytes_read = min(bytes_read, bytes_written)
        elif type_ == "ViewCopy":
            bytes_written = bytes_read
        return vector(function, type_, inputs, outputs, strided=type_ in _STRIDED, read=bytes_read, write=bytes_written)
