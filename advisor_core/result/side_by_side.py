"""Ranks of a job side by side over one step: what each does when, and the passes over the stages of its pipeline."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.text.base import Model

Reason = Literal["plan", "path", "slowdown", "slowest", "waiting", "median"]
"""The reason why a rank matters: the first change of the plan is about it, the end of the step waits for it most, it
makes the job slowest by itself, its step is the longest, it waits for others most, or its step is the median."""

Clocks = Literal["calls", "none"]
"""The way the clocks of the ranks were set: by the calls that they have in common, or not at all."""


class RankLane(Model):
    """A step of one rank. Times are ns from the start of the first step shown, on the clock of the first rank; where
    the clocks are not set, from the start of its own step. ``ahead_ns``: what was taken off its clock. ``intervals``:
    start, end and ledger path of what takes most of each of some hundred parts of the step."""

    rank: int
    stage: int | None = None
    reasons: list[Reason] = Field(default_factory=list)
    ahead_ns: int = 0
    start_ns: int
    end_ns: int
    intervals: list[tuple[int, int, str]]


class SideBySide(Model):
    """``step``: the one that takes longest on any rank, by its id; ``None`` where no steps are marked. ``ranks``: how
    many have it and were read in depth; some of them are shown."""

    role: str | None = None
    step: int | None
    clocks: Clocks
    ranks: int
    lanes: list[RankLane]


class Pass(Model):
    """The forward or backward pass of a micro-batch over a stage; ``number``: which of its kind in the step, from 1."""

    backward: bool
    number: int
    start_ns: int
    end_ns: int


class StagePasses(Model):
    """The passes over one stage, on one of its ranks. ``between_ns``: from the first pass over any stage to the last,
    the time in which none runs over this one."""

    stage: int
    rank: int
    passes: list[Pass]
    between_ns: int


class PipelinePasses(Model):
    """One pipeline of the job in one step; times as of `RankLane`. ``stages``: those recorded in depth, of
    ``of_stages``. ``micro_batches``: times the parts of the model on one stage; ``None`` where the stages differ
    in their passes, which then are not told apart without doubt."""

    role: str | None = None
    step: int | None
    clocks: Clocks
    stages: list[StagePasses]
    of_stages: int
    micro_batches: int | None
