"""Cures: what following the advice of a finding would change of the recorded work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, Self

Bound = Literal["usual", "least", "most"]
"""Value of a duration that a cure does not read in the recording but models: as is to be expected, or so that the cure
saves the least or the most that can be justified."""


@dataclass(frozen=True)
class Cure:
    """A change of what was recorded on a rank, or on the ranks of a job. Advisors make cures for their rows; the model
    of the job replays the recording with one of them, or with several.

    ``least`` and ``most``: the same change where what it models turns out so that it saves the least or the most;
    ``None`` where it is no other.
    """

    least: Self | None = field(default=None, kw_only=True)
    most: Self | None = field(default=None, kw_only=True)

    def bound(self, at: Bound) -> Self:
        """The change at this end of what it may save."""
        other = {"usual": None, "least": self.least, "most": self.most}[at]
        return self if other is None else other

    @property
    def changes_nothing(self) -> bool:
        """True where it is known to leave every recorded time as it is."""
        return False

    def promised(self, ns_per_step: int) -> Cure:
        """The cure where its rule promises so much: of a change whose size only the rule knows."""
        return self


@dataclass(frozen=True)
class _Compared(Cure):
    """A cure of which the model of the job knows what it brings at most and at least, as how far ranks differ."""

    at: Bound = field(default="usual", kw_only=True)

    def bound(self, at: Bound) -> Self:
        return self if at == self.at else replace(self, at=at)


@dataclass(frozen=True)
class AsPeers(_Compared):
    """A rank that is no later than its peers: between two calls that it has in common with them it takes no longer than
    the median of theirs, at least than the slowest and at most than the quickest of them. ``peers``: ranks that do the
    same work."""

    rank: int
    peers: tuple[int, ...]


@dataclass(frozen=True)
class EvenWork(_Compared):
    """Ranks that share out work evenly: between two calls that they have in common the kernels of each take the mean of
    all, but for what a rank is slower at everything else. At least they stay as uneven as all but the longest
    are now. ``operators``: types of kernels by which the stretches are
    known that are this work; without one all are."""

    ranks: tuple[int, ...]
    operators: frozenset[str] = frozenset()


@dataclass(frozen=True)
class MoreMicroBatches(_Compared):
    """Pipelines whose steps have ``times`` as many micro-batches, each as many times smaller: the same samples.
    ``pipelines``: the ranks of each in the order of stages. What a smaller micro-batch costs is modelled: usually
    kernels become slower by half of what was published, and each piece by as much as the shortest kernels take where
    that is more; at most it costs nothing, at the least as much as was published."""

    pipelines: tuple[tuple[int, ...], ...]
    times: int = 2


@dataclass(frozen=True)
class HigherClock(_Compared):
    """Rank to the share of their time that its kernels of the matrix unit take at a higher clock of the cores. The
    others mostly wait for memory, which has a clock of its own; at most they gain as much."""

    share: Mapping[int, float]


@dataclass(frozen=True)
class KernelsTake(Cure):
    """Rank to the share of their time that its kernels then take."""

    share: Mapping[int, float]


@dataclass(frozen=True)
class OperatorsTake(Cure):
    """Operator type, or class as the ledger has it, to the share of their time that its kernels then take on every
    rank."""

    share: Mapping[str, float]
