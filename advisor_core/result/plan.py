"""The plan: what the changes that the findings propose would win, alone and together, by replay of the recorded job."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.text.base import Model

Chain = Literal["host", "queue", "kernels", "collectives", "delays"]


class Action(Model):
    """The change that a finding proposes. All times are of one step of the job.

    ``alone_ns``: what it wins by itself; ``range_ns``: the least and the most of that: what the change models taken at
    its least and at its most, every dependency that no file records taken to hold and none of them, give or take the
    error of the replay on this recording and what the spread of the recorded steps leaves open (of a single step, whose
    spread is not known, nothing).
    ``last_ns``: what it wins when all others of the plan are made already. ``gain_ns``: what it wins on top of those
    before it in the plan, so that these add up. ``step_after_ns``: the step with it and those before it. ``needs``:
    fingerprints of changes without which it wins little; ``covers``: of findings whose own change wins nothing more
    once this one and those before it are made; ``excludes``: of findings whose change cannot be combined with this one
    and would win less: alternatives to it."""

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
    """What the end of the step waits for most of the time. ``rank``: whose time it is, ``None`` of a collective of
    several; ``chain``: the host, the thread that empties the task queue, kernels, collectives, or what passes between
    one task and the next; ``share``: of the step."""

    rank: int | None
    chain: Chain
    share: float


class Owner(Model):
    """Time of a step that its end waits for: ``rank``, ``None`` of what belongs to a call of several; ``chain`` as of
    `Limit`; ``path``: the entry of the ledger that names it (docs/the-replay.md)."""

    rank: int | None
    chain: Chain
    path: str
    ns: int


class Plan(Model):
    """What to do, in the order that wins most. ``step_ns``: the step as replayed without a change, of a long run where
    several steps were recorded; ``after_ns``: with all changes, ``after_range_ns``: as `Action.range_ns`. ``parts``:
    mean over the ranks of the time in kernels (``compute``), in collectives while no kernel runs (``communication``)
    and in neither (``idle``), which add up to the step. ``steps_wanted``: how many steps are to be recorded for the
    range to be narrow, where the recorded ones differ too much for that. ``absent``: by rank, the time of a step for
    which the recorded ranks wait for one that was not recorded. The replay takes these to gain as much as the others;
    if they do not, nothing is won, which is the least of every range."""

    step_ns: int
    after_ns: int
    after_range_ns: tuple[int, int]
    steps_wanted: int | None = None
    absent: dict[int, int] = Field(default_factory=dict)
    actions: list[Action]
    parts_before: dict[str, int]
    parts_after: dict[str, int]
    limit: Limit
    next_limit: Limit


class WhatIf(Model):
    """What a step would take after changes that somebody asks for; times as of `Plan`. ``saving_range_ns``: the least
    and the most that it becomes shorter by. ``error_share``: of a step, how far the replay of this recording is off at
    most. ``without``: fingerprints of the findings whose changes are made; ``untold``: those of them of which the
    replay knows no change. ``scale``: operator type or class to the factor that its kernels take; ``rank_as``: rank to
    that whose time it takes."""

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
