"""Causes on some ranks, for which the others wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..described import Factor, Natural, Positive
from ..setup import Setup
from .cause import CauseOnRanks


@dataclass(frozen=True, slots=True)
class ThrottledClock(CauseOnRanks):
    """The chip of some ranks, or of all, runs at a lower clock (docs/sources.md#falling-clock)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "throttled-clock"
    cure: ClassVar[str] = "cooling, power limit"

    mhz: Positive
    ranks: tuple[int, ...] = ()

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, mhz=round(self.rate(self.before(setup).mhz, self.mhz)))


@dataclass(frozen=True, slots=True)
class ClockDrops(CauseOnRanks):
    """The clock falls to ``mhz`` when the profile has run for ``after_ns`` and stays there, as when the chip has become
    hot (docs/sources.md#falling-clock)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "clock-drops"
    cure: ClassVar[str] = "cooling, power limit"

    mhz: Positive
    after_ns: Natural
    ranks: tuple[int, ...] = ()

    def afflict(self, setup: Setup) -> Setup:
        mhz = round(self.rate(self.before(setup).mhz, self.mhz))
        return setup.with_ranks(self.ranks, falls_to_mhz=mhz, falls_after_ns=self.after_ns)


@dataclass(frozen=True, slots=True)
class SlowHostOfRank(CauseOnRanks):
    """The host of some ranks is slower by a factor, as when other processes take its cores
    (docs/sources.md#threads-that-lose-their-core)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "slow-host-of-a-rank"
    cure: ClassVar[str] = "bind the threads, free the cores"

    slowdown: Factor
    ranks: tuple[int, ...]

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, host_factor=self.factor(self.slowdown))


@dataclass(frozen=True, slots=True)
class DataImbalance(CauseOnRanks):
    """Some ranks get more samples than the others (docs/sources.md#data-imbalance)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "data-parallel-imbalance"
    cure: ClassVar[str] = "balance samples by tokens"

    load: Factor
    ranks: tuple[int, ...]

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, load=self.factor(self.load))
