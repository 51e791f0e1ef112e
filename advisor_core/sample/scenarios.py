"""The scenarios a sample can show: a healthy job, and the causes that make it lose time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from .causes import (
    AiCpuOperator,
    AllocatorChurn,
    Cause,
    ClockDrops,
    ConvertedPictures,
    DataImbalance,
    EvenLayers,
    FewMicroBatches,
    Fragmentation,
    FrequentItem,
    GarbageCollection,
    HotExperts,
    LaunchBlocking,
    Leak,
    LongTailRollout,
    MemoryNearTheLimit,
    NoOverlap,
    OnlineCompilation,
    PrivateFormat,
    SinglePrecision,
    SixteenKibTail,
    SlowDispatch,
    SlowHost,
    SlowHostOfRank,
    SlowLink,
    SlowLoader,
    SlowNetwork,
    SlowReward,
    SlowRollout,
    SmallBuckets,
    SmallMatmuls,
    SynchronousSampling,
    TaskQueueOff,
    ThrottledClock,
    UnalignedVocabulary,
    Unfused,
    WorkspaceOnMainThread,
)
from .layout import Layout
from .loops.reinforcement import Reinforcement
from .loops.serving import Serving
from .loops.training import Training
from .loops.vision import NetworkShape, VisionTraining
from .machine.allocator import MIB, WHOLE_DEVICE, DeviceMemory
from .machine.context import HostCosts
from .models.model import Implementation, ModelShape
from .setup import Dispatch, RankSetup, Setup, Work

Headers = Literal["2024", "2025"]
"""Generation of the export: lanes and cores called HCCL, or Communication with a Device_id column
(docs/sources.md#two-generations-of-exports)."""


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence in the two languages of the reports."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """A job to simulate: the healthy ``job``, and the ``causes`` that it suffers from."""

    name: str
    description: Text
    headers: Headers
    job: Setup
    causes: tuple[Cause, ...] = ()
    first_device: int = 0

    @property
    def setup(self) -> Setup:
        """The job with all its causes."""
        setup = self.job
        for cause in self.causes:
            setup = cause.afflict(setup)
        return setup

    @property
    def problems(self) -> tuple[str, ...]:
        """The names of the causes."""
        return tuple(cause.name for cause in self.causes)

    @property
    def training(self) -> Work:
        """The model and loop of the job, with all causes."""
        return self.setup.training

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.job.ranks)

    @property
    def steps(self) -> int:
        """Number of profiled steps."""
        return self.job.training.steps

    def cured(self, cause: Cause) -> Scenario:
        """The same job without one of its causes. Raises :class:`ValueError` if it does not have it."""
        if cause not in self.causes:
            raise ValueError(f"scenario {self.name!r} does not have the cause {cause.name!r}")
        others = tuple(other for other in self.causes if other != cause)
        return replace(self, job=cause.remedy(self.job), causes=others)


_FUSED = Implementation(
    fused_norm=True, fused_rotary=True, fused_swiglu=True, fused_loss=True, merged_qkv=True, compiled_concat=False
)
# 50432 = 197 x 256: rows of 100,864 bytes, a multiple of 512 and not of 16384.
_TUNED_LOOP = Training(
    ModelShape(vocab=50432),
    _FUSED,
    steps=2,
    micro_batches=4,
    fused_optimizer=True,
    overlapped_buckets=True,
    item_per_parameter=False,
    loss_log_ns=120_000,
)
# Kernels of tens of us: the host must be quick, and communication is a large part of a step.
_COMPACT_SHAPE = ModelShape(layers=6, hidden=1024, heads=8, kv_heads=4, ffn=2816, vocab=32000, sequence=1024, batch=8)
_COMPACT_LOOP = replace(_TUNED_LOOP, shape=_COMPACT_SHAPE, micro_batches=2, steps=3, reads_loss=False)
# A tuned job binds its threads and records less than the usual options: its operators cost 10 to 15 us each.
_FAST_HOST = HostCosts(python=11_000, operator=13_000, autograd=11_000)


def _job(loop: Work, ranks: int) -> Setup:
    return Setup(loop, _FAST_HOST, (RankSetup(),) * ranks)


_DENSE_ONE, _DENSE_TWO = (_job(_TUNED_LOOP, ranks) for ranks in (1, 2))
_COMPACT_ONE, _COMPACT_TWO, _COMPACT_FOUR, _COMPACT_EIGHT = (_job(_COMPACT_LOOP, ranks) for ranks in (1, 2, 4, 8))


def _arranged(loop: Training, layout: Layout) -> Setup:
    return replace(_job(loop, layout.ranks), layout=layout)


# Output projection and loss of this vocabulary take as long as three layers.
_STAGED_SHAPE = ModelShape(
    layers=13, hidden=4096, heads=32, kv_heads=8, ffn=11264, vocab=153_600, sequence=4096, batch=1
)
_PIPELINE_LOOP = replace(
    _TUNED_LOOP, shape=_STAGED_SHAPE, micro_batches=48, reads_loss=False, stage_layers=(4, 4, 4, 1)
)
_PIPELINE_FOUR = _arranged(_PIPELINE_LOOP, Layout(pipeline=4))
# With a third of the vocabulary that is one layer.
_TWO_STAGES = replace(
    _PIPELINE_LOOP, shape=replace(_STAGED_SHAPE, layers=9, vocab=51_200), micro_batches=12, stage_layers=(5, 4)
)
_PIPELINE_TWO = _arranged(_TWO_STAGES, Layout(data=2, pipeline=2, batched=False))
# Samples of all lengths: those of a step are padded to the longest of them.
_LENGTHS = (928, 960, 896, 944, 976, 912, 992, 1008, 864, 1024)
_VARYING = replace(
    _COMPACT_ONE,
    training=replace(_COMPACT_LOOP, lengths=_LENGTHS, steps=len(_LENGTHS)),
    memory=DeviceMemory(expandable=True),
    variables=(("PYTORCH_NPU_ALLOC_CONF", "expandable_segments:True"),),
)


def _all_but(nbytes: int) -> MemoryNearTheLimit:
    """Weights that leave so much of a device to a job on one rank."""
    return MemoryNearTheLimit(WHOLE_DEVICE.room(ranks=1) - nbytes)


# Wide layers, each shared by the two dies of a module.
_WIDE_SHAPE = ModelShape(layers=2, hidden=12288, heads=96, kv_heads=8, ffn=28672, vocab=33_280, sequence=4096, batch=2)
_TENSOR_FOUR = _arranged(
    replace(_TUNED_LOOP, shape=_WIDE_SHAPE, micro_batches=6, reads_loss=False), Layout(data=2, tensor=2, paired=True)
)
# Layers as in Mixtral 8x7B, whose wide experts have much to do for each token that is sent to them, and a shared expert
# that computes while the tokens travel.
_EXPERT_SHAPE = ModelShape(
    layers=2,
    hidden=4096,
    heads=32,
    kv_heads=8,
    ffn=14336,
    vocab=32_000,
    sequence=4096,
    batch=2,
    experts=8,
    shared_ffn=7168,
)
_EXPERTS_FOUR = _arranged(
    replace(_TUNED_LOOP, shape=_EXPERT_SHAPE, micro_batches=4, reads_loss=False), Layout(data=4, expert=4)
)
# The layers of a model of 14 billion weights; few of them, as they are all alike.
# 24 tiles of 256 columns, or a multiple: every core has as much to do as the others.
_SERVED_SHAPE = ModelShape(layers=6, hidden=6144, heads=48, kv_heads=8, ffn=12288, vocab=36864, sequence=1, batch=64)
_DECODE = replace(
    _job(Serving(_SERVED_SHAPE, _FUSED, steps=4, cached=2_048), 1), ranks=(RankSetup(loading_ns=150_000),)
)
_PREFILL = replace(
    _DECODE,
    training=Serving(replace(_SERVED_SHAPE, sequence=2_048, batch=4), _FUSED, steps=2, cached=0),
)
# Responses of one length on all ranks; wide layers, so that a pass over 32 requests keeps the device busy. No axis is a
# multiple of 16 KiB.
_RL_SHAPE = replace(_SERVED_SHAPE, layers=2, kv_heads=6, ffn=12032, vocab=18432, sequence=256, batch=32)
_RL_LOOP = Reinforcement(_RL_SHAPE, _FUSED, steps=2, micro_batches=1, response=80, reward_ns=2_500_000)
_RL_TWO, _RL_FOUR = (_job(_RL_LOOP, ranks) for ranks in (2, 4))
# Operators with which the host keeps ahead of the device only once their workspace is queued as well.
_BUSY_HOST = replace(
    _COMPACT_ONE,
    host=replace(_FAST_HOST, operator=110_000, autograd=110_000),
    dispatch=Dispatch(queued_workspace=True),
)
_CNN_ONE, _CNN_TWO, _CNN_FOUR = (_job(VisionTraining(NetworkShape(), steps=4), ranks) for ranks in (1, 2, 4))

_MEMBERS = (
    Scenario(
        "transformer-training",
        Text(
            "Two data-parallel ranks train a small dense transformer with code that nobody has tuned yet: "
            "unfused operators, slow dispatch, frequent synchronisation, gradients reduced one by one, "
            "and a rank whose data loader is slow.",
            "两个数据并行 rank 训练一个小型稠密 Transformer, 代码尚未调优: 算子未融合, 下发慢, 同步频繁, "
            "梯度逐个归约, 且其中一个 rank 的数据加载较慢。",
        ),
        "2024",
        replace(_DENSE_TWO, training=replace(_TUNED_LOOP, micro_batches=1)).with_ranks((), loading_ns=2_200_000),
        (
            SlowDispatch(),
            FrequentItem(),
            OnlineCompilation(),
            Unfused("rms-norm"),
            Unfused("swiglu"),
            Unfused("rotary"),
            Unfused("cross-entropy"),
            Unfused("optimizer"),
            UnalignedVocabulary(),
            SmallMatmuls(),
            NoOverlap(),
            SmallBuckets(),
            SlowLoader(12_500_000, (1,)),
        ),
    ),
    Scenario(
        "healthy-training",
        Text(
            "The same model after tuning, on two ranks: fused operators, padded vocabulary, gradient buckets "
            "reduced during the backward pass, the host far ahead of the device.",
            "同一模型调优之后, 两个 rank: 算子已融合, 词表已补齐, 梯度分桶并与反向重叠, 主机下发远超前于设备。",
        ),
        "2025",
        _DENSE_TWO,
        first_device=4,
    ),
    Scenario(
        "healthy-training-single",
        Text(
            "The tuned model on one rank, without any communication.",
            "调优后的模型, 单卡训练, 无任何通信。",
        ),
        "2024",
        _DENSE_ONE,
    ),
    Scenario(
        "healthy-compact",
        Text(
            "A tuned model with short kernels on two ranks.",
            "调优后的小算子模型, 两个 rank。",
        ),
        "2025",
        _COMPACT_TWO,
    ),
    Scenario(
        "healthy-prefill",
        Text("Prefill of four long prompts, tuned.", "四条长提示词的 prefill, 已调优。"),
        "2025",
        _PREFILL,
    ),
    Scenario(
        "healthy-decode",
        Text("Decode steps of 64 requests, tuned.", "64 个请求的 decode, 已调优。"),
        "2025",
        _DECODE,
    ),
    Scenario(
        "healthy-compact-eight",
        Text(
            "A tuned model with short kernels on eight ranks.",
            "调优后的小算子模型, 八个 rank。",
        ),
        "2025",
        _COMPACT_EIGHT,
    ),
    Scenario(
        "healthy-rl",
        Text(
            "Two iterations of reinforcement learning on two ranks: rollout, log-probabilities, reward, advantage "
            "and update, each marked; responses of equal length, a quick reward function.",
            "两个 rank 上的两轮强化学习: rollout, log-prob, reward, advantage 与 update, 各阶段均有打点; "
            "响应长度一致, 奖励函数很快。",
        ),
        "2025",
        _RL_TWO,
    ),
    Scenario(
        "healthy-task-queue-two",
        Text(
            "A model with short kernels and operators that take long on the host, with TASK_QUEUE_ENABLE=2.",
            "小算子模型, 算子主机侧耗时较长, TASK_QUEUE_ENABLE=2。",
        ),
        "2025",
        _BUSY_HOST,
    ),
    Scenario(
        "healthy-cnn",
        Text(
            "A small convolutional network on two ranks, tuned: tensors stay in the formats of the cube, gradients are "
            "reduced during the backward pass, the optimizer updates all weights at once.",
            "两个 rank 训练小型卷积网络, 已调优: 张量保持 cube 内部格式, 梯度与反向重叠归约, 优化器融合更新全部权重。",
        ),
        "2025",
        _CNN_TWO,
    ),
    Scenario(
        "healthy-pipeline",
        Text(
            "Four stages of a pipeline, with fewer layers where the loss is and many micro-batches.",
            "四级流水线并行, 损失所在的级层数较少, micro-batch 足够多。",
        ),
        "2025",
        _PIPELINE_FOUR,
    ),
    Scenario(
        "healthy-moe",
        Text(
            "A mixture of experts, spread over four ranks that choose them evenly.",
            "四个 rank 的专家并行 MoE, 各专家负载均衡。",
        ),
        "2025",
        _EXPERTS_FOUR,
    ),
    Scenario(
        "healthy-tensor-parallel",
        Text(
            "Two pairs of ranks: the ranks of a pair share every layer, the pairs the data.",
            "张量并行 2 与数据并行 2, 张量并行组为同一模组的两个 die。",
        ),
        "2025",
        _TENSOR_FOUR,
    ),
)

_TITLES: Mapping[str, Text] = {
    "slow-python": Text("much Python between operators", "算子之间的 Python 开销大"),
    "slow-framework": Text("operators that are slow on the host", "算子在主机侧执行慢"),
    "slow-runtime": Text("slow calls into CANN", "CANN 调用慢"),
    "slow-host-dispatch": Text("slow dispatch", "下发慢"),
    "task-queue-off": Text("no task queue", "未启用任务队列"),
    "workspace-on-main-thread": Text("workspace on the main thread", "workspace 在主线程处理"),
    "clock-drops": Text("a clock that falls", "芯片中途降频"),
    "launch-blocking": Text("every launch waits for its kernel", "每次下发都等待算子完成"),
    "item-synchronisation": Text("numbers read back all the time", "频繁回读标量"),
    "synchronous-sampling": Text("steps that wait for their tokens", "每步都等待采样结果"),
    "slow-data-loader": Text("a slow data loader", "数据加载慢"),
    "garbage-collection": Text("garbage collection", "垃圾回收"),
    "unrecorded-garbage-collection": Text("garbage collection that is not recorded", "未记录的垃圾回收"),
    "allocator-churn": Text("memory taken from the driver all the time", "频繁向驱动申请和释放内存"),
    "online-compilation": Text("operators compiled online", "算子在线编译"),
    "unfused-rms-norm": Text("an unfused RMSNorm", "RMSNorm 未融合"),
    "unfused-swiglu": Text("an unfused SwiGLU", "SwiGLU 未融合"),
    "unfused-rotary": Text("an unfused rotary embedding", "旋转位置编码未融合"),
    "unfused-cross-entropy": Text("an unfused cross-entropy", "交叉熵未融合"),
    "unfused-optimizer": Text("an unfused optimizer", "优化器未融合"),
    "unaligned-vocabulary": Text("a vocabulary that is not aligned", "词表未对齐"),
    "tail-of-16-kib": Text("a last axis of 16 KiB", "尾轴为 16 KiB 的倍数"),
    "small-matmuls-on-one-input": Text("three products of one input", "同一输入的三个小矩阵乘"),
    "format-conversions": Text("format conversions around products", "矩阵乘前后的格式转换"),
    "fp32-where-bf16-would-do": Text("FP32 throughout", "全程使用 FP32"),
    "ai-cpu-operator": Text("an operator on the AI CPU", "AI CPU 算子"),
    "communication-not-overlapped": Text("communication after the backward pass", "反向结束后才通信"),
    "small-communication-packets": Text("gradients reduced one by one", "梯度逐个归约"),
    "slow-link": Text("a slow link", "慢链路"),
    "slow-network": Text("a slow network", "网络慢"),
    "pipeline-stage-imbalance": Text("as many layers on the last stage as on the others", "末级流水线层数未减少"),
    "pipeline-bubble": Text("few micro-batches for the stages of the pipeline", "micro-batch 数相对流水线级数过少"),
    "expert-imbalance": Text("experts of one rank that get more tokens", "某个 rank 的专家负载过重"),
    "throttled-clock": Text("a throttled clock", "芯片降频"),
    "slow-host-of-a-rank": Text("one slow host", "某个 rank 的主机慢"),
    "data-parallel-imbalance": Text("one rank with more samples", "某个 rank 样本更多"),
    "long-tail-rollout": Text("one rank with longer responses", "某个 rank 的响应更长"),
    "convolution-format-conversions": Text("format conversions around convolutions", "卷积前后的格式转换"),
    "slow-reward": Text("a slow reward function on the host", "主机侧奖励函数慢"),
    "slow-rollout": Text("an engine that spends much Python on each operator", "推理引擎逐算子的 Python 开销大"),
    "memory-near-the-limit": Text("hardly any memory left", "显存即将耗尽"),
    "fragmentation": Text("fragmented memory", "显存碎片化"),
    "leak": Text("tensors that are never released", "张量始终未释放"),
}


def _afflicted(name: str, headers: Headers, job: Setup, *causes: Cause) -> Scenario:
    titles = [_TITLES[cause.name] for cause in causes]
    ranks = f"{len(job.ranks)} ranks" if len(job.ranks) > 1 else "one rank"
    names = {Training: ("Training", "训练"), VisionTraining: ("Training", "训练"), Serving: ("Serving", "推理")}
    what, was = names.get(type(job.training), ("Reinforcement learning", "强化学习"))
    return Scenario(
        name,
        Text(
            f"{what} on {ranks} with {' and '.join(title.en for title in titles)}; otherwise tuned.",
            f"{len(job.ranks)} 个 rank 的{was}, {', '.join(title.zh for title in titles)}; 其余均已调优。",
        ),
        headers,
        job,
        causes,
    )


_SINGLES = (
    _afflicted("slow-python", "2025", _COMPACT_ONE, SlowHost("python", 220_000)),
    _afflicted("slow-framework", "2024", _COMPACT_ONE, SlowHost("framework", 180_000)),
    _afflicted("slow-runtime", "2025", _COMPACT_ONE, SlowHost("runtime", 160_000)),
    _afflicted(
        "task-queue-off",
        "2025",
        _COMPACT_ONE,
        SlowHost("framework", 80_000),
        SlowHost("runtime", 80_000),
        TaskQueueOff(),
    ),
    _afflicted("task-queue-one", "2025", _BUSY_HOST, WorkspaceOnMainThread()),
    _afflicted("launch-blocking", "2025", _COMPACT_ONE, LaunchBlocking()),
    _afflicted("item-synchronisation", "2025", _COMPACT_ONE, FrequentItem()),
    _afflicted("slow-data-loader", "2024", _COMPACT_ONE, SlowLoader(40_000_000)),
    _afflicted("garbage-collection", "2025", _COMPACT_ONE, GarbageCollection(400, 70_000_000, recorded=True)),
    _afflicted(
        "unrecorded-garbage-collection", "2024", _COMPACT_ONE, GarbageCollection(400, 70_000_000, recorded=False)
    ),
    _afflicted("allocator-churn", "2025", _COMPACT_ONE, AllocatorChurn()),
    _afflicted("online-compilation", "2025", _COMPACT_ONE, Unfused("rotary"), OnlineCompilation()),
    *(
        _afflicted(f"unfused-{part}", "2025", _DENSE_ONE, Unfused(part))
        for part in ("rms-norm", "swiglu", "rotary", "cross-entropy", "optimizer")
    ),
    _afflicted("unaligned-vocabulary", "2025", _DENSE_ONE, UnalignedVocabulary()),
    _afflicted(
        "tail-of-16-kib",
        "2025",
        replace(_DENSE_ONE, training=replace(_TUNED_LOOP, shape=replace(_TUNED_LOOP.shape, ffn=8448))),
        SixteenKibTail(),
    ),
    _afflicted("small-matmuls", "2025", _COMPACT_ONE, SmallMatmuls()),
    _afflicted("format-conversions", "2025", _DENSE_ONE, PrivateFormat()),
    _afflicted("fp32", "2025", _COMPACT_ONE, SinglePrecision()),
    _afflicted("ai-cpu-operator", "2025", _COMPACT_ONE, AiCpuOperator()),
    _afflicted("decode-slow-framework", "2025", _DECODE, SlowHost("framework", 180_000)),
    _afflicted("decode-task-queue-off", "2025", _DECODE, SlowHost("framework", 60_000), TaskQueueOff()),
    _afflicted("decode-synchronous-sampling", "2025", _DECODE, SynchronousSampling()),
    _afflicted("decode-launch-blocking", "2025", _DECODE, LaunchBlocking()),
    _afflicted("decode-slow-scheduler", "2025", _DECODE, SlowLoader(6_000_000)),
    _afflicted("decode-unfused-rms-norm", "2025", _DECODE, SlowHost("framework", 60_000), Unfused("rms-norm")),
    _afflicted("decode-small-matmuls", "2025", _DECODE, SmallMatmuls()),
    _afflicted("prefill-unfused-rotary", "2025", _PREFILL, Unfused("rotary")),
    _afflicted("prefill-unfused-swiglu", "2025", _PREFILL, Unfused("swiglu")),
    _afflicted("prefill-format-conversions", "2025", _PREFILL, PrivateFormat()),
    _afflicted("no-overlap", "2025", _COMPACT_TWO, NoOverlap()),
    _afflicted("small-buckets", "2024", _COMPACT_FOUR, NoOverlap(), SmallBuckets()),
    _afflicted("slow-link", "2025", _COMPACT_FOUR, SlowLink((1, 2), 6.0)),
    _afflicted("slow-network", "2025", _COMPACT_TWO, SlowNetwork()),
    _afflicted("late-rank-by-loader", "2025", _COMPACT_FOUR, SlowLoader(40_000_000, (2,))),
    _afflicted("late-rank-by-clock", "2025", _COMPACT_FOUR, ThrottledClock(1_200, (1,))),
    _afflicted(
        "clock-drops",
        "2025",
        replace(_COMPACT_ONE, training=replace(_COMPACT_LOOP, steps=6)),
        ClockDrops(1_200, 40_000_000),
    ),
    _afflicted("late-rank-by-host", "2025", _COMPACT_FOUR, SlowHostOfRank(9.0, (3,))),
    _afflicted("data-imbalance", "2025", _COMPACT_FOUR, DataImbalance(1.25, (1,))),
    _afflicted("long-tail-rollout", "2025", _RL_FOUR, LongTailRollout(2.0, (2,))),
    _afflicted("slow-reward", "2025", _RL_TWO, SlowReward(120_000_000)),
    _afflicted("slow-rollout", "2025", _RL_TWO, SlowRollout()),
    _afflicted("cnn-slow-loader", "2025", _CNN_TWO, SlowLoader(40_000_000)),
    _afflicted("cnn-items", "2024", _CNN_ONE, FrequentItem()),
    _afflicted("cnn-late-rank", "2025", _CNN_FOUR, SlowLoader(40_000_000, (1,))),
    _afflicted("cnn-unfused-optimizer", "2025", _CNN_ONE, Unfused("optimizer")),
    _afflicted("cnn-format-conversions", "2025", _CNN_ONE, ConvertedPictures()),
    _afflicted("pipeline-imbalance", "2025", _PIPELINE_FOUR, EvenLayers((4, 3, 3, 3))),
    _afflicted("expert-imbalance", "2025", _EXPERTS_FOUR, HotExperts(2.0, 2)),
    _afflicted("pipeline-bubble", "2025", _PIPELINE_FOUR, FewMicroBatches(4)),
    _afflicted("late-rank-in-pipeline", "2025", _PIPELINE_TWO, ThrottledClock(1_200, (1,))),
)

_PAIRS = (
    _afflicted("python-and-items", "2025", _COMPACT_ONE, SlowHost("python", 220_000), FrequentItem()),
    _afflicted("loader-and-no-overlap", "2025", _COMPACT_TWO, SlowLoader(40_000_000), NoOverlap()),
    _afflicted("vocabulary-and-rotary", "2024", _DENSE_ONE, UnalignedVocabulary(), Unfused("rotary")),
    _afflicted("small-buckets-and-slow-network", "2025", _COMPACT_TWO, SmallBuckets(), SlowNetwork()),
    _afflicted("late-rank-and-swiglu", "2025", _COMPACT_TWO, SlowLoader(40_000_000, (1,)), Unfused("swiglu")),
)

_MEMORY = (
    Scenario(
        "healthy-varying-lengths",
        Text(
            "A tuned model with short kernels on samples of varying length, with expandable segments.",
            "调优后的小算子模型, 样本长度不一, 已启用可扩展内存段。",
        ),
        "2025",
        _VARYING,
    ),
    _afflicted("fragmentation", "2025", _VARYING, Fragmentation()),
    _afflicted("leak", "2024", replace(_COMPACT_ONE, training=replace(_COMPACT_LOOP, steps=10)), Leak()),
    _afflicted("memory-near-the-limit", "2025", _COMPACT_ONE, _all_but(4534 * MIB)),
    _afflicted("fragmentation-near-the-limit", "2025", _VARYING, Fragmentation(), _all_but(4784 * MIB)),
)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {scenario.name: scenario for scenario in (*_MEMBERS, *_SINGLES, *_PAIRS, *_MEMORY)}
)
"""All scenarios by name."""
