"""The kernels that the operators of PyTorch become on an Ascend NPU.

What costs more than names: an operand that is no plain array in memory is copied before the kernel, and one of another
element type is cast.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from advisor_core.sample.models.recorded import READ
from tests.programs.recording.calls import READ_BACK, Call, Seen
from tests.programs.recording.formats import FORMAT_FREE, Formats
from tests.programs.recording.kernel_types import ARITHMETIC, BROADCASTING, NO_KERNEL, PRODUCTS, TYPES, WITH_PLACES
from tests.programs.recording.pictures import PICTURES, Pictures
from tests.programs.recording.tasks import Operand, Task, UnknownOperatorError
from tests.programs.recording.transfers import communication
from tests.programs.recording.views import contiguous, copy_of, expanded, narrow, operand_of, plain, read_by, turned


def camel(name: str) -> str:
    """A name of PyTorch as CANN writes it."""
    return "".join(word.capitalize() for word in name.strip("_").split("_"))


class Kernels:
    """The kernels of operators. Copies that are made for a kernel are memory of their own, with numbers from ``first``
    on. ``keeps_format``: pictures and the weights of convolutions stay in the formats of the cube; otherwise each
    convolution and pooling converts what it reads and writes."""

    def __init__(self, first: int, *, keeps_format: bool = False) -> None:
        self._memory = count(first)
        self._formats = Formats(self._new, keeps=keeps_format)
        self._pictures = Pictures(self._formats, self._new)

    def of(self, call: Call) -> list[Task]:
        """The kernels of a call, in order. Raises `UnknownOperatorError`."""
        if call.name == READ_BACK:
            return [Task(READ, "", tuple(map(operand_of, call.reads)), ())]
        if (transfer := communication(call)) is not None:
            return transfer
        name = call.name.partition("::")[2]
        in_place = name.endswith("_") and not name.startswith("__")
        base = name.rstrip("_") if in_place else name
        if call.view or base in NO_KERNEL or name in NO_KERNEL or not call.writes:
            return []
        function = ("aclnnInplace" if in_place else "aclnn") + camel(base)
        if call.name.startswith("npu::"):  # these are called as what they compute
            function = f"aclnn{TYPES[base]}"
        return list(self._kernels(call, base, function))

    def _kernels(self, call: Call, base: str, function: str) -> Iterator[Task]:
        if base in ("_to_copy", "clone", "copy", "contiguous"):
            yield from self._copied(call, base)
            return
        if base in ("slice_backward", "select_backward"):
            target = operand_of(call.writes[0])
            yield Task("ZerosLike", "aclnnInplaceZero", (target,), (target,))
            prepared, operand = self._plain(call.reads[0], "aclnnInplaceCopy")
            yield from prepared
            yield Task("ViewCopy", "aclnnInplaceCopy", (operand,), (target,))
            return
        if base in FORMAT_FREE and any(map(self._formats.has, call.reads)):
            yield from self._formats.elementwise(call, TYPES[base], function)
            return
        if base.startswith("_foreach_"):
            yield self._foreach(call, base)
            return
        if base in PICTURES:
            yield from self._pictures.kernels(call, base, function)
            return
        kind = TYPES.get(base)
        if kind is None:
            raise UnknownOperatorError(call.name)
        operands = []
        product = base in PRODUCTS
        for seen in call.reads:
            if product and len(seen.shape) >= 2 and turned(seen):
                stored = (*seen.shape[:-2], seen.shape[-1], seen.shape[-2])
                operands.append(Operand(seen.storage, stored, seen.dtype))
                continue
            if base in BROADCASTING and expanded(seen):
                seen = narrow(seen)
            prepared, operand = self._plain(seen, function)
            yield from prepared
            if base in ARITHMETIC and seen.shape and operand.dtype != call.writes[0].dtype:
                cast = Operand(self._new(), operand.shape, call.writes[0].dtype)
                yield Task("Cast", function, (operand,), (cast,))
                operand = cast
            operands.append(operand)
        results = tuple(operand_of(one) for one in call.writes)
        if base in ("addmm", "baddbmm"):  # what is added is added by the kernel
            operands = [*operands[1:], operands[0]]
        depth = call.reads[-1].shape[-2] if product else _depth(call, base)
        if base == "mul" and len(operands) == 1 and operands[0].dtype == "bfloat16":
            kind = "Muls"  # by a number; in other types that is a Mul
        if base == "npu_top_k_top_p":  # the function sorts by itself
            values, places = (Operand(self._new(), operands[0].shape, dtype) for dtype in (operands[0].dtype, "int32"))
            yield Task("Sort", function, (operands[0],), (values, places))
            operands = [values, places, *operands[1:]]
        if base in WITH_PLACES:
            places = Operand(self._new(), results[1].shape, "int32")
            yield Task(kind, function, tuple(operands), (results[0], places))
            yield Task("Cast", function, (places,), (results[1],))
            return
        yield Task(kind, function, tuple(operands), results, depth)
        if base == "nonzero":  # how many entries there are tells the device
            yield Task(READ, "", results, ())

    def _foreach(self, call: Call, base: str) -> Task:
        scalars = "List" if call.overload.startswith("List") else "Scalar" if call.overload.startswith("Scalar") else ""
        scalars += "List" if call.overload == "ScalarList" else ""
        kind = f"Foreach{camel(base.removeprefix('_foreach_'))}{scalars}"
        return Task(
            kind,
            f"aclnn{kind}",
            tuple(map(self._formats.operand, call.reads)),
            tuple(map(self._formats.operand, call.writes)),
        )

    def _copied(self, call: Call, base: str) -> Iterator[Task]:
        """A conversion or a copy; a part of a tensor is written by a kernel of its own."""
        source = call.reads[-1] if base == "copy" else call.reads[0]
        target = call.writes[0]
        function = "aclnnInplaceCopy"
        cast = source.dtype != target.dtype
        if cast or not contiguous(target):
            prepared, operand = self._plain(source, function)
            yield from prepared
            if cast:
                result = operand_of(target) if contiguous(target) else Operand(self._new(), target.shape, target.dtype)
                yield Task("Cast", function, (operand,), (result,))
                operand = result
            if not contiguous(target):
                yield Task("ViewCopy", function, (operand,), (operand_of(target),))
            return
        kind = copy_of(source) or "TensorMove"
        yield Task(kind, function, (read_by(kind, source),), (operand_of(target),))

    def _plain(self, seen: Seen, function: str) -> tuple[list[Task], Operand]:
        """The tensor as a plain array, with the copy that makes it one."""
        if self._formats.has(seen):
            return self._formats.plain(operand_of(seen), function)
        return plain(seen, function, self._new)

    def _new(self) -> int:
        return next(self._memory)


def _depth(call: Call, base: str) -> int:
    """Of attention and of grouped products; the gradient of grouped weights sums over the rows of one expert."""
    if base.startswith("npu_fusion_attention"):
        keys = call.reads[1].shape[-2]
        return keys // 2 if call.overload == "causal" and call.reads[0].shape[-2] == keys else keys
    if base == "npu_grouped_matmul":
        rows, columns = call.reads[0].shape
        (result,) = call.writes
        return rows // result.shape[0] if len(result.shape) == 3 else columns
    return 0
