"""What lies where in time: the recorded lanes of some ranks, for renderers that show a timeline."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.text.base import Model

Why = Literal["all", "slowest", "median", "waited_for", "waiting"]
"""Why a rank is shown: all are, it has the longest steps, or those in the middle, it is the one that others waited for
most, or the one that waited most."""


class Track(Model):
    """One lane of a rank: its ledger, what the end of the step waited for, or a stream of the device.

    ``names``: entries of the ledger, or names of kernels. ``spans``: start (ns of the rank's own clock), length in ns
    and number in ``names`` of each, in order of start; those of a stream may overlap. ``stream``: -1 of collectives
    that no stream is recorded of; ``talks``: the names that are of collectives. ``left_out``: how many spans there was
    no room for; none is longer than ``left_out_ns``.
    """

    kind: Literal["ledger", "critical_path", "stream"]
    stream: int | None = None
    names: list[str]
    talks: list[int] = Field(default_factory=list)
    spans: list[tuple[int, int, int]]
    left_out: int = 0
    left_out_ns: int = 0


class Window(Model):
    """A step that is shown."""

    step: int | None
    start_ns: int
    end_ns: int


class RankTimeline(Model):
    """The lanes of a rank. ``ahead_ns``: by how much its clock is ahead of that of the first rank; ``apart``: it was
    recorded at another time than the first rank, so that the two have no common clock. ``steps``: those that are shown,
    in order, of ``recorded_steps``."""

    rank: int
    role: str | None = None
    why: Why = "all"
    ahead_ns: int = 0
    apart: bool = False
    steps: list[Window]
    recorded_steps: int
    tracks: list[Track]


class Arrow(Model):
    """A wait across ranks: ``rank`` waited until ``end_ns`` of its clock, ``ns`` long, for the collective that
    ``last_rank`` began at ``start_ns`` of its own clock on ``stream``."""

    role: str | None = None
    last_rank: int
    stream: int
    start_ns: int
    rank: int
    end_ns: int
    ns: int


class Timeline(Model):
    """``ranks``: those that are shown, of ``recorded_ranks``. ``arrows``: the longest waits first, of ``waits`` whose
    two ends are shown. ``files``: formats that are written with it, and their files, which may link to one another."""

    ranks: list[RankTimeline]
    recorded_ranks: int
    arrows: list[Arrow] = Field(default_factory=list)
    waits: int = 0
    files: dict[str, str] = Field(default_factory=dict)
