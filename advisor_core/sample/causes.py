"""Causes of lost time: each is a switch with a size that makes a healthy job worse, and whose absence is its cure.

A cause knows nothing about rules. Sizes come from real profiles and published figures: a remark such as
``docs/sources.md#task-queue`` names the source, and "assumed" says that there is none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from .loops.reinforcement import Reinforcement
from .loops.serving import Serving
from .loops.training import Training
from .loops.vision import VisionTraining
from .models.model import Implementation
from .setup import Dispatch, Setup


@dataclass(frozen=True, slots=True)
class Cause(ABC):
    """One cause."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A name that is unique in the catalogue."""

    @property
    @abstractmethod
    def cure(self) -> str:
        """The change that removes the cause."""

    @abstractmethod
    def afflict(self, setup: Setup) -> Setup:
        """The same job with this cause."""

    def remedy(self, setup: Setup) -> Setup:
        """The job as the cure leaves it: without the cause, but with what stays of it."""
        return setup

    @property
    def where(self) -> tuple[int, ...]:
        """The ranks that have it, empty for all."""
        return ()

    @property
    def risk(self) -> bool:
        """Whether it must be found even where it costs no time: it makes the job fail sooner or later."""
        return False


class CauseOnRanks(Cause):
    """A cause that is on some ranks: its field ``ranks``, empty for all."""

    __slots__ = ()
    ranks: tuple[int, ...]

    @property
    def where(self) -> tuple[int, ...]:
        return self.ranks


def _host(setup: Setup, **changes: int) -> Setup:
    return replace(setup, host=replace(setup.host, **changes))


def _train(setup: Setup, **changes: object) -> Setup:
    return replace(setup, training=replace(setup.training, **changes))  # type: ignore[arg-type]


def _write(setup: Setup, **changes: object) -> Setup:
    implementation: Implementation = replace(_model(setup).implementation, **changes)  # type: ignore[arg-type]
    return _train(setup, implementation=implementation)


def _shape(setup: Setup, **changes: int) -> Setup:
    return _train(setup, shape=replace(_model(setup).shape, **changes))


def _model(setup: Setup) -> Training | Serving | Reinforcement:
    """A job with a transformer."""
    if isinstance(setup.training, VisionTraining):
        raise ValueError("a convolutional network does not have what this cause changes")
    return setup.training


# --- host ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlowHost(Cause):
    """One layer of dispatch costs more per operator. Real forward operators take 200-500 us with stacks, shapes and
    memory recorded (docs/sources.md#recorded-alexnet-job)."""

    layer: Literal["python", "framework", "runtime"]
    ns: int

    @property
    def name(self) -> str:
        return f"slow-{self.layer}"

    @property
    def cure(self) -> str:
        return {
            "python": "less Python per operator",
            "framework": "bound threads, fewer checks, graph mode",
            "runtime": "bound CANN thread, cached workspace and tiling",
        }[self.layer]

    def afflict(self, setup: Setup) -> Setup:
        if self.layer == "framework":
            return _host(setup, operator=self.ns, autograd=self.ns)
        if self.layer == "runtime":
            return _host(setup, cann=self.ns)
        return _host(setup, python=self.ns)


@dataclass(frozen=True, slots=True)
class SlowDispatch(Cause):
    """Every layer of dispatch at the cost of an untuned job (docs/sources.md#recorded-alexnet-job)."""

    name: ClassVar[str] = "slow-host-dispatch"
    cure: ClassVar[str] = "bound threads, fewer recorded options, graph mode"

    python: int = 56_000
    operator: int = 82_000
    autograd: int = 26_000

    def afflict(self, setup: Setup) -> Setup:
        return _host(setup, python=self.python, operator=self.operator, autograd=self.autograd)


@dataclass(frozen=True, slots=True)
class TaskQueueOff(Cause):
    """TASK_QUEUE_ENABLE=0: the thread that runs the model also calls CANN (docs/sources.md#task-queue)."""

    name: ClassVar[str] = "task-queue-off"
    cure: ClassVar[str] = "TASK_QUEUE_ENABLE=1"

    def afflict(self, setup: Setup) -> Setup:
        return replace(setup, dispatch=replace(setup.dispatch, task_queue=False))


@dataclass(frozen=True, slots=True)
class WorkspaceOnMainThread(Cause):
    """TASK_QUEUE_ENABLE=1 where the host only just keeps up with 2: the thread that runs the model also works out the
    workspace of its operators (docs/sources.md#task-queue)."""

    name: ClassVar[str] = "workspace-on-main-thread"
    cure: ClassVar[str] = "TASK_QUEUE_ENABLE=2"

    def afflict(self, setup: Setup) -> Setup:
        return replace(setup, dispatch=replace(setup.dispatch, queued_workspace=False))


@dataclass(frozen=True, slots=True)
class LaunchBlocking(Cause):
    """ASCEND_LAUNCH_BLOCKING=1: every operator waits for its kernels, and there is no task queue
    (docs/sources.md#launch-blocking)."""

    name: ClassVar[str] = "launch-blocking"
    cure: ClassVar[str] = "ASCEND_LAUNCH_BLOCKING=0"

    def afflict(self, setup: Setup) -> Setup:
        variables = (*setup.variables, ("ASCEND_LAUNCH_BLOCKING", "1"))
        return replace(setup, dispatch=Dispatch(task_queue=False, blocking=True), variables=variables)


@dataclass(frozen=True, slots=True)
class FrequentItem(Cause):
    """The loss of every micro-batch and the norm of every gradient are read back with ``.item()``, and Python works
    on the loss for ``log_ns`` before it goes on."""

    name: ClassVar[str] = "item-synchronisation"
    cure: ClassVar[str] = "keep the norms on the device, read the loss once per step"

    log_ns: int = 900_000

    def afflict(self, setup: Setup) -> Setup:
        return _train(setup, item_per_parameter=True, reads_loss=True, loss_log_ns=self.log_ns)

    def remedy(self, setup: Setup) -> Setup:
        return _train(setup, gradient_norms=True)


@dataclass(frozen=True, slots=True)
class SynchronousSampling(Cause):
    """A serving step waits for its tokens before the next one is scheduled
    (docs/sources.md#asynchronous-scheduling)."""

    name: ClassVar[str] = "synchronous-sampling"
    cure: ClassVar[str] = "asynchronous scheduling"

    def afflict(self, setup: Setup) -> Setup:
        return _train(setup, waits_for_tokens=True)


@dataclass(frozen=True, slots=True)
class SlowLoader(CauseOnRanks):
    """The data loader needs ``loading_ns`` for a batch; more than 10 ms is a problem
    (docs/sources.md#slow-data-loader)."""

    name: ClassVar[str] = "slow-data-loader"
    cure: ClassVar[str] = "more workers, pinned memory, prefetching"

    loading_ns: int
    ranks: tuple[int, ...] = ()

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, loading_ns=self.loading_ns)


@dataclass(frozen=True, slots=True)
class GarbageCollection(Cause):
    """Python collects garbage for ``pause_ns`` every ``operators`` operators. A collection of the oldest generation
    takes tens to hundreds of ms where many objects live (docs/sources.md#garbage-collection)."""

    cure: ClassVar[str] = "gc.freeze() after building the model, gc.disable() in the loop"

    operators: int
    pause_ns: int
    recorded: bool

    @property
    def name(self) -> str:
        return "garbage-collection" if self.recorded else "unrecorded-garbage-collection"

    def afflict(self, setup: Setup) -> Setup:
        changed = _host(setup, gc_every=self.operators, gc_pause=self.pause_ns)
        return replace(changed, gc_threshold_ms=1.0 if self.recorded else None)


@dataclass(frozen=True, slots=True)
class AllocatorChurn(Cause):
    """Tensors of at least ``nbytes`` are taken from the driver and given back to it each time, as when the cache of
    the allocator is emptied or disabled. 400 us per call: assumed."""

    name: ClassVar[str] = "allocator-churn"
    cure: ClassVar[str] = "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True, no empty_cache()"

    nbytes: int = 40 << 20
    call_ns: int = 400_000

    def afflict(self, setup: Setup) -> Setup:
        return _host(setup, malloc_bytes=self.nbytes, malloc_ns=self.call_ns)


@dataclass(frozen=True, slots=True)
class OnlineCompilation(Cause):
    """Splits and concatenations go through the operator compiler at each call (docs/sources.md#online-compilation)."""

    name: ClassVar[str] = "online-compilation"
    cure: ClassVar[str] = "set_compile_mode(jit_compile=False), binary operators"

    def afflict(self, setup: Setup) -> Setup:
        return _write(setup, compiled_concat=True)


# --- model code and shapes -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unfused(Cause):
    """A part of the model is written out as a chain of operators (docs/sources.md#fused-operators)."""

    cure: ClassVar[str] = "the fused operator"

    part: Literal["rms-norm", "swiglu", "rotary", "cross-entropy", "optimizer"]

    @property
    def name(self) -> str:
        return f"unfused-{self.part}"

    def afflict(self, setup: Setup) -> Setup:
        if self.part == "optimizer":
            return _train(setup, fused_optimizer=False)
        switch = {
            "rms-norm": "fused_norm",
            "swiglu": "fused_swiglu",
            "rotary": "fused_rotary",
            "cross-entropy": "fused_loss",
        }[self.part]
        return _write(setup, **{switch: False})


@dataclass(frozen=True, slots=True)
class UnalignedVocabulary(Cause):
    """The rows of the output projection are no multiple of 512 bytes (docs/sources.md#unaligned-product)."""

    name: ClassVar[str] = "unaligned-vocabulary"
    cure: ClassVar[str] = "pad the vocabulary to a multiple of 256"

    vocab: int = 50257

    def afflict(self, setup: Setup) -> Setup:
        return _shape(setup, vocab=self.vocab)


@dataclass(frozen=True, slots=True)
class SixteenKibTail(Cause):
    """The rows of the second feed-forward product are a multiple of 16 KiB (docs/sources.md#tail-axis; the size of
    the effect is assumed, see `chip.STRIDED_SLOWDOWN`). The healthy width differs by one tile."""

    name: ClassVar[str] = "tail-of-16-kib"
    cure: ClassVar[str] = "another feed-forward width or tensor-parallel split"

    ffn: int = 8192

    def afflict(self, setup: Setup) -> Setup:
        return _shape(setup, ffn=self.ffn)


@dataclass(frozen=True, slots=True)
class SmallMatmuls(Cause):
    """Query, key and value are three products of one input (docs/sources.md#products-of-one-input)."""

    name: ClassVar[str] = "small-matmuls-on-one-input"
    cure: ClassVar[str] = "one merged weight"

    def afflict(self, setup: Setup) -> Setup:
        return _write(setup, merged_qkv=False)


@dataclass(frozen=True, slots=True)
class PrivateFormat(Cause):
    """Weights are kept in ND and converted to the cube's format before each product, and gradients back
    (``allow_internal_format``, docs/sources.md#internal-format)."""

    name: ClassVar[str] = "format-conversions"
    cure: ClassVar[str] = "torch_npu.npu.config.allow_internal_format = False"

    def afflict(self, setup: Setup) -> Setup:
        return _write(setup, private_format=True)


@dataclass(frozen=True, slots=True)
class SinglePrecision(Cause):
    """The model runs in FP32, at the rate of a recorded MatMulV3 and Conv2D (docs/sources.md#peak-of-the-cube)."""

    name: ClassVar[str] = "fp32-where-bf16-would-do"
    cure: ClassVar[str] = "autocast to bfloat16"

    def afflict(self, setup: Setup) -> Setup:
        return _write(setup, single_precision=True)


@dataclass(frozen=True, slots=True)
class AiCpuOperator(Cause):
    """An operator of each micro-batch has no kernel for the cores and runs on the AI CPU for ``ns`` (duration
    assumed), as sort, unique and repeat_interleave on int64 do (docs/sources.md#ai-cpu-operators)."""

    name: ClassVar[str] = "ai-cpu-operator"
    cure: ClassVar[str] = "another element type or operator"

    ns: int = 3_000_000

    def afflict(self, setup: Setup) -> Setup:
        return _train(setup, ai_cpu_ns=self.ns)


@dataclass(frozen=True, slots=True)
class ConvertedPictures(Cause):
    """Activations and weights are NCHW, and every convolution and pooling converts what it reads and writes, as 57
    conversions do for 16 % of the computing of a recorded job (docs/sources.md#recorded-alexnet-job)."""

    name: ClassVar[str] = "convolution-format-conversions"
    cure: ClassVar[str] = "torch_npu.npu.config.allow_internal_format = True"

    def afflict(self, setup: Setup) -> Setup:
        return _train(setup, keeps_format=False)


# --- communication -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoOverlap(Cause):
    """Gradients are reduced after the backward pass."""

    name: ClassVar[str] = "communication-not-overlapped"
    cure: ClassVar[str] = "reduce each bucket as soon as it is full"

    def afflict(self, setup: Setup) -> Setup:
        return _train(setup, overlapped_buckets=False)


@dataclass(frozen=True, slots=True)
class SmallBuckets(Cause):
    """Gradients are reduced one by one, or in buckets of ``bucket_bytes``."""

    name: ClassVar[str] = "small-communication-packets"
    cure: ClassVar[str] = "buckets of tens of MB"

    bucket_bytes: int = 0

    def afflict(self, setup: Setup) -> Setup:
        return _train(setup, bucket_bytes=self.bucket_bytes)


@dataclass(frozen=True, slots=True)
class SlowLink(Cause):
    """The link between two ranks has a fraction of its bandwidth."""

    name: ClassVar[str] = "slow-link"
    cure: ClassVar[str] = "repair the link"

    pair: tuple[int, int]
    factor: float

    def afflict(self, setup: Setup) -> Setup:
        return replace(setup, slow_pairs=(*setup.slow_pairs, (*self.pair, self.factor)))


@dataclass(frozen=True, slots=True)
class SlowNetwork(Cause):
    """Every link has the bandwidth of one 200 Gb/s adapter that several devices share (docs/sources.md#links)."""

    name: ClassVar[str] = "slow-network"
    cure: ClassVar[str] = "ranks of one group within a server"

    bytes_per_s: float = 3e9

    def afflict(self, setup: Setup) -> Setup:
        return replace(setup, link=replace(setup.link, bytes_per_s=self.bytes_per_s))


# --- layout ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EvenLayers(Cause):
    """The layers are spread evenly over the stages of the pipeline, although the last one has the output projection
    and the loss as well: in a real job it computes 1.73 times as long as the first (docs/sources.md#last-stage)."""

    name: ClassVar[str] = "pipeline-stage-imbalance"
    cure: ClassVar[str] = "fewer layers on the last stage"

    layers: tuple[int, ...]

    def afflict(self, setup: Setup) -> Setup:
        return _train(setup, stage_layers=self.layers)


@dataclass(frozen=True, slots=True)
class FewMicroBatches(Cause):
    """The samples of a step come in ``fewer`` times fewer micro-batches, each as many times larger: of the
    ``stages - 1 + micro_batches`` slots of a pipeline ``stages - 1`` are empty (docs/sources.md#pipeline-bubble)."""

    name: ClassVar[str] = "pipeline-bubble"
    cure: ClassVar[str] = "more and smaller micro-batches, interleaved stages"

    fewer: int

    def afflict(self, setup: Setup) -> Setup:
        larger = _shape(setup, batch=setup.training.shape.batch * self.fewer)
        assert isinstance(setup.training, Training)
        return _train(larger, micro_batches=setup.training.micro_batches // self.fewer)


@dataclass(frozen=True, slots=True)
class HotExperts(Cause):
    """The experts of one rank get ``load`` times as many tokens as those of each of the others (size assumed: no
    figures are published; docs/sources.md#expert-imbalance names the sign, GroupedMatmul by rank)."""

    name: ClassVar[str] = "expert-imbalance"
    cure: ClassVar[str] = "a balancing loss, redundant or relocated experts"

    load: float
    rank: int

    @property
    def where(self) -> tuple[int, ...]:
        return (self.rank,)

    def afflict(self, setup: Setup) -> Setup:
        group = setup.arrangement.group(self.rank, "expert")
        assert group is not None
        hot = group.local(self.rank)
        return _train(setup, expert_load=tuple(self.load if at == hot else 1.0 for at in range(len(group.ranks))))


# --- one rank ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ThrottledClock(CauseOnRanks):
    """The chip of some ranks, or of all, runs at a lower clock (docs/sources.md#falling-clock)."""

    name: ClassVar[str] = "throttled-clock"
    cure: ClassVar[str] = "cooling, power limit"

    mhz: int
    ranks: tuple[int, ...] = ()

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, mhz=self.mhz)


@dataclass(frozen=True, slots=True)
class ClockDrops(CauseOnRanks):
    """The clock falls to ``mhz`` when the profile has run for ``after_ns`` and stays there, as when the chip has become
    hot (docs/sources.md#falling-clock)."""

    name: ClassVar[str] = "clock-drops"
    cure: ClassVar[str] = "cooling, power limit"

    mhz: int
    after_ns: int
    ranks: tuple[int, ...] = ()

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, falls_to_mhz=self.mhz, falls_after_ns=self.after_ns)


@dataclass(frozen=True, slots=True)
class SlowHostOfRank(CauseOnRanks):
    """The host of some ranks is slower by a factor, as when other processes take its cores
    (docs/sources.md#threads-that-lose-their-core)."""

    name: ClassVar[str] = "slow-host-of-a-rank"
    cure: ClassVar[str] = "bind the threads, free the cores"

    factor: float
    ranks: tuple[int, ...]

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, host_factor=self.factor)


@dataclass(frozen=True, slots=True)
class DataImbalance(CauseOnRanks):
    """Some ranks get more samples than the others (docs/sources.md#data-imbalance)."""

    name: ClassVar[str] = "data-parallel-imbalance"
    cure: ClassVar[str] = "balance samples by tokens"

    load: float
    ranks: tuple[int, ...]

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, load=self.load)


# --- reinforcement learning ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LongTailRollout(CauseOnRanks):
    """The longest responses of some ranks are longer by a factor; the others wait for them
    (docs/sources.md#long-responses; the factor is assumed)."""

    name: ClassVar[str] = "long-tail-rollout"
    cure: ClassVar[str] = "balance prompts by expected length, partial or asynchronous rollout"

    longest: float
    ranks: tuple[int, ...]

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, longest=self.longest)


@dataclass(frozen=True, slots=True)
class SlowReward(Cause):
    """The reward function takes ``ns`` on the host, and the devices have nothing to do meanwhile (size assumed)."""

    name: ClassVar[str] = "slow-reward"
    cure: ClassVar[str] = "reward in parallel processes, or while responses are still being generated"

    ns: int

    def afflict(self, setup: Setup) -> Setup:
        return _train(setup, reward_ns=self.ns)


@dataclass(frozen=True, slots=True)
class SlowRollout(Cause):
    """The inference engine runs its model operator by operator and spends ``ns`` of Python before each of them
    (``enforce_eager``, docs/sources.md#eager-decode; size: forward operators of
    docs/sources.md#recorded-alexnet-job)."""

    name: ClassVar[str] = "slow-rollout"
    cure: ClassVar[str] = "graph mode for decode"

    ns: int = 180_000

    def afflict(self, setup: Setup) -> Setup:
        return _train(setup, engine_ns=self.ns)


# --- memory --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MemoryNearTheLimit(Cause):
    """Other weights stay on the device, such as those of a reference model, and leave little room. Where the sizes of
    tensors vary the allocator then has to give its cache back to the driver and ask again, while the device waits."""

    name: ClassVar[str] = "memory-near-the-limit"
    cure: ClassVar[str] = "weights that are not in use offloaded, a smaller batch, recomputation"
    risk: ClassVar[bool] = True

    held: int

    def afflict(self, setup: Setup) -> Setup:
        return replace(setup, memory=replace(setup.memory, held=self.held))


@dataclass(frozen=True, slots=True)
class Fragmentation(Cause):
    """Segments that cannot grow, for tensors whose sizes vary from step to step: what is free fits less and less."""

    name: ClassVar[str] = "fragmentation"
    cure: ClassVar[str] = "PYTORCH_NPU_ALLOC_CONF=expandable_segments:True"
    risk: ClassVar[bool] = True

    def afflict(self, setup: Setup) -> Setup:
        others = tuple(variable for variable in setup.variables if variable[0] != "PYTORCH_NPU_ALLOC_CONF")
        return replace(setup, memory=replace(setup.memory, expandable=False), variables=others)


@dataclass(frozen=True, slots=True)
class Leak(Cause):
    """The loop keeps a reference to the hidden state of every micro-batch, for a statistic that nobody reads."""

    name: ClassVar[str] = "leak"
    cure: ClassVar[str] = "keep numbers, not tensors"
    risk: ClassVar[bool] = True

    def afflict(self, setup: Setup) -> Setup:
        return _train(setup, keeps_hidden=True)
