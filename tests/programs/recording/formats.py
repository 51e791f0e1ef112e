"""Formats in which the cube reads pictures and the weights of convolutions (docs/sources.md#blocked-format)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.programs.recording.calls import Call, Seen
from tests.programs.recording.tasks import Operand, Task
from tests.programs.recording.views import operand_of

PLAIN, BLOCKED, WEIGHTS = "NCHW", "NC1HWC0", "FRACTAL_Z"
BLOCK_BYTES = 32
SIZES = {"bfloat16": 2, "float32": 4, "uint16": 2}
FORMAT_FREE = frozenset({"relu", "threshold_backward", "add", "mul"})
"""Operators that compute element by element, whatever the format."""


def blocked(shape: tuple[int, ...], dtype: str) -> tuple[int, ...]:
    """The shape of pictures with their channels in blocks."""
    batch, channels, *size = shape
    block = BLOCK_BYTES // SIZES[dtype]
    return (batch, -(-channels // block), *size, block)


def packed(shape: tuple[int, ...], dtype: str) -> tuple[int, ...]:
    """The shape of the weight of a convolution as the cube reads it."""
    results, channels, high, wide = shape
    block = BLOCK_BYTES // SIZES[dtype]
    return (-(-channels // block) * high * wide, -(-results // 16), 16, block)


class Formats:
    """Which memory is in a format of the cube; none where ``keeps`` is false. ``new`` numbers the memory of copies."""

    def __init__(self, new: Callable[[], int], *, keeps: bool) -> None:
        self._new, self._keeps = new, keeps
        self._kept: dict[int, str] = {}

    def has(self, seen: Seen) -> bool:
        """Whether the memory of the tensor is in such a format."""
        return seen.storage in self._kept

    def operand(self, seen: Seen) -> Operand:
        """The tensor as it lies in memory."""
        form = self._kept.get(seen.storage)
        return operand_of(seen) if form is None else _in(form, operand_of(seen), seen.storage)

    def read(self, form: str, operand: Operand, function: str) -> tuple[list[Task], Operand]:
        """The tensor in a format of the cube, with the conversion, if one is needed. A weight that stays in it was
        converted once, before the step."""
        if form == WEIGHTS and self._keeps:
            self._kept[operand.storage] = form
        if operand.storage in self._kept:
            return [], _in(form, operand, operand.storage)
        converted = _in(form, operand, self._new())
        return [Task("TransData", function, (_named(operand),), (converted,))], converted

    def written(self, form: str, operand: Operand, function: str) -> tuple[Operand, list[Task]]:
        """Where a kernel of the cube writes a tensor, and the conversion behind it, if one is needed."""
        if self._keeps:
            self._kept[operand.storage] = form
            return _in(form, operand, operand.storage), []
        converted = _in(form, operand, self._new())
        return converted, [Task("TransData", function, (converted,), (_named(operand),))]

    def plain(self, operand: Operand, function: str) -> tuple[list[Task], Operand]:
        """A tensor that is in a format of the cube as a plain array, with the conversion."""
        source = _in(self._kept[operand.storage], operand, operand.storage)
        result = Operand(self._new(), operand.shape, operand.dtype, PLAIN)
        return [Task("TransData", function, (source,), (result,))], result

    def elementwise(self, call: Call, kind: str, function: str) -> Iterator[Task]:
        """An operator some of whose tensors are in a format of the cube: pictures that are not are converted, and its
        results are in that format as well. What updates a weight (its moment) has the format of the weight."""
        form = next(self._kept[seen.storage] for seen in call.reads if self.has(seen))
        operands = []
        for seen in call.reads:
            if form == WEIGHTS and seen.shape:
                self._kept[seen.storage] = form
            tasks, operand = self.read(form, operand_of(seen), function) if seen.shape else ([], operand_of(seen))
            yield from tasks
            operands.append(operand)
        for seen in call.writes:
            self._kept[seen.storage] = form
        yield Task(kind, function, tuple(operands), tuple(map(self.operand, call.writes)))


def _named(operand: Operand) -> Operand:
    return Operand(operand.storage, operand.shape, operand.dtype, PLAIN)


def _in(form: str, operand: Operand, storage: int) -> Operand:
    shape = (packed if form == WEIGHTS else blocked)(operand.shape, operand.dtype)
    return Operand(storage, shape, operand.dtype, form)
