"""An iteration of reinforcement learning whose roles were recorded one by one, on one axis of time."""

from __future__ import annotations

from pydantic import Field

from advisor_core.text.base import Model


class RoleSpan(Model):
    """A step of a role on a rank; times are ns from the first of all spans, by the clock of the rank's host."""

    role: str
    rank: int
    step: int | None
    start_ns: int
    end_ns: int


class RoleGap(Model):
    """The time between a role and the next: ``ns`` from the end of its last rank, ``last_rank``, to the start of the
    first rank of the next one, 0 where they overlap; ``mean_ns``: from the end to the next start of the same rank, mean
    over the ranks that are in both. What passes in it no recording tells."""

    after: str
    before: str
    ns: int
    mean_ns: int | None
    last_rank: int


class Iteration(Model):
    """``spans`` and ``gaps``: in order of time; none where the roles were recorded so far apart, ``apart_ns``, that it
    was not in one iteration."""

    spans: list[RoleSpan] = Field(default_factory=list)
    gaps: list[RoleGap] = Field(default_factory=list)
    apart_ns: int | None = None
