"""Causes in the memory of the device: most cost no time yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..described import Natural
from ..setup import Setup
from .cause import Cause, change_work


@dataclass(frozen=True, slots=True)
class MemoryNearTheLimit(Cause):
    """Other weights stay on the device, such as those of a reference model, and leave little room. Where the sizes of
    tensors vary the allocator then has to give its cache back to the driver and ask again, while the device waits."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "memory-near-the-limit"
    cure: ClassVar[str] = "weights that are not in use offloaded, a smaller batch, recomputation"
    risk: ClassVar[bool] = True

    held: Natural

    def afflict(self, setup: Setup) -> Setup:
        return replace(setup, memory=replace(setup.memory, held=self.part(setup.memory.held, self.held)))


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
        return change_work(setup, keeps_hidden=True)
