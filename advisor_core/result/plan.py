"""The plan: the time that the changes of the findings would win, alone and together, by replay of the recorded job."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.text.base import Model

Chain = Literal["host", "queue", "kernels", "collectives", "delays"]


class Action(Model):
    """The change that a finding proposes. All times are of one step of the job.

    ``finding``: its fingerprint. ``alone_ns``: the time that the change wins by itself; ``range_ns``: the least and the
    most of that: the durations that the change models at their least and at their most, every dependency that no file
    records taken to hold and none of them, less or more by the error of the replay on this recording and by the spread
    of the recorded steps (of a single step, which has no spread, by nothing).
    ``last_ns``: the time that it wins when all others of the plan are made already. ``gain_ns``: the time that it wins
    on top of those before it in the plan, so that these add up. ``step_after_ns``: the step with it and those before
    it. ``needs``: fingerprints of changes without which it wins little; ``covers``: of findings whose own change wins
    nothing more once this one and those before it are made; ``excludes``: of findings whose change cannot be combined
    with this one and would win less: alternatives to it."""

    finding: str
    problem: str = Field("", description="number of the problem that the finding is")
    alone_ns: int
    range_ns: tuple[int, int]
    last_ns: int
    gain_ns: int
    step_after_ns: int
    needs: list[str] = Field(default_factory=list)
    covers: list[str] = Field(default_factory=list)
    excludes: list[str] = Field(default_factory=list)


class Limit(Model):
    """The chain that the end of the step waits for most of the time. ``rank``: the rank of the chain, ``None`` of a
    collective of several; ``chain``: ``host``, ``queue`` (the thread that empties the task queue), ``kernels``,
    ``collectives``, or ``delays`` (the time between one task and the next); ``share``: of the step."""

    rank: int | None
    chain: Chain
    share: float


class Owner(Model):
    """Time of a step that its end waits for: ``rank``, ``None`` of a call of several; ``chain`` as of `Limit`;
    ``path``: the entry of the ledger that names it (docs/the-replay.md); ``ns`` of the step."""

    rank: int | None
    chain: Chain
    path: str
    ns: int


class Varying(Model):
    """The time by which the recorded steps, but for the first one, differ most, of what their ends wait for: as of
    `Owner`, with the least and the most of any of them. ``rank``: ``None`` also where it is one rank in some steps and
    another in others."""

    rank: int | None
    chain: Chain
    path: str
    least_ns: int
    most_ns: int


class Plan(Model):
    """The changes in the order that wins most. ``step_ns``: the step as replayed without a change, of a long run if
    several steps were recorded; ``after_ns``: with all changes, ``after_range_ns``: as `Action.range_ns`.
    ``steps_wanted``: the number of steps to record for a narrow range, ``None`` if the recorded ones are alike enough;
    ``varies``: what they differ by most, as they are or with all changes, whichever asks for more steps.
    ``absent``: rank that was not recorded to the time of a step for which the recorded ranks wait for it. The replay
    takes these to gain as much as the others; if they do not, nothing is won, which is the least of every range.
    ``parts_before``, ``parts_after``: mean over the ranks of the time in kernels (``compute``), in collectives while no
    kernel runs (``communication``) and in neither (``idle``), which add up to the step. ``limit``, ``next_limit``: the
    chain that the end of the step waits for now, and with all changes."""

    step_ns: int
    after_ns: int
    after_range_ns: tuple[int, int]
    steps_wanted: int | None = None
    varies: Varying | None = None
    absent: dict[int, int] = Field(default_factory=dict)
    actions: list[Action]
    parts_before: dict[str, int]
    parts_after: dict[str, int]
    limit: Limit
    next_limit: Limit


class WhatIf(Model):
    """The step after changes that somebody asks for; times as of `Plan`. ``saving_range_ns``: the least and the most
    that it becomes shorter by. ``error_share``: error of the replay of this recording, as a share of the step, on the
    rank with most. ``without``: fingerprints of the findings with the changes that are made; ``untold``: of findings
    that were named and have no change that could be replayed. ``scale``: operator type or class to the factor for the
    time of its kernels; ``rank_as``: rank to the rank that it is made as quick as."""

    step_ns: int
    after_ns: int
    after_range_ns: tuple[int, int]
    saving_range_ns: tuple[int, int]
    error_share: float
    without: list[str] = Field(default_factory=list)
    untold: list[str] = Field(default_factory=list)
    scale: dict[str, float] = Field(default_factory=dict)
    rank_as: dict[int, int] = Field(default_factory=dict)
    parts_before: dict[str, int]
    parts_after: dict[str, int]
    limit: Limit
    next_limit: Limit
