"""Training of a small convolutional network with data-parallel ranks, as a program for the main thread of a rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Annotated

from pydantic import Field

from ..described import FROM_FILES, Natural, Positive, Share
from ..kernels import DType, Tensor, vector
from ..models.convolution import Convolution, Layers, Picture, fractal, plain, prepare, sgd
from ..models.eager import FP32, Eager, Pullback, call
from ..models.model import chosen
from ..program import (
    AwaitCommunication,
    Backward,
    Communicate,
    Enter,
    Instruction,
    Item,
    Leave,
    NextBatch,
    Node,
    Op,
)
from .buckets import Filling
from .communicator import Place
from .steps import program_of_steps
from .training import python

_CONVOLUTIONS = (
    Convolution(64, 7, 2, pooled=True),
    *(Convolution(128, 3),) * 4,
    Convolution(256, 3, 2),
    *(Convolution(256, 3),) * 5,
    Convolution(512, 3, 2),
    *(Convolution(512, 3),) * 4,
)


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """The convolutions, each with batch normalisation behind it, and a batch of pictures. 96 pictures keep all 24 cores
    of a chip equally busy."""

    __pydantic_config__ = FROM_FILES
    batch: Positive = 96
    size: Positive = 224
    convolutions: tuple[Convolution, ...] = _CONVOLUTIONS
    classes: Positive = 1000


@dataclass(frozen=True, slots=True)
class VisionTraining:
    """Training of a convolutional network.

    ``keeps_format``: tensors stay in the formats of the cube. ``fused_optimizer``: it updates all weights at once.
    Gradients are reduced in buckets of ``bucket_bytes`` as they become ready. ``reads_loss``: the loss
    is read back in every step, with ``loss_log_ns`` of Python behind it. ``gradient_norms``: norms of all gradients are
    worked out, which stay on the device; ``items_read``: the share of them that is read back one by one.
    """

    __pydantic_config__ = FROM_FILES
    shape: Annotated[NetworkShape, Field(alias="model")] = NetworkShape()
    steps: Positive = 4
    keeps_format: bool = True
    fused_optimizer: bool = True
    chained_share: Share = 1.0
    bucket_bytes: Natural = 4_000_000
    reads_loss: bool = False
    items_read: Share = 0.0
    gradient_norms: bool = False
    loss_log_ns: Natural = 120_000


class VisionLoop:
    """Writes the program of one rank."""

    dtype = DType.BF16

    def __init__(self, training: VisionTraining, place: Place, loading_ns: int) -> None:
        self._training = training
        self.group = place.gradients
        self._loading_ns = loading_ns
        self._sequence = count(1350)
        self._weights = dict(self._parameters())
        self._momenta = {name: weight.like() for name, weight in self._weights.items()}
        self._gradients: dict[str, Tensor] = {}

    def _parameters(self) -> list[tuple[str, Tensor]]:
        shape = self._training.shape
        channels = 3
        weights: list[tuple[str, Tensor]] = []
        for number, layer in enumerate(shape.convolutions):
            kept = self._training.keeps_format
            weight = (
                fractal(channels, layer, self.dtype, persistent=True) if kept else plain(channels, layer, self.dtype)
            )
            channels = layer.channels
            norm = (Tensor((channels,), self.dtype, persistent=True) for _ in range(2))
            weights += [(f"conv{number}", weight), *zip((f"bn{number}.gamma", f"bn{number}.beta"), norm, strict=True)]
        classes = Tensor((shape.classes, channels), self.dtype, persistent=True)
        bias = Tensor((shape.classes,), self.dtype, persistent=True)
        return [*weights, ("fc", classes), ("fc.bias", bias)]

    @property
    def resident_bytes(self) -> int:
        """Memory held before the first step: weights and momenta."""
        return 2 * sum(weight.nbytes for weight in self._weights.values())

    def program(self) -> list[Instruction]:
        """The instructions of all steps, with every tensor's last use known."""
        return program_of_steps([python("main.py(281): train")], self._training.steps, lambda _: self._step())

    def _step(self) -> list[Instruction]:
        training, shape = self._training, self._training.shape
        self._gradients.clear()
        picture = Picture(shape.batch, 3, shape.size)
        pixels = Tensor((shape.batch, 3, shape.size, shape.size), DType.UINT8, "NCHW")
        labels = Tensor((shape.batch,), DType.INT64, base=pixels)
        buckets = _Buckets(self)
        eager = Eager(self._weights, "", self._sequence.__next__, buckets)
        loss, backward = self._network(eager, pixels, picture, labels)
        backward()
        waits = [AwaitCommunication(reduction) for reduction in buckets.reductions]
        return [
            NextBatch(pixels, self._loading_ns),
            *eager.forward,
            python("torch/_tensor.py(492): backward"),
            Backward(tuple(eager.backward)),
            Leave(),
            *waits,
            *(self._norms() if training.gradient_norms or training.items_read else []),
            *([Item(loss, training.loss_log_ns)] if training.reads_loss else []),
            *self._optimizer(),
        ]

    def _network(
        self, eager: Eager, pixels: Tensor, picture: Picture, labels: Tensor
    ) -> tuple[Tensor, Callable[[], None]]:
        layers = Layers(eager, self.dtype, keeps_format=self._training.keeps_format)
        pullbacks: list[Pullback] = []
        x = prepare(eager, pixels, picture, self.dtype)
        eager.enter("nn.Module: ConvNet_0", "model.py(44): forward")
        for number, layer in enumerate(self._training.shape.convolutions):
            eager.enter(f"nn.Module: ConvBlock_{number}", "model.py(21): forward")
            x, back = layers.convolution(x, picture, layer, f"conv{number}", first=number == 0)
            pullbacks.append(back)
            picture = picture.halved(layer.stride, layer.channels)
            x, back = layers.normalise(x, picture, f"bn{number}")
            pullbacks.append(back)
            x, back = layers.relu(x)
            pullbacks.append(back)
            if layer.pooled:
                x, back = layers.pool(x, picture)
                pullbacks.append(back)
                picture = picture.halved(2)
            eager.leave()
        x, back = layers.average(x, picture)
        pullbacks.append(back)
        loss, classify_back = layers.classify(x, "fc", labels)
        eager.leave()

        def backward() -> None:
            gradient = classify_back(Tensor((), self.dtype, persistent=True))
            for back in reversed(pullbacks):
                gradient = back(gradient)

        return loss, backward

    def gradient_ready(self, name: str, gradient: Tensor) -> None:
        """Keep a finished gradient."""
        self._gradients[name] = gradient

    def bucket(self, names: tuple[str, ...]) -> Communicate:
        """The reduction of several gradients in one buffer."""
        assert self.group is not None
        elements = sum(self._gradients[name].nbytes for name in names) // self.dtype.size
        return self.group.collective("allReduce", Tensor((elements,), self.dtype, persistent=True))

    @property
    def bucket_bytes(self) -> int:
        """Gradients that are reduced together fill a buffer of this size."""
        return self._training.bucket_bytes

    last_weight = "conv0"
    """The weight whose gradient comes last."""

    def _norms(self) -> list[Instruction]:
        """The norm of every gradient, read back by itself or left on the device."""
        program: list[Instruction] = [python("main.py(233): log_gradients")]
        for place, gradient in enumerate(self._gradients.values()):
            norm = Tensor((), FP32)
            kernel = vector("aclnnLinalgVectorNorm", "LpNormV2", (gradient,), (norm,), share=0.35)
            program += [call("aten::linalg_vector_norm", "aclnnLinalgVectorNorm", kernel, scalars=4)]
            program += [Item(norm)] if chosen(place, self._training.items_read) else []
        return [*program, Leave()]

    def _optimizer(self) -> list[Instruction]:
        training = self._training
        apart = [
            not training.fused_optimizer and chosen(place, training.chained_share)
            for place in range(len(self._weights))
        ]
        ops: list[Op] = []
        for chained in (False, True):
            names = [name for name, alone in zip(self._weights, apart, strict=True) if alone == chained]
            if names:
                weights, gradients, momenta = (
                    [tensors[name] for name in names] for tensors in (self._weights, self._gradients, self._momenta)
                )
                ops += sgd(weights, gradients, momenta, fused=not chained)
        return [Enter("Optimizer.step#SGD.step"), python("torch/optim/sgd.py(66): step"), *ops, Leave(), Leave()]


class _Buckets:
    """Sees the gradients of one backward pass and reduces them as buckets fill up."""

    def __init__(self, loop: VisionLoop) -> None:
        self._loop = loop
        self._filling = Filling[str](loop.bucket_bytes)
        self.reductions: list[Communicate] = []

    def __call__(self, name: str, gradient: Tensor) -> list[Instruction]:
        self._loop.gradient_ready(name, gradient)
        program: list[Instruction] = [
            Node("torch::autograd::AccumulateGrad", -1, (Op("aten::detach", (gradient,), None),))
        ]
        if self._loop.group is None:
            return program
        full = self._filling.add(self._loop.group, name, gradient.nbytes)
        if name == self._loop.last_weight:
            full += self._filling.close()
        for names in full:
            reduction = self._loop.bucket(names)
            program.append(reduction)
            self.reductions.append(reduction)
        return program
