"""Tensors and device kernels: what a kernel works on and how much work that is.

Kernel names and types are those of real exports (``aclnnMul_MulAiCore_Mul`` of type ``Mul``).
A kernel says nothing about time; :mod:`advisor_core.sample.machine.chip` turns its work into a duration.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Literal

Core = Literal["AI_CORE", "AI_VECTOR_CORE", "MIX_AIC", "MIX_AIV", "AI_CPU"]

ALIGNMENT_BYTES = 512
"""A tail axis that is not a multiple of this is slow to load on the cube (docs/sources.md#tail-axis)."""
PRIVATE_FORMAT = "FRACTAL_NZ"
"""The layout in fractals of 16 by 16 that the cube loads best."""
STRIDE_BYTES = 16 * 1024
"""A tail axis that is a multiple of this is slow as well (docs/sources.md#tail-axis)."""
WHOLE_HEAD = 128
"""Channels of a head up to which fused attention takes as long for each score: the vector cores, whose work is the same
for every score, keep the cube waiting (docs/sources.md#fused-attention)."""


class DType(Enum):
    """Element types: the name in kernel tables, the name in framework tables, bytes."""

    BF16 = ("DT_BF16", "c10::BFloat16", 2)
    FP32 = ("FLOAT", "float", 4)
    INT64 = ("INT64", "long int", 8)
    INT32 = ("INT32", "int", 4)
    BOOL = ("BOOL", "bool", 1)
    UINT8 = ("UINT8", "unsigned char", 1)
    UINT16 = ("UINT16", "signed char", 2)

    def __init__(self, device_name: str, host_name: str, size: int) -> None:
        self.device_name = device_name
        self.host_name = host_name
        self.size = size


@dataclass(frozen=True, eq=False, slots=True)
class Tensor:
    """A tensor; compared by identity, because its lifetime matters."""

    shape: tuple[int, ...]
    dtype: DType = DType.BF16
    fmt: str = "FORMAT_ND"
    persistent: bool = False
    base: Tensor | None = None

    @property
    def storage(self) -> Tensor:
        """The tensor that owns the memory of this view."""
        return self.base or self

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return prod(self.shape) * self.dtype.size

    @property
    def tail_bytes(self) -> int:
        """Bytes of a row of the last axis."""
        return self.shape[-1] * self.dtype.size

    @property
    def tail_aligned(self) -> bool:
        """Whether a row of the last axis is a multiple of 512 bytes."""
        return self.tail_bytes % ALIGNMENT_BYTES == 0

    def like(self, dtype: DType | None = None) -> Tensor:
        """A new tensor of the same shape."""
        return Tensor(self.shape, dtype or self.dtype, self.fmt)

    def view(self, *shape: int) -> Tensor:
        """The same memory in another shape."""
        return Tensor(shape, self.dtype, self.fmt, self.persistent, self.storage)

    def resized(self, *shape: int) -> Tensor:
        """A new tensor of the same element type."""
        return Tensor(shape, self.dtype, self.fmt)


@dataclass(frozen=True, slots=True)
class MatMulWork:
    """``[m,k] x [k,n]``; ``unaligned`` if the contraction runs along an unaligned tail axis, ``strided`` if the tail of
    an operand is a multiple of 16 KiB, ``single`` for FP32."""

    m: int
    n: int
    k: int
    unaligned: bool
    ragged_output: bool
    strided: bool = False
    single: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the operands and the result, each moved once."""
        return (self.m * self.k + self.k * self.n + self.m * self.n) * (4 if self.single else 2)


@dataclass(frozen=True, slots=True)
class VectorWork:
    """Bytes moved by a vector kernel, and how busy its vector unit is at full bandwidth.

    ``strided`` access reaches a lower bandwidth.
    """

    read: int
    write: int
    strided: bool = False
    vector_share: float = 0.15


@dataclass(frozen=True, slots=True)
class AttentionWork:
    """Floating-point operations of a fused attention kernel, and the bytes of a cache that it reads. ``channels``: of a
    head. ``causal``: the operations are those of the scores that a mask leaves."""

    flops: int
    backward: bool
    single: bool = False
    read: int = 0
    channels: int = WHOLE_HEAD
    causal: bool = False


@dataclass(frozen=True, slots=True)
class AiCpuWork:
    """Time on the AI CPU, nanoseconds: such operators are serial code."""

    ns: int


@dataclass(frozen=True, slots=True)
class ConvolutionWork:
    """Floating-point operations of a convolution or of one of its gradients, with channels padded to whole blocks.

    ``narrow``: most of a block of input channels is padding, as with the three colours of a picture; ``single`` for
    FP32, which the cube multiplies as HF32; ``nbytes``: operands and result, each moved once.
    """

    pass_: Literal["forward", "input", "filter"]
    flops: int
    batch: int
    nbytes: int
    narrow: bool
    single: bool


@dataclass(frozen=True, slots=True)
class PoolingWork:
    """Elements that a maximum is taken of, or whose gradient it is, and the bytes moved."""

    elements: int
    nbytes: int
    backward: bool


Work = MatMulWork | VectorWork | AttentionWork | AiCpuWork | ConvolutionWork | PoolingWork


@dataclass(frozen=True, slots=True)
class Kernel:
    """One device task: identity, tensors and work."""

    name: str
    type: str
    core: Core
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    work: Work


def vector(
    acl: str,
    type_: str,
    inputs: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    *,
    core: Core = "AI_VECTOR_CORE",
    infix: str | None = None,
    strided: bool = False,
    share: float = 0.15,
    read: int | None = None,
    write: int | None = None,
) -> Kernel:
    """A kernel on the vector cores that moves its tensors once, or ``read`` and ``write`` bytes of them."""
    work = VectorWork(
        sum(tensor.nbytes for tensor in inputs) if read is None else read,
        sum(tensor.nbytes for tensor in outputs) if write is None else write,
        strided,
        share,
    )
    return Kernel(f"{acl}_{infix or type_ + 'AiCore'}_{type_}", type_, core, inputs, outputs, work)


def matmul(acl: str, a: Tensor, b: Tensor, out: Tensor, contraction: int) -> Kernel:
    """A matrix product of two stored operands; ``contraction`` is the length of the summed axis.

    An operand whose summed axis is its stored tail and unaligned makes the product run as a
    ``MIX_AIC`` kernel at about 0.4 of the speed (docs/sources.md#unaligned-product).
    """
    m, n = out.shape[-2], out.shape[-1]
    unaligned = any(t.shape[-1] == contraction and not t.tail_aligned for t in (a, b))
    strided = any(t.fmt != PRIVATE_FORMAT and t.tail_bytes % STRIDE_BYTES == 0 for t in (a, b))
    work = MatMulWork(m, n, contraction, unaligned, not out.tail_aligned, strided, a.dtype is DType.FP32)
    core: Core = "MIX_AIC" if unaligned else "AI_CORE"
    return Kernel(f"{acl}_MatMulV3Common_MatMulV3", "MatMulV3", core, (a, b), (out,), work)


def grouped_matmul(acl: str, a: Tensor, b: Tensor, out: Tensor, m: int, n: int, k: int) -> Kernel:
    """Several products of ``[m_i,k_i] x [k_i,n]`` in one kernel, as much work as one of ``[m,k] x [k,n]``."""
    work = MatMulWork(m, n, k, unaligned=False, ragged_output=not out.tail_aligned)
    return Kernel(f"{acl}_GroupedMatmul_GroupedMatmul", "GroupedMatmul", "MIX_AIC", (a, b), (out,), work)


def attention(
    acl: str,
    inputs: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    flops: int,
    *,
    backward: bool,
    read: int = 0,
    channels: int = WHOLE_HEAD,
    causal: bool = False,
) -> Kernel:
    """A fused flash-attention kernel; ``read``: bytes of keys and values that its few queries wait for; ``channels``:
    of a head; ``causal``: ``flops`` are those of the scores that a mask leaves."""
    type_ = acl.removeprefix("aclnn")
    work = AttentionWork(flops, backward, inputs[0].dtype is DType.FP32, read, channels, causal)
    return Kernel(f"{acl}_{type_}_{type_}", type_, "MIX_AIC", inputs, outputs, work)


def cached_attention(
    acl: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], flops: int, read: int | None = None
) -> Kernel:
    """An attention kernel that reads keys and values, the inputs after the first, from a cache: all of it, or ``read``
    bytes of the blocks that it is given."""
    cached = sum(tensor.nbytes for tensor in inputs[1:]) if read is None else read
    work = AttentionWork(flops, False, inputs[0].dtype is DType.FP32, cached)
    type_ = "FusedInferAttentionScore"
    return Kernel(f"{acl}_{type_}_{type_}", type_, "MIX_AIC", inputs, outputs, work)


def ai_cpu(name: str, type_: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], ns: int) -> Kernel:
    """An operator that the cores have no kernel for."""
    return Kernel(f"{name}_{type_}AiCpu_{type_}", type_, "AI_CPU", inputs, outputs, AiCpuWork(ns))
