"""Causes in the code of the model, its shapes, element types and formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..described import Natural, Positive
from ..loops.recorded import RecordedTraining
from ..models.recorded import Part
from ..setup import Recorded, Setup
from .cause import Cause, change_code, change_shape, change_work, transformer

_SWITCHES = {
    "rms-norm": "fused_norm",
    "swiglu": "fused_swiglu",
    "rotary": "fused_rotary",
    "cross-entropy": "fused_loss",
}
"""The switches that turn them on in the models of the simulator."""

_RECORDED: dict[str, Part] = {
    "rms-norm": "norm",
    "rotary": "rotary",
    "swiglu": "swiglu",
    "experts": "experts",
    "attention": "attention",
    "optimizer": "optimizer",
    "cache-write": "cache",
    "sampling": "sampling",
    "group-norm": "group-norm",
    "geglu": "geglu",
}
"""The parts of recorded programs by the names of causes."""


@dataclass(frozen=True, slots=True)
class CauseInLayers(Cause):
    """Code of the layers of a transformer: the dose is the share of the layers that have it."""

    def in_layers(self, setup: Setup, **switches: bool) -> Setup:
        """The job with these switches in as many layers as the dose says, spread evenly."""
        if self.dose == 1:
            return change_code(setup, **switches)
        old = transformer(setup).implementation.partly
        return change_code(setup, partly=(*old, *((name, on, self.dose) for name, on in switches.items())))


@dataclass(frozen=True, slots=True)
class Unfused(CauseInLayers):
    """A part of the model is written out as a chain of operators (docs/sources.md#fused-operators). The dose is the
    share of the layers, for the optimizer that of the weights; a micro-batch has only one cross-entropy. Experts,
    attention, writes into a cache, sampling, GroupNorm with SiLU and GeGLU are written out in recorded programs only,
    and there each is there or not."""

    cure: ClassVar[str] = "the fused operator"

    what: Literal[
        "rms-norm",
        "swiglu",
        "rotary",
        "cross-entropy",
        "optimizer",
        "experts",
        "attention",
        "cache-write",
        "sampling",
        "group-norm",
        "geglu",
    ]

    @property
    def name(self) -> str:
        return f"unfused-{self.what}"

    @property
    def divisible(self) -> bool:
        return self.what in ("rms-norm", "swiglu", "rotary", "optimizer")

    def afflict(self, setup: Setup) -> Setup:
        if isinstance(setup.training, Recorded):
            return self._in_recorded(setup, setup.training)
        if self.what == "optimizer":
            if self.dose == 1:
                return change_work(setup, fused_optimizer=False)
            return change_work(setup, fused_optimizer=False, chained_share=self.dose)
        if self.what not in _SWITCHES:
            raise ValueError(f"{self.what} can be written out in recorded programs only")
        return self.in_layers(setup, **{_SWITCHES[self.what]: False})

    def _in_recorded(self, setup: Setup, work: Recorded) -> Setup:
        part = _RECORDED.get(self.what)
        if part is None or self.dose != 1:
            raise ValueError("of a recorded program only whole parts that were recorded fused as well are written out")
        return change_work(setup, written_out=(*work.written_out, part))


@dataclass(frozen=True, slots=True)
class UnalignedVocabulary(Cause):
    """The rows of the output projection are no multiple of 512 bytes (docs/sources.md#unaligned-product)."""

    name: ClassVar[str] = "unaligned-vocabulary"
    cure: ClassVar[str] = "pad the vocabulary to a multiple of 256"

    vocab: Positive = 50257

    def afflict(self, setup: Setup) -> Setup:
        return change_shape(setup, vocab=self.vocab)


@dataclass(frozen=True, slots=True)
class SixteenKibTail(Cause):
    """The rows of the second feed-forward product are a multiple of 16 KiB (docs/sources.md#tail-axis; the size of
    the effect is assumed, see `chip.STRIDED_SLOWDOWN`). The healthy width differs by one tile."""

    name: ClassVar[str] = "tail-of-16-kib"
    cure: ClassVar[str] = "another feed-forward width or tensor-parallel split"

    ffn: Positive = 8192

    def afflict(self, setup: Setup) -> Setup:
        return change_shape(setup, ffn=self.ffn)


@dataclass(frozen=True, slots=True)
class SmallMatmuls(CauseInLayers):
    """Query, key and value are three products of one input (docs/sources.md#products-of-one-input). The dose
    is the share of the layers."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "small-matmuls-on-one-input"
    cure: ClassVar[str] = "one merged weight"

    def afflict(self, setup: Setup) -> Setup:
        return self.in_layers(setup, merged_qkv=False)


@dataclass(frozen=True, slots=True)
class PrivateFormat(Cause):
    """Weights are kept in ND and converted to the cube's format before each product, and gradients back
    (``allow_internal_format``, docs/sources.md#internal-format)."""

    name: ClassVar[str] = "format-conversions"
    cure: ClassVar[str] = "torch_npu.npu.config.allow_internal_format = False"

    def afflict(self, setup: Setup) -> Setup:
        return change_code(setup, private_format=True)


@dataclass(frozen=True, slots=True)
class SinglePrecision(Cause):
    """The model runs in FP32, at the rate of a recorded MatMulV3 and Conv2D (docs/sources.md#peak-of-the-cube)."""

    name: ClassVar[str] = "fp32-where-bf16-would-do"
    cure: ClassVar[str] = "autocast to bfloat16"

    def afflict(self, setup: Setup) -> Setup:
        return change_code(setup, single_precision=True)


@dataclass(frozen=True, slots=True)
class AiCpuOperator(Cause):
    """An operator of each micro-batch has no kernel for the cores and runs on the AI CPU for ``ns`` (duration
    assumed), as sort, unique and repeat_interleave on int64 do (docs/sources.md#ai-cpu-operators)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "ai-cpu-operator"
    cure: ClassVar[str] = "another element type or operator"

    ns: Natural = 3_000_000

    def afflict(self, setup: Setup) -> Setup:
        return change_work(setup, ai_cpu_ns=self.part(0, self.ns))


@dataclass(frozen=True, slots=True)
class ConvertedPictures(Cause):
    """Activations and weights are NCHW, and every convolution and pooling converts what it reads and writes, as 57
    conversions do for 16 % of the computing of a recorded job (docs/sources.md#recorded-alexnet-job)."""

    name: ClassVar[str] = "convolution-format-conversions"
    cure: ClassVar[str] = "torch_npu.npu.config.allow_internal_format = True"

    def afflict(self, setup: Setup) -> Setup:
        if isinstance(setup.training, RecordedTraining):
            return change_work(setup, written_out=(*setup.training.written_out, "formats"))
        return change_work(setup, keeps_format=False)
