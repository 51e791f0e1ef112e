"""Causes of lost time: each is a switch with a size that makes a healthy job worse, and whose absence is its cure.

A cause knows nothing about rules. Sizes come from real profiles and published figures: a remark such as
``docs/sources.md#task-queue`` names the source, and "assumed" says that there is none.
"""

from __future__ import annotations

from .cause import Cause
from .code import (
    AiCpuOperator,
    ConvertedPictures,
    PrivateFormat,
    SinglePrecision,
    SixteenKibTail,
    SmallMatmuls,
    UnalignedVocabulary,
    Unfused,
)
from .communication import NoOverlap, SlowLink, SlowNetwork, SmallBuckets
from .host import (
    AllocatorChurn,
    EagerDecode,
    FrequentItem,
    GarbageCollection,
    LaunchBlocking,
    OnlineCompilation,
    SlowDispatch,
    SlowHost,
    SlowLoader,
    SynchronousSampling,
    TaskQueueOff,
    WorkspaceOnMainThread,
)
from .known import CAUSES
from .layout import EvenLayers, FewMicroBatches, HotExperts
from .memory import Fragmentation, Leak, MemoryNearTheLimit
from .rank import ClockDrops, DataImbalance, SlowHostOfRank, ThrottledClock
from .rollout import LongTailRollout, SlowReward, SlowRollout

__all__ = [
    "CAUSES",
    "AiCpuOperator",
    "AllocatorChurn",
    "Cause",
    "ClockDrops",
    "ConvertedPictures",
    "DataImbalance",
    "EagerDecode",
    "EvenLayers",
    "FewMicroBatches",
    "Fragmentation",
    "FrequentItem",
    "GarbageCollection",
    "HotExperts",
    "LaunchBlocking",
    "Leak",
    "LongTailRollout",
    "MemoryNearTheLimit",
    "NoOverlap",
    "OnlineCompilation",
    "PrivateFormat",
    "SinglePrecision",
    "SixteenKibTail",
    "SlowDispatch",
    "SlowHost",
    "SlowHostOfRank",
    "SlowLink",
    "SlowLoader",
    "SlowNetwork",
    "SlowReward",
    "SlowRollout",
    "SmallBuckets",
    "SmallMatmuls",
    "SynchronousSampling",
    "TaskQueueOff",
    "ThrottledClock",
    "UnalignedVocabulary",
    "Unfused",
    "WorkspaceOnMainThread",
]
