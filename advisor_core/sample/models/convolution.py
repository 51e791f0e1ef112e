"""The layers of a convolutional network: what their operators launch, in the formats of the cube or from NCHW.

Operators and kernel types are those of docs/sources.md#recorded-alexnet-job, and of the batch normalisation of the same
library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..described import FROM_FILES, Positive
from ..kernels import ConvolutionWork, DType, Kernel, PoolingWork, Tensor, matmul, vector
from ..program import Op
from .eager import FP32, Eager, Pullback, call

BLOCK_BYTES = 32
"""Channels of one block of NC1HWC0: 8 of FP32 (docs/sources.md#blocked-format)."""
BLOCKED, PLAIN, WEIGHTS = "NC1HWC0", "NCHW", "FRACTAL_Z"


@dataclass(frozen=True, slots=True)
class Convolution:
    """One convolution, square, with ``channels`` results; ``pooled`` by the maximum of three by three of them."""

    __pydantic_config__ = FROM_FILES
    channels: Positive
    kernel: Positive
    stride: Positive = 1
    pooled: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """The logical shape of an activation."""

    batch: int
    channels: int
    size: int

    def halved(self, stride: int, channels: int | None = None) -> Picture:
        """After a padded window of that stride."""
        return Picture(self.batch, channels or self.channels, -(-self.size // stride))


class Layers:
    """Records layers on an eager recorder. ``keeps_format``: activations and weights stay in the formats of the cube
    (``allow_internal_format``); otherwise they are NCHW, and every operator converts what it reads and writes."""

    def __init__(self, eager: Eager, dtype: DType, *, keeps_format: bool) -> None:
        self._eager = eager
        self._dtype = dtype
        self._keeps_format = keeps_format

    def _blocked(self, picture: Picture) -> Tensor:
        block = BLOCK_BYTES // self._dtype.size
        blocks = -(-picture.channels // block)
        return Tensor((picture.batch, blocks, picture.size, picture.size, block), self._dtype, BLOCKED)

    def _plain(self, picture: Picture) -> Tensor:
        return Tensor((picture.batch, picture.channels, picture.size, picture.size), self._dtype, PLAIN)

    def _loaded(self, acl: str, x: Tensor, picture: Picture) -> tuple[tuple[Kernel, ...], Tensor]:
        if x.fmt == BLOCKED:
            return (), x
        blocked = self._blocked(picture)
        return (_transdata(acl, x, blocked),), blocked

    def _stored(self, acl: str, blocked: Tensor, picture: Picture) -> tuple[tuple[Kernel, ...], Tensor]:
        if self._keeps_format:
            return (), blocked
        plain = self._plain(picture)
        return (_transdata(acl, blocked, plain),), plain

    def _weight(self, acl: str, weight: Tensor, packed: Tensor) -> tuple[tuple[Kernel, ...], Tensor]:
        return ((), weight) if weight.fmt == WEIGHTS else ((_transdata(acl, weight, packed),), packed)

    def convolution(
        self, x: Tensor, before: Picture, layer: Convolution, name: str, *, first: bool
    ) -> tuple[Tensor, Pullback]:
        """A convolution without bias. The ``first`` one needs no gradient of its input."""
        after = before.halved(layer.stride, layer.channels)
        weight, packed = self._eager.weights[name], fractal(before.channels, layer, self._dtype)
        acl = "aclnnConvolution"
        load, blocked = self._loaded(acl, x, before)
        load_weight, filters = self._weight(acl, weight, packed)
        result = self._blocked(after)
        product = _convolve(acl, "Conv2D", "forward", (blocked, filters), result, before, after, layer)
        store, out = self._stored(acl, result, after)
        sequence = self._eager.next_sequence()
        kernels = (*load, *load_weight, product, *store)
        self._eager.do("aten::convolution", acl, *kernels, sequence=sequence, scalars=7)

        def pullback(dy: Tensor) -> Tensor:
            acl = "aclnnConvolutionBackward"
            load, dresult = self._loaded(acl, dy, after)
            kernels: list[Kernel] = [*load]
            dx = dy
            if not first:
                load_weight, filters = self._weight(acl, weight, packed.like())
                blocked_dx = self._blocked(before)
                store, dx = self._stored(acl, blocked_dx, before)
                product = _convolve(
                    acl, "Conv2DBackpropInput", "input", (filters, dresult), blocked_dx, before, after, layer
                )
                kernels += [*load_weight, product, *store]
                # The gradient of the weight is an operator of its own, which converts its operands again.
                load, dresult = self._loaded(acl, dy, after)
                kernels += load
            load, operand = self._loaded(acl, x, before)
            dpacked = dw = packed.like()
            kernels += [
                *load,
                _convolve(acl, "Conv2DBackpropFilter", "filter", (operand, dresult), dpacked, before, after, layer),
            ]
            if not self._keeps_format:
                dw = weight.like()
                kernels.append(_transdata(acl, dpacked, dw))
            op = call("aten::convolution_backward", acl, *kernels, scalars=7)
            self._eager.undo("ConvolutionBackward0", sequence, op)
            self._eager.accumulate(name, dw)
            return dx

        return out, pullback

    def normalise(self, x: Tensor, picture: Picture, name: str) -> tuple[Tensor, Pullback]:
        """Batch normalisation with the statistics of the batch."""
        gamma, beta = (self._eager.weights[f"{name}.{part}"] for part in ("gamma", "beta"))
        sums, squares, mean, deviation = (Tensor((picture.channels,), FP32) for _ in range(4))
        out = Tensor(x.shape, x.dtype, x.fmt)
        acl = "aclnnBatchNorm"
        sequence = self._eager.next_sequence()
        self._eager.do(
            "aten::native_batch_norm",
            acl,
            vector(acl, "BNTrainingReduce", (x,), (sums, squares), share=0.4),
            vector(acl, "BNTrainingUpdate", (x, sums, squares, gamma, beta), (mean, deviation, out), share=0.3),
            sequence=sequence,
            scalars=3,
        )

        def pullback(dy: Tensor) -> Tensor:
            acl = "aclnnBatchNormBackward"
            dgamma, dbeta, dx = gamma.like(), beta.like(), Tensor(x.shape, x.dtype, x.fmt)
            self._eager.undo(
                "NativeBatchNormBackward0",
                sequence,
                call(
                    "aten::native_batch_norm_backward",
                    acl,
                    vector(acl, "BNTrainingUpdateGrad", (dy, x, mean, deviation), (dgamma, dbeta), share=0.4),
                    vector(acl, "BNTrainingReduceGrad", (dy, x, dgamma, dbeta, gamma, mean), (dx,), share=0.4),
                    scalars=3,
                ),
            )
            self._eager.accumulate(f"{name}.gamma", dgamma)
            self._eager.accumulate(f"{name}.beta", dbeta)
            return dx

        return out, pullback

    def relu(self, x: Tensor) -> tuple[Tensor, Pullback]:
        """The positive part, in place."""
        sequence = self._eager.next_sequence()
        out = x.view(*x.shape)
        kernel = vector("aclnnInplaceRelu", "Relu", (x,), (out,), infix="Relu", share=0.1)
        self._eager.do("aten::relu_", "aclnnInplaceRelu", kernel, sequence=sequence)

        def pullback(dy: Tensor) -> Tensor:
            acl = "aclnnThresholdBackward"
            kernel = vector(acl, "ReluGrad", (dy, out), (Tensor(x.shape, x.dtype, x.fmt),), infix="ReluGrad")
            op = call("aten::threshold_backward", acl, kernel, scalars=1)
            return self._eager.undo("ReluBackward0", sequence, op)

        return out, pullback

    def pool(self, x: Tensor, before: Picture) -> tuple[Tensor, Pullback]:
        """The maximum of three by three, every second one."""
        after = before.halved(2)
        sequence = self._eager.next_sequence()
        acl = "aclnnMaxPool2dWithMask"
        load, blocked = self._loaded(acl, x, before)
        result = self._blocked(after)
        mask = Tensor((*result.shape[:2], 9, -(-after.size * after.size // 16) + 1, 16), DType.UINT16, BLOCKED)
        largest = _pool(acl, "MaxPoolWithArgmaxV1", (blocked,), (result, mask), blocked, backward=False)
        store, out = self._stored(acl, result, after)
        # Its second output, the mask, is the last one only if nothing converts the first.
        self._eager.do("aten::max_pool2d_with_indices", acl, *load, largest, *store, sequence=sequence, scalars=4)

        def pullback(dy: Tensor) -> Tensor:
            acl = "aclnnMaxPool2dWithMaskBackward"
            load, dresult = self._loaded(acl, dy, after)
            dblocked = self._blocked(before)
            kernel = _pool(
                acl, "MaxPoolGradWithArgmaxV1", (blocked, dresult, mask), (dblocked,), blocked, backward=True
            )
            store, _ = self._stored(acl, dblocked, before)
            op = call("aten::max_pool2d_with_indices_backward", acl, *load, kernel, *store, scalars=6)
            return self._eager.undo("MaxPool2DWithIndicesBackward0", sequence, op)

        return out, pullback

    def average(self, x: Tensor, picture: Picture) -> tuple[Tensor, Pullback]:
        """The mean of every channel."""
        sequence = self._eager.next_sequence()
        out = Tensor((picture.batch, picture.channels), self._dtype)
        self._eager.do("aten::mean", "aclnnMean", vector("aclnnMean", "ReduceMean", (x,), (out,)), sequence=sequence)

        def pullback(dy: Tensor) -> Tensor:
            spread = vector("aclnnExpand", "BroadcastTo", (dy,), (Tensor(x.shape, x.dtype, x.fmt),))
            return self._eager.undo("MeanBackward1", sequence, call("aten::expand", "aclnnExpand", spread, scalars=1))

        return out, pullback

    def classify(self, x: Tensor, name: str, labels: Tensor) -> tuple[Tensor, Pullback]:
        """A linear layer and the loss of its classes; the pullback starts from the gradient of the loss, a scalar."""
        weight, bias = self._eager.weights[name], self._eager.weights[f"{name}.bias"]
        batch, features = x.shape
        classes = weight.shape[0]
        logits, scores = (Tensor((batch, classes), self._dtype) for _ in range(2))
        loss, total = Tensor((), self._dtype), Tensor((), self._dtype)
        s_linear, s_softmax, s_loss = (self._eager.next_sequence() for _ in range(3))
        product = matmul("aclnnAddmm", x, weight, logits, features)
        self._eager.do("aten::addmm", "aclnnAddmm", product, sequence=s_linear, scalars=2)
        softmax = vector("aclnnLogSoftmax", "LogSoftmaxV2", (logits,), (scores,), share=0.3)
        self._eager.do("aten::_log_softmax", "aclnnLogSoftmax", softmax, sequence=s_softmax, scalars=2)
        pick = vector("aclnnNLLLoss", "NLLLoss", (scores, labels), (loss, total), core="MIX_AIV")
        self._eager.do("aten::nll_loss_forward", "aclnnNLLLoss", pick, sequence=s_loss, scalars=3)

        def pullback(dloss: Tensor) -> Tensor:
            dscores, dlogits = scores.like(), logits.like()
            acl = "aclnnNLLLossBackward"
            op = call("aten::nll_loss_backward", acl, vector(acl, "NLLLossGrad", (scores, dloss, labels), (dscores,)))
            self._eager.undo("NllLossBackward0", s_loss, op)
            acl = "aclnnLogSoftmaxBackward"
            op = call(
                "aten::_log_softmax_backward_data", acl, vector(acl, "LogSoftmaxGrad", (dscores, scores), (dlogits,))
            )
            self._eager.undo("LogSoftmaxBackward0", s_softmax, op)
            dx, dw, dbias = Tensor(x.shape, x.dtype), weight.like(), bias.like()
            total = vector(
                "aclnnReduceSum", "ReduceSum", (dlogits,), (dbias,), core="MIX_AIV", infix="ReduceSumOpAiCore"
            )
            self._eager.undo(
                "AddmmBackward0",
                s_linear,
                call("aten::mm", "aclnnMm", matmul("aclnnMm", dlogits, x, dw, batch)),
                call("aten::sum", "aclnnReduceSum", total, scalars=2),
                call("aten::mm", "aclnnMm", matmul("aclnnMm", dlogits, weight, dx, classes)),
            )
            self._eager.accumulate(f"{name}.bias", dbias)
            self._eager.accumulate(name, dw)
            return dx

        return loss, pullback


def fractal(channels: int, layer: Convolution, dtype: DType, *, persistent: bool = False) -> Tensor:
    """The weight of a convolution in the format of the cube."""
    block = BLOCK_BYTES // dtype.size
    rows = -(-channels // block) * layer.kernel * layer.kernel
    return Tensor((rows, -(-layer.channels // 16), 16, block), dtype, WEIGHTS, persistent)


def plain(channels: int, layer: Convolution, dtype: DType) -> Tensor:
    """The weight of a convolution as the framework keeps it."""
    return Tensor((layer.channels, channels, layer.kernel, layer.kernel), dtype, PLAIN, persistent=True)


def _transdata(acl: str, source: Tensor, target: Tensor) -> Kernel:
    return vector(acl, "TransData", (source,), (target,), infix="TransData", strided=True)


def _convolve(
    acl: str,
    type_: str,
    pass_: Literal["forward", "input", "filter"],
    inputs: tuple[Tensor, Tensor],
    out: Tensor,
    before: Picture,
    after: Picture,
    layer: Convolution,
) -> Kernel:
    """``before`` and ``after`` are those of the forward pass, whatever is computed."""
    dtype = out.dtype
    block = BLOCK_BYTES // dtype.size
    channels = -(-before.channels // block) * block
    positions = after.batch * after.size * after.size
    flops = 2 * positions * layer.channels * channels * layer.kernel * layer.kernel
    nbytes = sum(tensor.nbytes for tensor in (*inputs, out))
    narrow = 2 * before.channels < block
    work = ConvolutionWork(pass_, flops, before.batch, nbytes, narrow, dtype is DType.FP32)
    return Kernel(f"{acl}_{type_}_{type_}", type_, "AI_CORE", inputs, (out,), work)


def _pool(
    acl: str, type_: str, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], pooled: Tensor, *, backward: bool
) -> Kernel:
    nbytes = sum(tensor.nbytes for tensor in (*inputs, *outputs))
    work = PoolingWork(pooled.nbytes // pooled.dtype.size, nbytes, backward)
    return Kernel(f"{acl}_{type_}AiCore_{type_}", type_, "AI_VECTOR_CORE", inputs, outputs, work)


def prepare(eager: Eager, pixels: Tensor, picture: Picture, dtype: DType) -> Tensor:
    """Bytes of a picture become numbers around zero."""
    shape = (picture.batch, picture.channels, picture.size, picture.size)
    x = Tensor(shape, dtype, PLAIN)
    ops: list[tuple[str, str, str]] = [
        ("aten::_to_copy", "aclnnCast", "Cast"),
        ("aten::sub_", "aclnnInplaceSub", "Sub"),
        ("aten::div_", "aclnnInplaceDiv", "RealDiv"),
    ]
    scale = Tensor((1, picture.channels, 1, 1), dtype, PLAIN, persistent=True)
    for name, acl, type_ in ops:
        cast = type_ == "Cast"
        inputs = (pixels,) if cast else (x, scale)
        out = x if cast else x.view(*shape)
        eager.do(name, acl, vector(acl, type_, inputs, (out,)), scalars=1)
    return x


def sgd(weights: list[Tensor], gradients: list[Tensor], momenta: list[Tensor], *, fused: bool) -> list[Op]:
    """Stochastic gradient descent with weight decay and momentum: four kernels over all weights, as in
    docs/sources.md#recorded-alexnet-job, or over each weight by itself."""
    steps = (
        ("add", "AddList", (gradients, weights), gradients),
        ("mul", "MulScalar", (momenta,), momenta),
        ("add", "AddList", (momenta, gradients), momenta),
        ("add", "AddList", (weights, momenta), weights),
    )
    ops: list[Op] = []
    for name, kernel, sources, targets in steps:
        scalars = 0 if len(sources) > 1 else 1
        if fused:
            acl, type_ = f"aclnnForeach{kernel}V2", f"Foreach{kernel}"
            inputs = tuple(tensor for source in sources for tensor in source)
            outputs = tuple(tensor.view(*tensor.shape) for tensor in targets)
            launch = vector(acl, type_, inputs, outputs, infix=f"{type_}V2", share=0.06)
            ops.append(call(f"aten::_foreach_{name}_", acl, launch, scalars=scalars))
            continue
        acl, type_ = ("aclnnInplaceAdd", "Add") if name == "add" else ("aclnnInplaceMuls", "Mul")
        for index, target in enumerate(targets):
            inputs = tuple(source[index] for source in sources)
            launch = vector(acl, type_, inputs, (target.view(*target.shape),))
            ops.append(call(f"aten::{name}_", acl, launch, scalars=scalars))
    return ops
