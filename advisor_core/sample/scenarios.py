"""The scenarios a sample can show: what they describe and which known problems they contain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from .context import HostCosts
from .model import Implementation, ModelShape
from .training import Training

Headers = Literal["2024", "2025"]
"""Generation of the export: lanes and cores called HCCL, or Communication with a Device_id column (facts A3, B1)."""


@dataclass(frozen=True, slots=True)
class Text:
    """A sentence in the two languages of the reports."""

    en: str
    zh: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """A job to simulate, and what is known about it."""

    name: str
    description: Text
    problems: tuple[str, ...]
    headers: Headers
    training: Training
    host: HostCosts
    loading_ns: tuple[int, ...]
    first_device: int = 0

    @property
    def ranks(self) -> int:
        """Number of data-parallel ranks: one data loader each."""
        return len(self.loading_ns)

    @property
    def steps(self) -> int:
        """Number of profiled steps."""
        return self.training.steps


_UNFUSED = Implementation(
    fused_norm=False, fused_rotary=False, fused_swiglu=False, fused_loss=False, merged_qkv=False, compiled_concat=True
)
_FUSED = Implementation(
    fused_norm=True, fused_rotary=True, fused_swiglu=True, fused_loss=True, merged_qkv=True, compiled_concat=False
)
_PLAIN_LOOP = Training(
    ModelShape(),
    _UNFUSED,
    steps=2,
    micro_batches=1,
    fused_optimizer=False,
    overlapped_buckets=False,
    item_per_parameter=True,
    loss_log_ns=900_000,
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
# Host cost per operator: with stacks, shapes and memory recorded, real forward operators take 200-500 us
# (facts DATA-A); a tuned job binds its threads and records less.
_SLOW_HOST = HostCosts(python=56_000, operator=82_000, autograd=26_000)
_FAST_HOST = HostCosts(python=11_000, operator=13_000, autograd=11_000)

_ALL = (
    Scenario(
        "transformer-training",
        Text(
            "Two data-parallel ranks train a small dense transformer with code that nobody has tuned yet: "
            "unfused operators, slow dispatch, frequent synchronisation, gradients reduced one by one, "
            "and a rank whose data loader is slow.",
            "两个数据并行 rank 训练一个小型稠密 Transformer, 代码尚未调优: 算子未融合, 下发慢, 同步频繁, "
            "梯度逐个归约, 且其中一个 rank 的数据加载较慢。",
        ),
        problems=(
            "slow-host-dispatch",
            "item-synchronisation",
            "online-compilation",
            "unfused-rms-norm",
            "unfused-swiglu",
            "unfused-rotary",
            "unfused-cross-entropy",
            "unfused-optimizer",
            "slices-of-one-tensor",
            "format-conversions",
            "unaligned-vocabulary",
            "small-matmuls-on-one-input",
            "communication-not-overlapped",
            "small-communication-packets",
            "late-rank",
            "slow-data-loader",
        ),
        headers="2024",
        training=_PLAIN_LOOP,
        host=_SLOW_HOST,
        loading_ns=(2_200_000, 12_500_000),
    ),
    Scenario(
        "healthy-training",
        Text(
            "The same model after tuning, on two ranks: fused operators, padded vocabulary, gradient buckets "
            "reduced during the backward pass, the host far ahead of the device.",
            "同一模型调优之后, 两个 rank: 算子已融合, 词表已补齐, 梯度分桶并与反向重叠, 主机下发远超前于设备。",
        ),
        problems=(),
        headers="2025",
        training=_TUNED_LOOP,
        host=_FAST_HOST,
        loading_ns=(900_000, 900_000),
        first_device=4,
    ),
    Scenario(
        "healthy-training-single",
        Text(
            "The tuned model on one rank, without any communication.",
            "调优后的模型, 单卡训练, 无任何通信。",
        ),
        problems=(),
        headers="2024",
        training=_TUNED_LOOP,
        host=_FAST_HOST,
        loading_ns=(900_000,),
    ),
)

SCENARIOS: Mapping[str, Scenario] = MappingProxyType({scenario.name: scenario for scenario in _ALL})
"""All scenarios by name."""
