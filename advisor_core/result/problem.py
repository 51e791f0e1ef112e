"""Problems: findings as a report numbers them, causes under their symptoms, and the time that no finding explains."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.result.finding import Basis, Severity
from advisor_core.text.base import Model


class Shared(Model):
    """Time of a problem that stands under another one, which took it first: ``ns`` of a step under ``number``."""

    number: str
    ns: int


class Problem(Model):
    """A finding in its place of the report, together with its causes.

    ``number``: ``F1`` for a symptom or a finding on its own, ``F1a`` for a cause of it, ``F1a1`` for a cause of that.
    ``parent``: the number that it stands below; ``depth``: how far below. ``findings``: fingerprints, its own first,
    then those of everything below it. ``causes``: numbers directly below it. ``also_causes`` and ``symptoms``: causes
    that stand elsewhere, and all that it is a cause of.

    ``stake_ns``: what the findings claim together of a step of ``rank``; ``share_of_step``: what share of it that is;
    ``own_ns``: what its own finding claims on the rank that it is shown for. ``basis``: the weakest of the findings.
    ``shared``: what the finding measured, and neither it nor its causes claim, as problems that stand elsewhere took it
    from the same entries of the ledger; most first. ``time``: whether there is time at stake; if not, whether what was
    measured is counted under other findings.
    ``severity``: the highest of the findings. ``actor``: the number whose first advice to follow first.
    """

    number: str
    parent: str | None
    depth: int
    findings: list[str]
    causes: list[str]
    also_causes: list[str]
    symptoms: list[str]
    rank: int | None
    stake_ns: int
    share_of_step: float
    own_ns: int
    basis: Basis
    shared: list[Shared] = Field(default_factory=list)
    time: Literal["at_stake", "counted_elsewhere", "none"]
    severity: Severity
    actor: str


class Unexplained(Model):
    """A ledger entry of which ``ns`` of the mean step of a rank are claimed by no finding."""

    rank: int
    role: str | None
    path: str
    ns: int
    share_of_step: float


class Coverage(Model):
    """The part of the mean step that is accounted for: booked under a cause other than ``unknown``, and claimed by
    findings; 0 where the ranks are not of one run, and have no mean step. ``unexplained_from``: the share of the step
    above which ``unexplained`` lists an entry."""

    known_share: float = 0.0
    claimed_share: float = 0.0
    unexplained_from: float = 0.0
