"""Clocks of a job: how far those of its ranks are apart, from the common ends of their collectives.

Ranks of one host have the same clock, ranks of several do not. A collective ends on all its ranks at about the same
moment, so that the median over the calls that two ranks have in common tells how far their clocks are apart (as dPRO
aligns its traces: docs/sources.md#replay-and-its-error).
"""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

CLOCKS_NS = 60_000_000_000
"""Clocks of the hosts of a job are not further apart than this (any time service keeps them within milliseconds):
recordings that are were made at different times."""


def clock_offsets(calls: pd.DataFrame, last: Mapping[int, int]) -> dict[int, int]:
    """Rank to the ns by which its clock is ahead of that of the first. ``calls``: ``rank``, ``call`` and ``end_ns``;
    ``last``: rank to its last recorded moment. A rank that has no call in common with the others is taken to have the
    clock of the first; where it was recorded at another time, to have ended with the first."""
    offsets: dict[int, int] = {}
    ends = {rank: calls[calls["rank"] == rank].set_index("call")["end_ns"] for rank in last}
    for first in sorted(last):
        later = last[first] - last[min(last)]
        offsets.setdefault(first, later if abs(later) > CLOCKS_NS else 0)
        reached = [first]
        for rank in reached:  # the nearer ranks come first: each further one adds its own error
            for other in sorted(ends.keys() - offsets.keys()):
                if (apart := _apart(ends[rank], ends[other])) is not None:
                    offsets[other] = offsets[rank] + apart
                    reached.append(other)
    return offsets


def _apart(ends: pd.Series, others: pd.Series) -> int | None:
    """The median over the calls that both have, of by how much the second ended later on its clock."""
    both = ends.index.intersection(others.index)
    if not len(both):
        return None
    return int((others.loc[both] - ends.loc[both]).median())
