"""Cures: what following the advice of a finding would change of the recorded work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class Cure:
    """A change of what was recorded on a rank, or on the ranks of a job. Advisors make cures for their rows; the model
    of the job replays the recording with one of them, or with several."""

    def promised(self, ns_per_step: int) -> Cure:
        """The cure where its rule promises so much: of a change whose size only the rule knows."""
        return self


@dataclass(frozen=True)
class AsPeers(Cure):
    """A rank that is no later than its peers: between two calls that it has in common with them it takes no longer than
    the median of theirs. ``peers``: ranks that do the same work."""

    rank: int
    peers: tuple[int, ...]


@dataclass(frozen=True)
class EvenWork(Cure):
    """Ranks that share out work evenly: between two calls that they have in common the kernels of each take the mean of
    all, but for what a rank is slower at everything else. ``operators``: types of kernels by which the stretches are
    known that are this work; without one all are."""

    ranks: tuple[int, ...]
    operators: frozenset[str] = frozenset()


@dataclass(frozen=True)
class KernelsTake(Cure):
    """Rank to the share of their time that its kernels then take."""

    share: Mapping[int, float]


@dataclass(frozen=True)
class OperatorsTake(Cure):
    """Operator type, or class as the ledger has it, to the share of their time that its kernels then take on every
    rank."""

    share: Mapping[str, float]
