"""The differences between ranks: in the parts of a step, in operators and in collectives."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor_core.text.base import Model


class RankTime(Model):
    rank: int
    ns: int


class Spread(Model):
    """The time that something takes in a mean step of each of ``ranks``. ``kind`` and ``name``: an entry of the ledger
    (``communication`` without waiting, which ``communication/wait`` is), an operator type, the operation of collectives
    in groups of ``members`` ranks (``None`` unknown), or a phase without waiting for other ranks. A rank that does not
    have it takes no time for it. ``quartiles``: a quarter, half and three quarters of the ranks take no longer;
    ``None`` of fewer than 4 ranks. ``outliers``: ranks further from the two outer quartiles than these are apart by
    half as much again, and by 0.5 % of the step; the furthest first."""

    role: str | None = None
    kind: Literal["part", "operator", "collective", "phase"]
    name: str
    members: int | None = None
    ranks: int
    least: RankTime
    quartiles: tuple[int, int, int] | None
    most: RankTime
    outliers: list[RankTime] = Field(default_factory=list)
