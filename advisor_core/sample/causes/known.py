"""All causes by the name with which a job asks for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter

from advisor_core.text.base import Text

from . import code, communication, host, layout, memory, rank, rollout
from .cause import Cause


@dataclass(frozen=True, slots=True)
class KnownCause:
    """``title``: what the job has, as its description says it; ``preset``: settings that go with the name."""

    kind: type[Cause]
    title: Text
    preset: Mapping[str, object]

    def make(self, settings: Mapping[str, object]) -> Cause:
        """The cause with these settings. Raises :class:`pydantic.ValidationError`, whose places are in the settings."""
        known: TypeAdapter[Cause] = TypeAdapter(self.kind)
        # By way of JSON, where pydantic's strict mode accepts a list for a tuple and still nothing else.
        return known.validate_json(json.dumps({**settings, **self.preset}), strict=True)

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that a job may give."""
        return tuple(field.name for field in fields(self.kind) if field.name not in self.preset)


def _known(kind: type[Cause], en: str, zh: str, **preset: Any) -> KnownCause:
    return KnownCause(kind, Text(en=en, zh=zh), preset)


CAUSES: Mapping[str, KnownCause] = MappingProxyType(
    {
        "slow-python": _known(
            host.SlowHost, "much Python between operators", "算子之间的 Python 开销大", layer="python"
        ),
        "slow-framework": _known(
            host.SlowHost, "operators that are slow on the host", "算子在主机侧执行慢", layer="framework"
        ),
        "slow-runtime": _known(host.SlowHost, "slow calls into CANN", "CANN 调用慢", layer="runtime"),
        "slow-host-dispatch": _known(host.SlowDispatch, "slow dispatch", "下发慢"),
        "task-queue-off": _known(host.TaskQueueOff, "no task queue", "未启用任务队列"),
        "workspace-on-main-thread": _known(
            host.WorkspaceOnMainThread, "workspace on the main thread", "workspace 在主线程处理"
        ),
        "eager-decode": _known(host.EagerDecode, "kernels launched one by one", "逐个下发 kernel"),
        "clock-drops": _known(rank.ClockDrops, "a clock that falls", "芯片中途降频"),
        "launch-blocking": _known(host.LaunchBlocking, "every launch waits for its kernel", "每次下发都等待算子完成"),
        "item-synchronisation": _known(host.FrequentItem, "numbers read back all the time", "频繁回读标量"),
        "synchronous-sampling": _known(
            host.SynchronousSampling, "steps that wait for their tokens", "每步都等待采样结果"
        ),
        "slow-data-loader": _known(host.SlowLoader, "a slow data loader", "数据加载慢"),
        "garbage-collection": _known(host.GarbageCollection, "garbage collection", "垃圾回收", recorded=True),
        "unrecorded-garbage-collection": _known(
            host.GarbageCollection, "garbage collection that is not recorded", "未记录的垃圾回收", recorded=False
        ),
        "allocator-churn": _known(
            host.AllocatorChurn, "memory taken from the driver all the time", "频繁向驱动申请和释放内存"
        ),
        "online-compilation": _known(host.OnlineCompilation, "operators compiled online", "算子在线编译"),
        "unfused-rms-norm": _known(code.Unfused, "an unfused RMSNorm", "RMSNorm 未融合", what="rms-norm"),
        "unfused-swiglu": _known(code.Unfused, "an unfused SwiGLU", "SwiGLU 未融合", what="swiglu"),
        "unfused-rotary": _known(code.Unfused, "an unfused rotary embedding", "旋转位置编码未融合", what="rotary"),
        "unfused-cross-entropy": _known(code.Unfused, "an unfused cross-entropy", "交叉熵未融合", what="cross-entropy"),
        "unfused-optimizer": _known(code.Unfused, "an unfused optimizer", "优化器未融合", what="optimizer"),
        "unfused-attention": _known(code.Unfused, "an unfused attention", "注意力未融合", what="attention"),
        "unfused-experts": _known(code.Unfused, "experts that run one by one", "专家逐个计算", what="experts"),
        "unfused-cache-write": _known(
            code.Unfused, "a cache that is copied for each token", "每个 token 都复制 KV cache", what="cache-write"
        ),
        "unfused-sampling": _known(
            code.Unfused, "a filter of logits that is written out", "采样过滤未融合", what="sampling"
        ),
        "unfused-group-norm": _known(
            code.Unfused, "an unfused GroupNorm with SiLU", "GroupNorm 与 SiLU 未融合", what="group-norm"
        ),
        "unfused-geglu": _known(code.Unfused, "an unfused GeGLU", "GeGLU 未融合", what="geglu"),
        "unaligned-vocabulary": _known(code.UnalignedVocabulary, "a vocabulary that is not aligned", "词表未对齐"),
        "tail-of-16-kib": _known(code.SixteenKibTail, "a last axis of 16 KiB", "尾轴为 16 KiB 的倍数"),
        "small-matmuls-on-one-input": _known(
            code.SmallMatmuls, "three products of one input", "同一输入的三个小矩阵乘"
        ),
        "format-conversions": _known(code.PrivateFormat, "format conversions around products", "矩阵乘前后的格式转换"),
        "fp32-where-bf16-would-do": _known(code.SinglePrecision, "FP32 throughout", "全程使用 FP32"),
        "ai-cpu-operator": _known(code.AiCpuOperator, "an operator on the AI CPU", "AI CPU 算子"),
        "communication-not-overlapped": _known(
            communication.NoOverlap, "communication after the backward pass", "反向结束后才通信"
        ),
        "small-communication-packets": _known(
            communication.SmallBuckets, "gradients reduced one by one", "梯度逐个归约"
        ),
        "slow-link": _known(communication.SlowLink, "a slow link", "慢链路"),
        "slow-network": _known(communication.SlowNetwork, "a slow network", "网络慢"),
        "pipeline-stage-imbalance": _known(
            layout.EvenLayers, "as many layers on the last stage as on the others", "末级流水线层数未减少"
        ),
        "pipeline-bubble": _known(
            layout.FewMicroBatches,
            "few micro-batches for the stages of the pipeline",
            "micro-batch 数相对流水线级数过少",
        ),
        "expert-imbalance": _known(
            layout.HotExperts, "experts of one rank that get more tokens", "某个 rank 的专家负载过重"
        ),
        "throttled-clock": _known(rank.ThrottledClock, "a throttled clock", "芯片降频"),
        "slow-host-of-a-rank": _known(rank.SlowHostOfRank, "one slow host", "某个 rank 的主机慢"),
        "data-parallel-imbalance": _known(rank.DataImbalance, "one rank with more samples", "某个 rank 样本更多"),
        "long-tail-rollout": _known(rollout.LongTailRollout, "one rank with longer responses", "某个 rank 的响应更长"),
        "convolution-format-conversions": _known(
            code.ConvertedPictures, "format conversions around convolutions", "卷积前后的格式转换"
        ),
        "slow-reward": _known(rollout.SlowReward, "a slow reward function on the host", "主机侧奖励函数慢"),
        "slow-rollout": _known(
            rollout.SlowRollout, "an engine that spends much Python on each operator", "推理引擎逐算子的 Python 开销大"
        ),
        "memory-near-the-limit": _known(memory.MemoryNearTheLimit, "hardly any memory left", "显存即将耗尽"),
        "fragmentation": _known(memory.Fragmentation, "fragmented memory", "显存碎片化"),
        "leak": _known(memory.Leak, "tensors that are never released", "张量始终未释放"),
    }
)
