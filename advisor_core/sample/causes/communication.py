"""Causes in communication: when it begins, in which pieces, over which links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from ..described import Factor, Natural
from ..setup import Setup
from .cause import Cause, change_work


@dataclass(frozen=True, slots=True)
class NoOverlap(Cause):
    """Gradients are reduced after the backward pass."""

    name: ClassVar[str] = "communication-not-overlapped"
    cure: ClassVar[str] = "reduce each bucket as soon as it is full"

    def afflict(self, setup: Setup) -> Setup:
        return change_work(setup, overlapped_buckets=False)


@dataclass(frozen=True, slots=True)
class SmallBuckets(Cause):
    """Gradients are reduced one by one, or in buckets of ``bucket_bytes``."""

    name: ClassVar[str] = "small-communication-packets"
    cure: ClassVar[str] = "buckets of tens of MB"

    bucket_bytes: Natural = 0

    def afflict(self, setup: Setup) -> Setup:
        return change_work(setup, bucket_bytes=self.bucket_bytes)


@dataclass(frozen=True, slots=True)
class SlowLink(Cause):
    """The link between two ranks has a fraction of its bandwidth."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "slow-link"
    cure: ClassVar[str] = "repair the link"

    pair: tuple[int, int]
    slowdown: Factor

    @property
    def involved(self) -> tuple[int, ...]:
        return self.pair

    def afflict(self, setup: Setup) -> Setup:
        return replace(setup, slow_pairs=(*setup.slow_pairs, (*self.pair, self.factor(self.slowdown))))


@dataclass(frozen=True, slots=True)
class SlowNetwork(Cause):
    """Every link has the bandwidth of one 200 Gb/s adapter that several devices share (docs/sources.md#links)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "slow-network"
    cure: ClassVar[str] = "ranks of one group within a server"

    bytes_per_s: Factor = 3e9

    def afflict(self, setup: Setup) -> Setup:
        return replace(setup, link=replace(setup.link, bytes_per_s=self.rate(setup.link.bytes_per_s, self.bytes_per_s)))
