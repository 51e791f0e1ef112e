"""A step of public model code, as it was recorded operator by operator (`tests.programs.recording`).

A record has the operators below autograd in order, each with the kernels that it becomes, and the memory that every
tensor lies in. It says nothing about time.
"""

from __future__ import annotations

import gzip
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, get_args

from ..kernels import DType, Kernel, Tensor, vector
from ..loops.communicator import Communicator
from ..program import AwaitCommunication, Call, Collective, Communicate, Instruction, Item, Launch, Node, Op
from .recorded_kernels import kernel_of

TrainingName = Literal[
    "gpt2", "llama", "qwen3", "qwen3-moe", "mixtral", "vit", "resnet", "unet", "dit", "llama-tp2", "qwen3-tp2"
]
DecodingName = Literal["llama-decode", "qwen3-decode"]
ReinforcementName = Literal["llama-grpo", "qwen3-grpo"]
ProgramName = TrainingName | DecodingName | ReinforcementName
Part = Literal[
    "norm",
    "rotary",
    "swiglu",
    "experts",
    "attention",
    "optimizer",
    "cache",
    "sampling",
    "group-norm",
    "geglu",
    "formats",
]
PARTS: Mapping[ProgramName, tuple[Part, ...]] = MappingProxyType(
    {
        "gpt2": (),
        "llama": ("norm", "rotary", "swiglu"),
        "qwen3": ("norm", "rotary", "swiglu"),
        "llama-tp2": ("norm", "rotary", "swiglu"),
        "qwen3-tp2": ("norm", "rotary", "swiglu"),
        "qwen3-moe": ("norm", "experts"),
        "mixtral": ("rotary", "experts"),
        "vit": ("attention", "optimizer"),
        "resnet": ("formats", "optimizer"),
        "unet": ("attention", "group-norm", "geglu"),
        "dit": ("attention", "optimizer"),
        "llama-decode": ("norm", "cache", "sampling"),
        "qwen3-decode": ("norm", "rotary", "cache"),
        "llama-grpo": ("norm", "cache"),
        "qwen3-grpo": ("norm", "cache"),
    }
)
"""The parts that were recorded both written out and as the fused operator of torch_npu, by program."""

Ready = Callable[[Tensor], Iterable[Instruction]]
"""The instructions for a gradient of a weight that is finished."""

READ: Final = "ReadBack"
"""The mark of a record where the host waits for the device and reads a number: no kernel."""

COMMUNICATION: Final = "Communication:"
"""The beginning of a mark of a record where tensors go between tensor-parallel ranks; behind it stands which
collective it is. No kernel of the program."""

ACCUMULATE: Final = "torch::autograd::AccumulateGrad"
"""The node that keeps the gradient of a weight, or adds it to what it has kept."""

PRODUCT: Final = "aten::mm"
"""The operator that computes the gradient of the weight of a linear layer."""

NO_SEQUENCE: Final = 2**63
"""Numbers of autograd from here on are none: those of nodes that belong to no operator."""

NOTHING: Final[Mapping[int, Tensor]] = MappingProxyType({})
_ADDS: Final = "aclnnInplaceAdd"

ND: Final = "FORMAT_ND"
"""The format of tensors of which the record names none."""

_FOLDER = Path(__file__).parents[1] / "recorded"
_DTYPES = {
    "bfloat16": DType.BF16,
    "float32": DType.FP32,
    "int64": DType.INT64,
    "int32": DType.INT32,
    "bool": DType.BOOL,
    "uint16": DType.UINT16,
}
_CALLED = {"aclnnInplaceZero": "aten::zero_", "aclnnInplaceCopy": "aten::copy_"}
"""The operators that others call for a part of their work, by the function of CANN."""


_COLLECTIVES: dict[str, Collective] = {kind: kind for kind in get_args(Collective)}


class Operator(NamedTuple):
    """An operator call: ``number`` is its place in the record; ``phase`` is forward, backward, optimizer or decode;
    ``node`` and ``sequence`` are those of autograd; ``tasks`` its kernels as they are recorded: type, function of CANN,
    tensors read and written, depth of a product or of attention. A task without a function is `READ` or
    `COMMUNICATION`."""

    number: int
    name: str
    phase: str
    node: str
    sequence: int
    tasks: tuple[tuple[str, str, list[int], list[int], int], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """``tensors``: memory, shape, type and format of each. ``kept``: the memory of weights and moments, which is there
    before the step; ``tensor``: of how many tensor-parallel ranks it is that of the first. In training,
    ``optimizer`` is its class, ``batch`` and ``loss`` the memory of what the data loader
    gives and of the result; ``gradients`` the memory of gradients of weights, by the number of the operator that
    finishes them."""

    tensors: tuple[tuple[int, tuple[int, ...], DType, str], ...]
    kept: frozenset[int]
    optimizer: str | None
    batch: int | None
    loss: int | None
    operators: tuple[Operator, ...]
    gradients: Mapping[int, tuple[int, ...]]
    tensor: int = 1
    advantages: int | None = None

    @property
    def sequences(self) -> int:
        """How many numbers of autograd a step takes."""
        numbers = [one.sequence for one in self.operators if 0 <= one.sequence < NO_SEQUENCE]
        return max(numbers) - min(numbers) + 1 if numbers else 0


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
    tensors = tuple(
        (storage, tuple(shape), _DTYPES[dtype], form[0] if form else ND)
        for storage, shape, dtype, *form in data["tensors"]
    )
    operators = tuple(
        Operator(number, name, phase, node, sequence, tuple(tasks))
        for number, (name, phase, node, sequence, tasks) in enumerate(data["operators"])
    )
    memory = [storage for storage, *_ in tensors]
    return Record(
        tensors,
        frozenset(data["kept"]),
        data.get("optimizer"),
        data["batch"],
        data["loss"],
        operators,
        _gradients(operators, memory, frozenset(data["kept"])),
        data.get("tensor", 1),
        data.get("advantages"),
    )


def _nodes(operators: Iterable[Operator]) -> Iterator[list[Operator]]:
    """The operators of each node of the backward pass, in order. Several nodes that keep gradients may follow each
    other, which have no number of their own: each begins with an ``aten::detach``."""
    keeping = 0

    def node(one: Operator) -> tuple[str, int, int]:
        nonlocal keeping
        keeping += one.node == ACCUMULATE and one.name == "aten::detach"
        return one.node, one.sequence, keeping

    for _, found in groupby(operators, key=node):
        yield list(found)


def _gradients(operators: Iterable[Operator], memory: list[int], kept: frozenset[int]) -> dict[int, tuple[int, ...]]:
    """The memory that the backward pass writes and the optimizer reads, by the operator that writes it last."""
    finished: dict[int, int] = {}
    read: set[int] = set()
    for operator in operators:
        for _, _, sources, results, _ in operator.tasks:
            if operator.phase == "backward":
                finished |= {memory[tensor]: operator.number for tensor in results}
            elif operator.phase == "optimizer":
                read |= {memory[tensor] for tensor in sources}
    found: dict[int, tuple[int, ...]] = {}
    for storage, number in finished.items():
        if storage in read - kept:
            found[number] = (*found.get(number, ()), storage)
    return found


class RecordedModel:
    """A record with the memory that stays from step to step."""

    def __init__(self, record: Record) -> None:
        self._record = record
        owners: dict[int, Tensor] = {}
        for storage, shape, dtype, form in record.tensors:
            tensor = Tensor(shape, dtype, form, persistent=storage in record.kept)
            if storage not in owners or tensor.nbytes > owners[storage].nbytes:
                owners[storage] = tensor
        self._owners = owners
        self.kept = [owners[storage] for storage in record.kept]

    def step(
        self, given: Mapping[int, Tensor] = NOTHING, number: int = 0, group: Communicator | None = None
    ) -> StepOfModel:
        """One step, or micro-batch of a step with this number, whose other tensors are new. ``given``: those that come
        from elsewhere, by their memory, each one that is new (`new`); ``group``: the end of the rank of its
        tensor-parallel group."""
        return StepOfModel(self._record, self._owners, given, number, group)

    def new(self, storage: int) -> Tensor:
        """A tensor for this memory."""
        return self._owners[storage].like()


class StepOfModel:
    """The instructions of a recorded step. ``owners``: a tensor for each memory, which is the one that owns it if it
    stays, and else one like it; ``given``: those that are there before; ``number``: of the micro-batch, each of which
    has numbers of autograd of its own. ``group``: the end of the rank of its tensor-parallel group; there is one where
    the record is that of a rank of one."""

    def __init__(
        self,
        record: Record,
        owners: Mapping[int, Tensor],
        given: Mapping[int, Tensor] = NOTHING,
        number: int = 0,
        group: Communicator | None = None,
    ) -> None:
        self._record, self._owners = record, owners
        self._memory = dict(given)
        self._views: dict[int, Tensor] = {}
        self._taken = {id(owner) for owner in given.values()}
        self._later = number * record.sequences
        self._group = group
        self._travelling: dict[int, Communicate] = {}

    def _view(self, number: int) -> Tensor:
        """A tensor of the record."""
        if number not in self._views:
            storage, shape, dtype, form = self._record.tensors[number]
            owner = self.tensor(storage)
            whole = (shape, dtype, form) == (owner.shape, owner.dtype, owner.fmt)
            view = owner if whole else Tensor(shape, dtype, form, persistent=owner.persistent, base=owner)
            self._views[number] = view
        return self._views[number]

    @property
    def optimizer_class(self) -> str:
        """The optimizer of the program. Only in training; old records have AdamW and do not name it."""
        return self._record.optimizer or "AdamW"

    @property
    def batch(self) -> Tensor:
        """The batch of the data loader. Only in training."""
        assert self._record.batch is not None
        return self.tensor(self._record.batch)

    @property
    def advantages(self) -> Tensor:
        """What the host works out of the rewards. Only in reinforcement learning."""
        assert self._record.advantages is not None
        return self.tensor(self._record.advantages)

    @property
    def loss(self) -> Tensor:
        """The result of the forward pass. Only in training."""
        assert self._record.loss is not None
        return self.tensor(self._record.loss)

    def tensor(self, storage: int) -> Tensor:
        """The tensor that owns this memory."""
        if storage not in self._memory:
            owner = self._owners[storage]
            self._memory[storage] = owner if owner.persistent else owner.like()
        return self._memory[storage]

    def forward(self) -> list[Instruction]:
        """The operators of the forward pass."""
        return list(self._instructions(self._of("forward")))

    def decode(self) -> list[Instruction]:
        """The operators of a step of decoding."""
        return list(self._instructions(self._of("decode")))

    def backward(self, ready: Ready | None = None, into: StepOfModel | None = None) -> list[Instruction]:
        """The nodes of the backward pass; behind one that finishes gradients of weights, what ``ready`` says for each
        of them. ``into``: the micro-batch to whose gradients they are added, in the nodes that keep them otherwise."""
        finished = self._record.gradients
        program: list[Instruction] = []
        waiting: deque[int] = deque()
        for done in _nodes(self._of("backward")):
            name, sequence = done[0].node, done[0].sequence
            if into is not None and name == ACCUMULATE:
                here = [storage for one in done for storage in finished.get(one.number, ())]
                if here or waiting:
                    (storage,) = here or [waiting.popleft()]
                    program += self._added(into, storage, ready, done)
                continue
            ops = tuple(one for one in self._instructions(done) if not isinstance(one, Item))
            program.append(Node(name, self._number(sequence), ops))
            of_node = [one for one in done if one.number in finished]
            if into is not None:
                # The gradient of a weight that was turned goes through the node that turns it back first.
                of_node.sort(key=lambda one: one.name == PRODUCT)
                waiting += (storage for one in of_node for storage in finished[one.number])
            elif ready is not None:
                program += (
                    each for one in of_node for storage in finished[one.number] for each in ready(self.tensor(storage))
                )
        for storage in waiting:
            program += self._added(into or self, storage, ready, ())
        return program

    def _added(
        self, into: StepOfModel, storage: int, ready: Ready | None, done: Iterable[Operator]
    ) -> list[Instruction]:
        """The gradient of a weight is added to that of micro-batches before, in place, as ``AccumulateGrad`` does.
        ``done``: what the node did of its own, of which the transfers are then those of the sum."""
        total, gradient = into.tensor(storage), self.tensor(storage)
        kernel = vector(_ADDS, "Add", (total, gradient), (total.view(*total.shape),))
        add = Op("aten::add_", (total, gradient), Launch(_ADDS, (kernel,)), scalars=1)
        transfers = chain.from_iterable(
            self._transfer(one, task[0], total, total)
            for one in done
            for task in one.tasks
            if task[0].startswith(COMMUNICATION)
        )
        return [Node(ACCUMULATE, -1, (add, *transfers)), *(ready(total) if ready is not None else ())]

    def part(self, phase: Literal["prefill", "score"]) -> list[Instruction]:
        """The operators of a part of an iteration of reinforcement learning: the first pass over the prompts, or the
        log-probabilities under the reference model."""
        return list(self._instructions(self._of(phase)))

    def optimizer(self) -> list[Instruction]:
        """The operators of the optimizer."""
        return list(self._instructions(self._of("optimizer")))

    def _of(self, phase: str) -> Iterator[Operator]:
        return (operator for operator in self._record.operators if operator.phase == phase)

    def _instructions(self, operators: Iterable[Operator]) -> Iterator[Call | Item]:
        return chain.from_iterable(map(self._calls, operators))

    def _calls(self, operator: Operator) -> Iterator[Call | Item]:
        """The operator, or those that it calls for the parts of its work."""
        if not operator.tasks:
            yield Op(operator.name, (), None)
            return
        calls = [(function, list(tasks)) for function, tasks in groupby(operator.tasks, key=lambda task: task[1])]
        for function, tasks in calls:
            if not function:
                for type_, _, (read, *_), written, _ in tasks:
                    if type_ == READ:
                        yield from self._awaited(self._view(read))
                        yield Item(self._view(read))
                    else:
                        yield from self._transfer(operator, type_, self._view(read), self._view(written[0]))
                continue
            kernels = tuple(self._kernel(*task) for task in tasks)
            name = operator.name if len(calls) == 1 else _CALLED.get(function, operator.name)
            forward = self._number(operator.sequence) if operator.phase == "forward" else -1
            new = {id(one): one for kernel in kernels for one in kernel.outputs}
            reads = {id(one): one for kernel in kernels for one in kernel.inputs if id(one) not in new}
            for one in (*reads.values(), *new.values()):
                yield from self._awaited(one)
            yield Op(name, tuple(reads.values()), Launch(function, kernels), tuple(self._taking(new)), forward)

    def _number(self, sequence: int) -> int:
        """A number of autograd, in this micro-batch."""
        return sequence + self._later if 0 <= sequence < NO_SEQUENCE else sequence

    def _transfer(
        self, operator: Operator, mark: str, source: Tensor, result: Tensor
    ) -> Iterator[Op | Communicate | AwaitCommunication]:
        """A collective of the tensor-parallel group. What functional collectives give is waited for by what reads it
        first; those of ``c10d`` that are not asked to be asynchronous are waited for at once."""
        assert self._group is not None
        yield from self._awaited(source)
        if room := tuple(self._taking({id(result): result})):
            yield Op("aten::empty", (), None, allocates=room)
        operation = _COLLECTIVES[mark.removeprefix(COMMUNICATION)]
        request = self._group.collective(operation, source if operation == "allGather" else result)
        yield request
        self._travelling[id(result.storage)] = request
        if operator.name.startswith("c10d::"):
            yield from self._awaited(result)

    def _awaited(self, tensor: Tensor) -> Iterator[AwaitCommunication]:
        """The compute stream waits for what has not arrived."""
        if (request := self._travelling.pop(id(tensor.storage), None)) is not None:
            yield AwaitCommunication(request)

    def _taking(self, written: dict[int, Tensor]) -> Iterator[Tensor]:
        """The memory that is written for the first time."""
        for tensor in written.values():
            owner = tensor.storage
            if not owner.persistent and id(owner) not in self._taken:
                self._taken.add(id(owner))
                yield owner

    def _kernel(self, type_: str, function: str, read: list[int], written: list[int], depth: int) -> Kernel:
        inputs, outputs = (tuple(self._view(number) for number in numbers) for numbers in (read, written))
        return kernel_of(type_, function, inputs, outputs, depth)
