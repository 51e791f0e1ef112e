"""Causes in an iteration of reinforcement learning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..described import Factor, Natural
from ..loops.recorded_reinforcement import RecordedReinforcement
from ..loops.reinforcement import Reinforcement
from ..setup import Setup
from .cause import Cause, CauseOnRanks, change_work


@dataclass(frozen=True, slots=True)
class LongTailRollout(CauseOnRanks):
    """The longest responses of some ranks are longer by a factor; the others wait for them
    (docs/sources.md#long-responses; the factor is assumed)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "long-tail-rollout"
    cure: ClassVar[str] = "balance prompts by expected length, partial or asynchronous rollout"

    longest: Factor
    ranks: tuple[int, ...]

    def afflict(self, setup: Setup) -> Setup:
        return setup.with_ranks(self.ranks, longest=self.factor(self.longest))


@dataclass(frozen=True, slots=True)
class SlowReward(Cause):
    """The reward function takes ``ns`` on the host, and the devices have nothing to do meanwhile (size assumed)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "slow-reward"
    cure: ClassVar[str] = "reward in parallel processes, or while responses are still being generated"

    ns: Natural

    def afflict(self, setup: Setup) -> Setup:
        if not isinstance(setup.training, Reinforcement | RecordedReinforcement):
            raise ValueError("only reinforcement learning has rewards")
        return change_work(setup, reward_ns=self.part(setup.training.reward_ns, self.ns))


@dataclass(frozen=True, slots=True)
class SlowRollout(Cause):
    """The inference engine runs its model operator by operator and spends ``ns`` of Python before each of them
    (``enforce_eager``, docs/sources.md#eager-decode; size: forward operators of
    docs/sources.md#recorded-alexnet-job)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "slow-rollout"
    cure: ClassVar[str] = "graph mode for decode"

    ns: Natural = 180_000

    def afflict(self, setup: Setup) -> Setup:
        return change_work(setup, engine_ns=self.part(0, self.ns))
