"""A late rank that does the same work as its peers, if it took as long as they do for each piece of it.

What makes a rank late is then gone where it was: a slow host from all that it does, a data loader from the one wait for
it, a slow chip from the kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from advisor_core.contracts.cure import Bound
from advisor_core.facts.intervals import Ints
from advisor_core.facts.replay.nodes import CALL, FEED, LAUNCH, RETURN, ROOM, TASK
from advisor_core.job.contention import Floats
from advisor_core.job.rank_model import RankModel
from advisor_core.job.same_work import handed_over, parts_of

_OF_PEERS: Mapping[Bound, Callable[..., Floats]] = {"usual": np.median, "least": np.max, "most": np.min}
"""For each bound of a cure, the statistic of what the peers take that the rank then takes."""


def share_of_peers(late: RankModel, peers: Sequence[RankModel], at: Bound) -> Floats | None:
    """Of each node of a rank the share of its time that its peers take for it, where each of them has as many nodes of
    its kind in the same part of the work; else the share that they take for all of these together. 1 for collectives,
    and for a kind of which the peers take no less in all. ``at``: the median of the peers, the most that one takes or
    the least, for each part of the work. ``None`` where none of them was recorded, or the host of one of the ranks was
    not: then what it took is hidden in delays that nothing explains."""
    models = (late, *peers)
    if not peers or not all((model.nodes.kind == FEED).any() for model in models):
        return None
    places, statistic = [handed_over(model) for model in models], _OF_PEERS[at]
    parts = parts_of(models, places)
    count = 1 + max(int(part.max(initial=0)) for part in parts)
    found = np.ones(len(late.nodes.kind))
    for kind in (TASK, FEED, CALL, LAUNCH, RETURN, ROOM):
        nodes = [_in_order(*of_rank, kind) for of_rank in zip(models, parts, places, strict=True)]
        where = [part[own] for part, own in zip(parts, nodes, strict=True)]
        own, *theirs = (_took(model, chosen) for model, chosen in zip(models, nodes, strict=True))
        of_part, *of_peers = (_sums(part, took, count) for part, took in zip(where, (own, *theirs), strict=True))
        usual = statistic(of_peers, axis=0)
        if usual.sum() >= of_part.sum():
            continue
        share = _ratio(usual, of_part)[where[0]]
        as_many = np.ptp([np.bincount(part, minlength=count) for part in where], axis=0) == 0
        alike = as_many[where[0]]
        if alike.any():
            each = statistic([took[as_many[part]] for took, part in zip(theirs, where[1:], strict=True)], axis=0)
            # What is usual of each does not add up to what is usual of all.
            each *= _ratio(usual, _sums(where[0][alike], each, count))[where[0][alike]]
            share[alike] = _ratio(each, own[alike])
        found[nodes[0]] = share
    return found


def _in_order(model: RankModel, part: Ints, place: Ints, kind: int) -> Ints:
    """The nodes of a kind by part of the work, and there in the order in which the host handed them over; of tasks
    those that compute."""
    chosen = np.flatnonzero(model.kernels if kind == TASK else model.nodes.kind == kind)
    return chosen[np.lexsort((model.nodes.end_ns[chosen], place[chosen], part[chosen]))]


def _took(model: RankModel, chosen: Ints) -> Floats:
    return model.replay.recorded.graph.duration[chosen].astype(np.float64)


def _sums(part: Ints, took: Floats, parts: int) -> Floats:
    return np.bincount(part, took, parts).astype(np.float64)


def _ratio(one: Floats, other: Floats) -> Floats:
    """1 where the other is nothing."""
    found: Floats = np.where(other > 0, one / np.maximum(other, 1e-9), 1.0)
    return found
