"""The kernels that the operators of PyTorch become on an Ascend NPU.

Types are those of public recordings and of the operators that torch_npu calls (docs/sources.md#kernels-of-operators).
What costs more than names: an operand that is no plain array in memory is copied before the kernel, and one of another
element type is cast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from advisor_core.sample.models.recorded import READ
from tests.programs.recording.calls import READ_BACK, Call, Seen

NO_KERNEL = frozenset(
    {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach", "alias", "lift_fresh", "set_"}
)
"""Operators that take memory or do nothing."""

TYPES = {
    "mm": "MatMulV3",
    "addmm": "MatMulV3",
    "bmm": "BatchMatMulV2",
    "baddbmm": "BatchMatMulV2",
    "pow": "Pows",
    "mean": "ReduceMean",
    "sum": "ReduceSum",
    "rsqrt": "Rsqrt",
    "sqrt": "Sqrt",
    "add": "Add",
    "sub": "Sub",
    "rsub": "Sub",
    "mul": "Mul",
    "div": "RealDiv",
    "neg": "Neg",
    "exp": "Exp",
    "cos": "Cos",
    "sin": "Sin",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "tanh_backward": "TanhGrad",
    "silu": "Swish",
    "silu_backward": "SiluGrad",
    "gelu": "Gelu",
    "gelu_backward": "GeluGrad",
    "_softmax": "SoftmaxV2",
    "_softmax_backward_data": "SoftmaxGrad",
    "_log_softmax": "LogSoftmaxV2",
    "_log_softmax_backward_data": "LogSoftmaxGrad",
    "nll_loss_forward": "NLLLoss",
    "nll_loss_backward": "NLLLossGrad",
    "native_layer_norm": "LayerNormV3",
    "native_layer_norm_backward": "LayerNormGradV3",
    "embedding": "GatherV2",
    "embedding_dense_backward": "EmbeddingDenseGradV2",
    "where": "SelectV2",
    "masked_fill": "MaskedFill",
    "le": "LessEqual",
    "lt": "Less",
    "ge": "GreaterEqual",
    "gt": "Greater",
    "eq": "Equal",
    "ne": "NotEqual",
    "logical_and": "LogicalAnd",
    "bitwise_and": "LogicalAnd",
    "logical_not": "LogicalNot",
    "arange": "Range",
    "bitwise_not": "LogicalNot",
    "bitwise_or": "LogicalOr",
    "zeros": "ZerosLike",
    "zero": "ZerosLike",
    "zeros_like": "ZerosLike",
    "new_zeros": "ZerosLike",
    "ones": "OnesLike",
    "ones_like": "OnesLike",
    "full": "Fill",
    "full_like": "Fill",
    "fill": "Fill",
    "scalar_tensor": "Fill",
    "tril": "Tril",
    "triu": "Triu",
    "cat": "ConcatD",
    "stack": "Pack",
    "lerp": "Lerp",
    "addcmul": "Addcmul",
    "addcdiv": "Addcdiv",
    "all": "ReduceAll",
    "any": "ReduceAny",
    "constant_pad_nd": "PadV3",
    "cumsum": "Cumsum",
    "index": "Index",
    "gather": "GatherElementsV2",
    "split": "SplitVD",
    "npu_rms_norm": "RmsNorm",
    "npu_rms_norm_backward": "RmsNormGrad",
    "npu_swiglu": "SwiGlu",
    "npu_swiglu_backward": "SwiGluGrad",
    "npu_rotary_mul": "RotaryPositionEmbedding",
    "npu_rotary_mul_backward": "RotaryPositionEmbeddingGrad",
    "npu_fusion_attention": "FlashAttentionScore",
    "npu_fusion_attention_grad": "FlashAttentionScoreGrad",
    "new_ones": "OnesLike",
    "diff": "Sub",
    "max": "ReduceMax",
    "clamp": "ClipByValueV2",
    "unfold_backward": "ViewCopy",
    "convolution": "Conv2D",
    "convolution_backward": "Conv2DBackpropFilter",
    "nonzero": "NonZero",
    "topk": "TopKV2",
    "sort": "Sort",
    "scatter": "ScatterElementsV2",
    "index_select": "GatherV3",
    "index_add": "InplaceIndexAdd",
    "index_put": "IndexPutV2",
    "_index_put_impl": "IndexPutV2",
    "histc": "Histogram",
    "isin": "IsIn",
    "multinomial": "Multinomial",
    "argmax": "ArgMaxV2",
    "npu_apply_adam_w": "ApplyAdamWV2",
    "npu_scatter_nd_update": "ScatterNdUpdate",
    "npu_top_k_top_p": "ApplyTopKTopPWithSorted",
    "npu_moe_token_permute": "MoeTokenPermute",
    "npu_moe_token_permute_grad": "MoeTokenPermuteGrad",
    "npu_moe_token_unpermute": "MoeTokenUnpermute",
    "npu_moe_token_unpermute_grad": "MoeTokenUnpermuteGrad",
    "npu_grouped_matmul": "GroupedMatmul",
}
"""The type of the kernel by the name of the operator."""

PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm"})
"""Operators that read a transposed operand as it is."""

ARITHMETIC = frozenset({"add", "sub", "mul", "div"})
"""Operators whose operands get the element type of the result first."""

WITH_PLACES = frozenset({"sort", "topk"})
"""Operators whose kernel writes places as int32, which are cast to int64."""

BROADCASTING = frozenset(
    {"add", "sub", "mul", "where", "le", "lt", "ge", "gt", "eq", "ne", "sum", "bitwise_and", "logical_and"}
)
"""Operators that read a tensor of one element along an axis as it is."""


@dataclass(frozen=True)
class Operand:
    """A tensor that a kernel reads or writes."""

    storage: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Task:
    """A kernel: its type, the function of CANN that it belongs to, and its tensors. ``depth``: of a product, the length
    of the axis that is summed; of attention, how many keys a query sees, on average. The type `READ` is none: the host
    waits for the device and reads a number."""

    type: str
    function: str
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    depth: int = 0


class UnknownOperatorError(Exception):
    """An operator whose kernels are not known."""


def camel(name: str) -> str:
    """A name of PyTorch as CANN writes it."""
    return "".join(word.capitalize() for word in name.strip("_").split("_"))


class Kernels:
    """The kernels of operators. Copies that are made for a kernel are memory of their own, with numbers from ``first``
    on."""

    def __init__(self, first: int) -> None:
        self._next = first

    def of(self, call: Call) -> list[Task]:
        """The kernels of a call, in order. Raises `UnknownOperatorError`."""
        if call.name == READ_BACK:
            return [Task(READ, "", tuple(map(_operand, call.reads)), ())]
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
            target = _operand(call.writes[0])
            yield Task("ZerosLike", "aclnnInplaceZero", (target,), (target,))
            prepared, operand = self._plain(call.reads[0], "aclnnInplaceCopy")
            yield from prepared
            yield Task("ViewCopy", "aclnnInplaceCopy", (operand,), (target,))
            return
        if base.startswith("_foreach_"):
            yield self._foreach(call, base)
            return
        if base in ("convolution", "convolution_backward"):
            yield from self._convolution(call, base, function)
            return
        kind = TYPES.get(base)
        if kind is None:
            raise UnknownOperatorError(call.name)
        operands = []
        product = base in PRODUCTS
        for seen in call.reads:
            if product and len(seen.shape) >= 2 and _turned(seen):
                stored = (*seen.shape[:-2], seen.shape[-1], seen.shape[-2])
                operands.append(Operand(seen.storage, stored, seen.dtype))
                continue
            if base in BROADCASTING and _expanded(seen):
                seen = _narrow(seen)
            prepared, operand = self._plain(seen, function)
            yield from prepared
            if base in ARITHMETIC and seen.shape and operand.dtype != call.writes[0].dtype:
                cast = Operand(self._new(), operand.shape, call.writes[0].dtype)
                yield Task("Cast", function, (operand,), (cast,))
                operand = cast
            operands.append(operand)
        results = tuple(_operand(one) for one in call.writes)
        if base == "addmm":  # the bias is added by the kernel
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

    def _convolution(self, call: Call, base: str, function: str) -> Iterator[Task]:
        """A convolution of patches in the format of the cube, or the gradients of its weight and bias; what it reads
        and writes is converted."""
        if base == "convolution":
            pixels, weight = map(_operand, call.reads[:2])
            (result,) = map(_operand, call.writes)
            yield from (convert := [self._converted(one, function) for one in (pixels, weight)])
            blocked = Operand(self._new(), result.shape, result.dtype)
            yield Task("Conv2D", function, tuple(one.writes[0] for one in convert), (blocked,))
            yield Task("TransData", function, (blocked,), (result,))
            return
        gradient, pixels, weight = call.reads[:3]
        results = {one.shape: _operand(one) for one in call.writes}
        if pixels.shape in results:
            raise UnknownOperatorError(f"{call.name} with a gradient of the input")
        prepared, read = self._plain(gradient, function)
        yield from prepared
        yield from (convert := [self._converted(one, function) for one in (_operand(pixels), read)])
        packed = Operand(self._new(), weight.shape, weight.dtype)
        yield Task("Conv2DBackpropFilter", function, tuple(one.writes[0] for one in convert), (packed,))
        yield Task("TransData", function, (packed,), (results[weight.shape],))
        if bias := results.get(weight.shape[:1]):
            yield Task("ReduceSum", function, (read,), (bias,))

    def _converted(self, operand: Operand, function: str) -> Task:
        return Task("TransData", function, (operand,), (Operand(self._new(), operand.shape, operand.dtype),))

    def _foreach(self, call: Call, base: str) -> Task:
        scalars = "List" if call.overload.startswith("List") else "Scalar" if call.overload.startswith("Scalar") else ""
        scalars += "List" if call.overload == "ScalarList" else ""
        kind = f"Foreach{camel(base.removeprefix('_foreach_'))}{scalars}"
        return Task(kind, f"aclnn{kind}", tuple(map(_operand, call.reads)), tuple(map(_operand, call.writes)))

    def _copied(self, call: Call, base: str) -> Iterator[Task]:
        """A conversion or a copy; a part of a tensor is written by a kernel of its own."""
        source = call.reads[-1] if base == "copy" else call.reads[0]
        target = call.writes[0]
        function = "aclnnInplaceCopy"
        cast = source.dtype != target.dtype
        if cast or not _contiguous(target):
            prepared, operand = self._plain(source, function)
            yield from prepared
            if cast:
                result = _operand(target) if _contiguous(target) else Operand(self._new(), target.shape, target.dtype)
                yield Task("Cast", function, (operand,), (result,))
                operand = result
            if not _contiguous(target):
                yield Task("ViewCopy", function, (operand,), (_operand(target),))
            return
        kind = _copy_of(source) or "TensorMove"
        yield Task(kind, function, (_read_by(kind, source),), (_operand(target),))

    def _plain(self, seen: Seen, function: str) -> tuple[list[Task], Operand]:
        """The tensor as a plain array, with the copy that makes it one."""
        kind = _copy_of(seen)
        if kind is None:
            return [], _operand(seen)
        copy = Operand(self._new(), seen.shape, seen.dtype)
        return [Task(kind, function, (_read_by(kind, seen),), (copy,))], copy

    def _new(self) -> int:
        self._next += 1
        return self._next - 1


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


def _operand(seen: Seen) -> Operand:
    return Operand(seen.storage, seen.shape, seen.dtype)


def _read_by(kind: str, seen: Seen) -> Operand:
    """The operand of a copy: parts are cut out of the whole tensor, an expanded one is listed as it is in memory."""
    if kind in ("Slice", "StridedSlice", "AsStrided"):
        return Operand(seen.storage, seen.whole, seen.dtype)
    return _operand(_narrow(seen)) if kind == "BroadcastTo" else _operand(seen)


def _axes(seen: Seen) -> list[tuple[int, int]]:
    """Length and stride of each axis of more than one element."""
    return [(length, stride) for length, stride in zip(seen.shape, seen.strides, strict=True) if length != 1]


def _contiguous(seen: Seen) -> bool:
    return _filled(_axes(seen)[::-1])


def _filled(axes: Sequence[tuple[int, int]]) -> bool:
    """The axes, the quickest first, fill their memory."""
    expected = 1
    for length, stride in axes:
        if stride != expected:
            return False
        expected *= length
    return True


def _expanded(seen: Seen) -> bool:
    return any(not stride for _, stride in _axes(seen))


def _narrow(seen: Seen) -> Seen:
    """An expanded tensor as it is in memory."""
    shape = tuple(1 if not stride else length for length, stride in zip(seen.shape, seen.strides, strict=True))
    return replace(seen, shape=shape)


def _turned(seen: Seen) -> bool:
    """It is plain once its last two axes are exchanged, and not without."""
    shape, strides = seen.shape, seen.strides
    turned = replace(seen, shape=(*shape[:-2], shape[-1], shape[-2]), strides=(*strides[:-2], strides[-1], strides[-2]))
    return not _contiguous(seen) and _contiguous(turned)


def _copy_of(seen: Seen) -> str | None:
    """The type of the kernel that makes a plain array of it; none where it is one."""
    axes = _axes(seen)
    if not axes or _contiguous(seen):
        return None
    if _expanded(seen):
        return "BroadcastTo"
    if _filled(sorted(axes, key=lambda axis: axis[1])):
        return "Transpose"
    if all(first[1] >= second[1] for first, second in pairwise(axes)):
        return "Slice" if axes[-1][1] == 1 else "StridedSlice"
    return "AsStrided"
