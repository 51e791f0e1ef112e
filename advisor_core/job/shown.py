"""Which ranks and which steps a timeline shows of a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from advisor_core.result.timeline import Why

SHOWN_RANKS = 8
"""Up to so many ranks all are shown: a host of accelerators has eight, and a screen holds no more. Our choice."""


@dataclass(frozen=True)
class Shown:
    """``ranks``: why each rank that is shown is. ``steps``: ids of all steps, those that are wanted most first."""

    ranks: Mapping[int, Why]
    steps: tuple[int, ...]


def shown(walls: Mapping[int, Mapping[int, int]], waits: Mapping[int, pd.DataFrame]) -> Shown:
    """``walls``: rank to the length in ns of each of its steps, by id and in order. ``waits``: rank to its
    `advisor_core.facts.communication.cross_rank_waits`. A rank without steps is not shown.

    Of many ranks those with the longest and the median step are shown, the one that others waited for most and the one
    that waited most; where several are alike the lowest.
    """
    means = {rank: sum(own.values()) / len(own) for rank, own in walls.items() if own}
    if len(means) <= SHOWN_RANKS:
        return Shown(dict.fromkeys(sorted(means), "all"), by_interest(walls))
    ordered = sorted(means, key=lambda rank: (means[rank], rank))
    waited_for: Counter[int] = Counter()
    waiting: Counter[int] = Counter()
    for rank, own in waits.items():
        others = own[own["last_rank"] != rank]
        waiting[rank] += sum(others["waited_ns"].tolist())
        for last, ns in zip(others["last_rank"].tolist(), others["waited_ns"].tolist(), strict=True):
            waited_for[last] += ns
    reasons: tuple[tuple[Why, int | None], ...] = (
        ("waited_for", _most(waited_for, means)),
        ("slowest", max(means, key=lambda rank: (means[rank], -rank))),
        ("waiting", _most(waiting, means)),
        ("median", ordered[(len(ordered) - 1) // 2]),
    )
    chosen: dict[int, Why] = {}
    for why, number in reasons:
        if number is not None:
            chosen.setdefault(number, why)
    return Shown(dict(sorted(chosen.items())), by_interest(walls))


def by_interest(walls: Mapping[int, Mapping[int, int]]) -> tuple[int, ...]:
    """The ids of all steps: the longest of any rank, then those that are nearest to it."""
    longest: dict[int, int] = {}
    for own in walls.values():
        for step, ns in own.items():
            longest[step] = max(ns, longest.get(step, 0))
    if not longest:
        return ()
    order: Sequence[int] = sorted(longest)
    slowest = max(order, key=lambda step: (longest[step], -step))
    middle = order.index(slowest)
    return tuple(sorted(order, key=lambda step: (abs(order.index(step) - middle), step)))


def _most(times: Mapping[int, int], known: Mapping[int, float]) -> int | None:
    """The rank with most time, of those that are known; none where none has any."""
    having = [rank for rank, ns in times.items() if ns > 0 and rank in known]
    return max(having, key=lambda rank: (times[rank], -rank), default=None)
