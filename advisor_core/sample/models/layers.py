"""The layers of a transformer, fused and written out.

The unfused chains and their kernel names follow Hugging Face style model code as seen in published
profiles: ``Pows, ReduceMean, Add, Rsqrt, Mul`` for RMSNorm, ``Slice, Neg, ConcatD, Mul, Add`` for
rotary embedding, ``Slice, Swish, Slice, Mul`` for SwiGLU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from ..kernels import PRIVATE_FORMAT, DType, Kernel, Tensor, matmul, vector
from ..kernels import attention as attention_kernel
from ..program import Op
from .eager import (
    FP32,
    Eager,
    Pullback,
    binary,
    call,
    cast,
    divide,
    reduce,
    slice_backward,
    transpose,
)


def linear(eager: Eager, x: Tensor, weight: str) -> tuple[Tensor, Pullback]:
    """``x @ w.T``; the gradients of the input and of the weight are one product each."""
    w = eager.weights[weight]
    rows, features = prod(x.shape) // w.shape[1], w.shape[0]
    flat = x.view(rows, w.shape[1])
    out = Tensor((rows, features), w.dtype)
    sequence = eager.next_sequence()
    before, loaded = _as_loaded(eager, "aclnnMatmul", w)
    product = matmul("aclnnMatmul", flat, loaded, out, w.shape[1])
    eager.do("aten::linear", "aclnnMatmul", *before, product, sequence=sequence)

    def pullback(dy: Tensor) -> Tensor:
        dy = dy.view(rows, features)
        dx, dw = Tensor(flat.shape, w.dtype), w.like()
        left, operand = ((), dy) if dy.tail_aligned and not eager.private_format else _packed("aclnnMm", dy)
        before, loaded = _as_loaded(eager, "aclnnMm", w)
        of_weight = call("aten::mm", "aclnnMm", *left, matmul("aclnnMm", operand, flat, dw, rows))
        of_input = call("aten::mm", "aclnnMm", *before, matmul("aclnnMm", dy, loaded, dx, features))
        if eager.defers:
            eager.undo("MmBackward0", sequence, of_input)
            eager.later(lambda: _weight_gradient(eager, sequence, of_weight, weight, dw))
            return dx
        gradient = eager.undo("MmBackward0", sequence, of_weight, of_input)
        eager.accumulate(weight, dw)
        return gradient

    return out, pullback


def _weight_gradient(eager: Eager, sequence: int, product: Op, weight: str, gradient: Tensor) -> None:
    """The product that is the gradient of a weight, by itself."""
    eager.undo("MmBackward0", sequence, product)
    eager.accumulate(weight, gradient)


def _as_loaded(eager: Eager, acl: str, w: Tensor) -> tuple[tuple[Kernel, ...], Tensor]:
    """The kernels that must run before a product, and the operand that it then reads."""
    return _packed(acl, w) if eager.private_format else ((), w)


def _packed(acl: str, matrix: Tensor) -> tuple[tuple[Kernel, ...], Tensor]:
    """A matrix in the cube's own format. Transposing an unaligned operand goes through it as well
    (docs/sources.md#unaligned-product)."""
    rows, features = matrix.shape
    packed = Tensor((-(-features // 16), -(-rows // 16), 16, 16), matrix.dtype, PRIVATE_FORMAT)
    return (vector(acl, "TransData", (matrix,), (packed,), infix="TransData", strided=True),), packed


def residual(eager: Eager, x: Tensor, y: Tensor) -> Tensor:
    """``x + y``; its pullback is the identity on both."""
    return eager.elementwise("aten::add", "aclnnAdd", "Add", x, y.view(*x.shape), sequence=eager.next_sequence())


def fused_rms_norm(eager: Eager, x: Tensor, weight: str) -> tuple[Tensor, Pullback]:
    """Root-mean-square normalisation over the last axis in one kernel."""
    w = eager.weights[weight]
    sequence = eager.next_sequence()
    rstd = Tensor((*x.shape[:-1], 1), FP32)
    out = Tensor(x.shape, x.dtype)
    eager.do(
        "npu::npu_rms_norm",
        "aclnnRmsNorm",
        vector("aclnnRmsNorm", "RmsNorm", (x, w), (out, rstd), infix="RmsNorm", share=0.45),
        sequence=sequence,
    )

    def fused(dy: Tensor) -> Tensor:
        dx, dw = Tensor(x.shape, x.dtype), Tensor(w.shape, FP32)
        grad = call(
            "npu::npu_rms_norm_backward",
            "aclnnRmsNormGrad",
            vector("aclnnRmsNormGrad", "RmsNormGrad", (dy, x, rstd, w), (dx, dw), infix="RmsNormGrad", share=0.6),
        )
        eager.undo("NpuRmsNormBackward0", sequence, grad)
        eager.accumulate(weight, dw)
        return dx

    return out, fused


def unfused_rms_norm(eager: Eager, x: Tensor, weight: str) -> tuple[Tensor, Pullback]:
    """Root-mean-square normalisation, one operator per step of the formula."""
    w = eager.weights[weight]
    sequence = eager.next_sequence()
    steps = {name: eager.next_sequence() for name in ("pow", "mean", "add", "rsqrt", "scale", "cast", "weight")}
    narrow = (*x.shape[:-1], 1)
    wide = eager.elementwise("aten::_to_copy", "aclnnInplaceCopy", "Cast", x, dtype=FP32, sequence=sequence)
    square = eager.elementwise(
        "aten::pow", "aclnnPowTensorScalar", "Pows", wide, sequence=steps["pow"], scalars=1, share=0.4
    )
    mean = Tensor(narrow, FP32)
    eager.do(
        "aten::mean",
        "aclnnMean",
        vector("aclnnMean", "ReduceMean", (square,), (mean,)),
        sequence=steps["mean"],
        scalars=2,
    )
    shifted = eager.elementwise("aten::add", "aclnnAdds", "Add", mean, sequence=steps["add"], scalars=2)
    rstd = eager.elementwise("aten::rsqrt", "aclnnRsqrt", "Rsqrt", shifted, sequence=steps["rsqrt"])
    scaled = eager.elementwise("aten::mul", "aclnnMul", "Mul", wide, rstd, sequence=steps["scale"])
    rounded = eager.elementwise(
        "aten::_to_copy", "aclnnInplaceCopy", "Cast", scaled, dtype=x.dtype, sequence=steps["cast"]
    )
    out = eager.elementwise("aten::mul", "aclnnMul", "Mul", rounded, w, sequence=steps["weight"])

    def unfused(dy: Tensor) -> Tensor:
        dy = dy.view(*x.shape)
        product, dw = Tensor(x.shape, x.dtype), w.like()
        dcast = eager.undo(
            "MulBackward0",
            steps["weight"],
            binary("Mul", dy, rounded, product),
            reduce(product, dw),
            binary("Mul", dy, w, Tensor(x.shape, x.dtype)),
        )
        eager.accumulate(weight, dw)
        dscaled = eager.undo("ToCopyBackward0", steps["cast"], cast(dcast, FP32))
        pull, drstd = Tensor(x.shape, FP32), Tensor(narrow, FP32)
        dwide = Tensor(x.shape, FP32)
        eager.undo(
            "MulBackward0",
            steps["scale"],
            binary("Mul", dscaled, rstd, dwide),
            binary("Mul", dscaled, wide, pull),
            reduce(pull, drstd),
        )
        cubed = Tensor(narrow, FP32)
        dshifted = eager.undo(
            "RsqrtBackward0",
            steps["rsqrt"],
            call(
                "aten::pow",
                "aclnnPowTensorScalar",
                vector("aclnnPowTensorScalar", "Pows", (rstd,), (cubed,)),
                scalars=1,
            ),
            binary("Mul", drstd, cubed, Tensor(narrow, FP32)),
        )
        dmean = eager.undo("MeanBackward1", steps["mean"], divide(dshifted))
        twice = Tensor(x.shape, FP32)
        dsquare = eager.undo(
            "PowBackward0",
            steps["pow"],
            call("aten::mul", "aclnnMuls", vector("aclnnMuls", "Mul", (wide,), (twice,)), scalars=1),
            binary("Mul", twice, dmean, Tensor(x.shape, FP32)),
        )
        return eager.undo("ToCopyBackward0", sequence, cast(eager.merge_gradients(dwide, dsquare), x.dtype))

    return out, unfused


@dataclass(frozen=True, slots=True)
class RotaryTable:
    """Cosines and sines of all positions."""

    cos: Tensor
    sin: Tensor

    @classmethod
    def of(cls, positions: int, head_dim: int, dtype: DType = DType.BF16) -> RotaryTable:
        """The table for a sequence."""
        shape = (1, 1, positions, head_dim)
        return cls(Tensor(shape, dtype, persistent=True), Tensor(shape, dtype, persistent=True))


def fused_rotary(eager: Eager, x: Tensor, table: RotaryTable) -> tuple[Tensor, Pullback]:
    """Rotary position embedding of ``[batch, sequence, heads, head_dim]`` in one kernel."""
    sequence = eager.next_sequence()
    acl = "aclnnRotaryPositionEmbedding"
    out = Tensor(x.shape, x.dtype)
    kernel = vector(
        acl,
        "RotaryPositionEmbedding",
        (x, table.cos, table.sin),
        (out,),
        infix="RotaryPositionEmbedding",
        share=0.5,
    )
    eager.do("npu::npu_rotary_mul", acl, kernel, sequence=sequence)

    def fused(dy: Tensor) -> Tensor:
        dx = Tensor(x.shape, x.dtype)
        kernel = vector(
            acl + "Grad",
            "RotaryPositionEmbeddingGrad",
            (dy, table.cos, table.sin),
            (dx,),
            infix="RotaryPositionEmbeddingGrad",
            share=0.5,
        )
        return eager.undo("NpuRotaryMulBackward0", sequence, call("npu::npu_rotary_mul_backward", acl + "Grad", kernel))

    return out, fused


def unfused_rotary(eager: Eager, x: Tensor, table: RotaryTable, *, compiled: bool) -> tuple[Tensor, Pullback]:
    """The same by multiplications with a tensor whose halves are swapped; the result is head-major.

    With ``compiled`` the swap goes through the operator compiler.
    """
    batch, length, heads, head = x.shape
    turned = Tensor((batch, heads, length, head), x.dtype)
    half = (batch, heads, length, head // 2)
    s_cos, s_neg, s_cat, s_sin, s_add, s_turn = (eager.next_sequence() for _ in range(6))
    by_cos = Tensor(turned.shape, x.dtype)
    # The multiplication reads a transposed view, so it first makes it contiguous.
    eager.do(
        "aten::mul",
        "aclnnMul",
        vector("aclnnMul", "Transpose", (x,), (turned,), strided=True),
        vector("aclnnMul", "Mul", (turned, table.cos), (by_cos,)),
        sequence=s_cos,
    )
    upper, lower, negated = Tensor(half, x.dtype), Tensor(half, x.dtype), Tensor(half, x.dtype)
    eager.do(
        "aten::neg",
        "aclnnNeg",
        vector("aclnnNeg", "Slice", (turned,), (upper,), strided=True, read=upper.nbytes),
        vector("aclnnNeg", "Neg", (upper,), (negated,)),
        sequence=s_neg,
    )
    joined = Tensor(turned.shape, x.dtype)
    eager.do(
        "aten::contiguous",
        "Slice" if compiled else "aclnnInplaceCopy",
        vector("aclnnInplaceCopy", "Slice", (turned,), (lower,), strided=True, read=lower.nbytes),
        compiled=compiled,
    )
    eager.do(
        "aten::cat",
        "ConcatD" if compiled else "aclnnCat",
        vector("aclnnCat", "ConcatD", (negated, lower), (joined,), infix="ConcatD", strided=True),
        sequence=s_cat,
        compiled=compiled,
    )
    by_sin = eager.elementwise("aten::mul", "aclnnMul", "Mul", joined, table.sin, sequence=s_sin)
    out = eager.elementwise("aten::add", "aclnnAdd", "Add", by_cos, by_sin, sequence=s_add)

    def unfused(dy: Tensor) -> Tensor:
        djoined = eager.undo("MulBackward0", s_sin, binary("Mul", dy, table.sin, Tensor(dy.shape, x.dtype)))
        left, dneg = Tensor(half, x.dtype), Tensor(half, x.dtype)
        eager.undo(
            "NegBackward0",
            s_neg,
            call(
                "aten::neg",
                "aclnnNeg",
                vector("aclnnNeg", "Slice", (djoined,), (left,), strided=True, read=left.nbytes),
                vector("aclnnNeg", "Neg", (left,), (dneg,)),
            ),
        )
        upper_part = eager.undo("SliceBackward0", s_cat, *slice_backward(dneg, dy.shape))
        lower_part = eager.undo("SliceBackward0", s_cat, *slice_backward(djoined, dy.shape))
        dcos = eager.undo("MulBackward0", s_cos, binary("Mul", dy, table.cos, Tensor(dy.shape, x.dtype)))
        merged = eager.merge_gradients(eager.merge_gradients(upper_part, lower_part), dcos)
        back = Tensor(x.shape, x.dtype)
        return eager.undo("TransposeBackward0", s_turn, transpose(merged, back))

    return out, unfused


def flash_attention(
    eager: Eager, q: Tensor, k: Tensor, v: Tensor, *, heads: int, positions: int
) -> tuple[Tensor, Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]]:
    """Causal attention in one kernel; there is no unfused form here."""
    batch, width = q.shape[0], prod(q.shape) // (q.shape[0] * positions)
    sequence = eager.next_sequence()
    flops = 2 * batch * positions * positions * width  # two products, half of them masked
    out = Tensor(q.shape, q.dtype)
    mask = Tensor((2048, 2048), DType.BOOL, persistent=True)  # a compressed causal mask has this shape
    maximum, softmax = (Tensor((batch, heads, positions, 8), FP32) for _ in range(2))
    eager.do(
        "npu::npu_fusion_attention",
        "aclnnFlashAttentionScore",
        attention_kernel(
            "aclnnFlashAttentionScore", (q, k, v, mask), (out, softmax, maximum), flops, backward=False, causal=True
        ),
        sequence=sequence,
        scalars=6,
    )

    def pullback(dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        gradients = (Tensor(q.shape, q.dtype), Tensor(k.shape, q.dtype), Tensor(v.shape, q.dtype))
        kernel = attention_kernel(
            "aclnnFlashAttentionScoreGrad",
            (q, k, v, dy, mask, maximum, softmax, out),
            gradients,
            int(2.5 * flops),
            backward=True,
            causal=True,
        )
        eager.undo(
            "NpuFusionAttentionBackward0",
            sequence,
            call("npu::npu_fusion_attention_grad", "aclnnFlashAttentionScoreGrad", kernel, scalars=6),
        )
        return gradients

    return out, pullback


def fused_swiglu(eager: Eager, gate_up: Tensor) -> tuple[Tensor, Pullback]:
    """``silu(gate) * up`` of the two halves of one projection in one kernel."""
    half = (gate_up.shape[0], gate_up.shape[1] // 2)
    out = Tensor(half, gate_up.dtype)
    sequence = eager.next_sequence()
    eager.do(
        "npu::npu_swiglu",
        "aclnnSwiGlu",
        vector("aclnnSwiGlu", "SwiGlu", (gate_up,), (out,), infix="SwiGlu", share=0.55),
        sequence=sequence,
    )

    def fused(dy: Tensor) -> Tensor:
        kernel = vector(
            "aclnnSwiGluGrad",
            "SwiGluGrad",
            (dy, gate_up),
            (Tensor(gate_up.shape, gate_up.dtype),),
            infix="SwiGluGrad",
            share=0.6,
        )
        return eager.undo("NpuSwigluBackward0", sequence, call("npu::npu_swiglu_backward", "aclnnSwiGluGrad", kernel))

    return out, fused


def unfused_swiglu(eager: Eager, gate_up: Tensor) -> tuple[Tensor, Pullback]:
    """The same with each half sliced out first."""
    half = (gate_up.shape[0], gate_up.shape[1] // 2)
    out = Tensor(half, gate_up.dtype)
    sequence = eager.next_sequence()
    product = eager.next_sequence()
    gate, up, activated = Tensor(half, gate_up.dtype), Tensor(half, gate_up.dtype), Tensor(half, gate_up.dtype)
    eager.do(
        "aten::silu",
        "aclnnSilu",
        vector("aclnnSilu", "Slice", (gate_up,), (gate,), strided=True, read=gate.nbytes),
        vector("aclnnSilu", "Swish", (gate,), (activated,), infix="SiluAiCore", share=0.5),
        sequence=sequence,
    )
    eager.do(
        "aten::mul",
        "aclnnMul",
        vector("aclnnMul", "Slice", (gate_up,), (up,), strided=True, read=up.nbytes),
        vector("aclnnMul", "Mul", (activated, up), (out,)),
        sequence=product,
    )

    def unfused(dy: Tensor) -> Tensor:
        dup, dactivated = Tensor(half, gate_up.dtype), Tensor(half, gate_up.dtype)
        eager.undo("MulBackward0", product, binary("Mul", dy, activated, dup), binary("Mul", dy, up, dactivated))
        dgate = eager.undo(
            "SiluBackward0",
            sequence,
            call(
                "aten::silu_backward",
                "aclnnSiluBackward",
                vector("aclnnSiluBackward", "SiluGrad", (dactivated, gate), (Tensor(half, gate_up.dtype),), share=0.6),
            ),
        )
        upper = eager.undo("SliceBackward0", product, *slice_backward(dup, gate_up.shape))
        lower = eager.undo("SliceBackward0", sequence, *slice_backward(dgate, gate_up.shape))
        return eager.merge_gradients(upper, lower)

    return out, unfused


def fused_cross_entropy(eager: Eager, logits: Tensor, labels: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
    """Mean cross-entropy of the next token in one kernel."""
    rows = logits.shape[0]
    loss = Tensor((), FP32)
    sequence = eager.next_sequence()
    log_likelihood = Tensor((rows,), FP32)
    eager.do(
        "npu::npu_cross_entropy_loss",
        "aclnnCrossEntropyLoss",
        vector(
            "aclnnCrossEntropyLoss",
            "CrossEntropyLoss",
            (logits, labels),
            (loss, log_likelihood),
            infix="CrossEntropyLoss",
            share=0.7,
        ),
        sequence=sequence,
        scalars=3,
    )

    def fused() -> Tensor:
        kernel = vector(
            "aclnnCrossEntropyLossGrad",
            "CrossEntropyLossGrad",
            (logits, log_likelihood, labels),
            (Tensor(logits.shape, logits.dtype),),
            infix="CrossEntropyLossGrad",
            share=0.6,
        )
        return eager.undo(
            "NpuCrossEntropyLossBackward0",
            sequence,
            call("npu::npu_cross_entropy_loss_backward", "aclnnCrossEntropyLossGrad", kernel),
        )

    return loss, fused


def unfused_cross_entropy(eager: Eager, logits: Tensor, labels: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
    """Softmax and negative log-likelihood written out in FP32, as in vocabulary-parallel losses
    (docs/sources.md#cross-entropy-written-out)."""
    rows = logits.shape[0]
    loss = Tensor((), FP32)
    sequence = eager.next_sequence()
    wide = eager.elementwise("aten::_to_copy", "aclnnInplaceCopy", "Cast", logits, dtype=FP32, sequence=sequence)
    largest = Tensor((rows, 1), FP32)
    eager.do("aten::amax", "aclnnAmax", vector("aclnnAmax", "ReduceMax", (wide,), (largest,)), scalars=2)
    shifted = eager.elementwise("aten::sub", "aclnnSub", "Sub", wide, largest, scalars=1)
    picked = Tensor((rows, 1), FP32)
    eager.do(
        "aten::gather",
        "aclnnGather",
        vector("aclnnGather", "GatherElements", (shifted, labels), (picked,), read=rows * 64),
        scalars=2,
    )
    exponentials = eager.elementwise("aten::exp", "aclnnExp", "Exp", shifted, share=0.4)
    total = Tensor((rows, 1), FP32)
    eager.do(
        "aten::sum",
        "aclnnReduceSum",
        vector("aclnnReduceSum", "ReduceSum", (exponentials,), (total,), core="MIX_AIV", infix="ReduceSumOpAiCore"),
        scalars=3,
    )
    logarithm = eager.elementwise("aten::log", "aclnnLog", "Log", total)
    losses = eager.elementwise("aten::sub", "aclnnSub", "Sub", logarithm, picked, scalars=1)
    probabilities = eager.elementwise("aten::div", "aclnnDiv", "RealDiv", exponentials, total)
    eager.do("aten::mean", "aclnnMean", vector("aclnnMean", "ReduceMean", (losses,), (loss,)), scalars=1)

    def unfused() -> Tensor:
        hit = probabilities.view(*probabilities.shape)
        return eager.undo(
            "VocabCrossEntropyBackward",
            sequence,
            call(
                "aten::scatter_add_",
                "aclnnInplaceScatterAdd",
                vector(
                    "aclnnInplaceScatterAdd",
                    "ScatterElementsV2",
                    (probabilities, labels),
                    (Tensor((rows, 1), FP32),),
                    read=rows * 96,
                ),
                scalars=1,
            ),
            call(
                "aten::mul_",
                "aclnnInplaceMuls",
                vector("aclnnInplaceMuls", "Mul", (probabilities,), (hit,)),
                scalars=1,
            ),
            cast(hit, logits.dtype),
        )

    return loss, unfused
