"""Causes in how a model and its data are spread over stages, experts and micro-batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..described import Factor, Natural, Positive
from ..loops.training import Training
from ..setup import Setup
from .cause import Cause, change_shape, change_work


@dataclass(frozen=True, slots=True)
class EvenLayers(Cause):
    """The layers are spread evenly over the stages of the pipeline, although the last one has the output projection
    and the loss as well: in a real job it computes 1.73 times as long as the first (docs/sources.md#last-stage)."""

    name: ClassVar[str] = "pipeline-stage-imbalance"
    cure: ClassVar[str] = "fewer layers on the last stage"

    layers: tuple[int, ...]

    def afflict(self, setup: Setup) -> Setup:
        return change_work(setup, stage_layers=self.layers)


@dataclass(frozen=True, slots=True)
class FewMicroBatches(Cause):
    """The samples of a step come in ``fewer`` times fewer micro-batches, each as many times larger: of the
    ``stages - 1 + micro_batches`` slots of a pipeline ``stages - 1`` are empty (docs/sources.md#pipeline-bubble)."""

    name: ClassVar[str] = "pipeline-bubble"
    cure: ClassVar[str] = "more and smaller micro-batches, interleaved stages"

    fewer: Positive

    def afflict(self, setup: Setup) -> Setup:
        if not isinstance(setup.training, Training):
            raise ValueError("only training has micro-batches in a pipeline")
        if setup.training.micro_batches < self.fewer:
            raise ValueError(f"there are only {setup.training.micro_batches} micro-batches")
        larger = change_shape(setup, batch=setup.training.shape.batch * self.fewer)
        return change_work(larger, micro_batches=setup.training.micro_batches // self.fewer)


@dataclass(frozen=True, slots=True)
class HotExperts(Cause):
    """The experts of one rank get ``load`` times as many tokens as those of each of the others (size assumed: no
    figures are published; docs/sources.md#expert-imbalance names the sign, GroupedMatmul by rank)."""

    divisible: ClassVar[bool] = True
    name: ClassVar[str] = "expert-imbalance"
    cure: ClassVar[str] = "a balancing loss, redundant or relocated experts"

    load: Factor
    rank: Natural

    @property
    def where(self) -> tuple[int, ...]:
        return (self.rank,)

    def afflict(self, setup: Setup) -> Setup:
        group = setup.arrangement.group(self.rank, "expert")
        if group is None:
            raise ValueError("the experts are not spread over ranks")
        hot = group.local(self.rank)
        load = self.factor(self.load)
        return change_work(setup, expert_load=tuple(load if at == hot else 1.0 for at in range(len(group.ranks))))
