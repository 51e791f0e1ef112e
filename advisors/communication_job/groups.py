"""The ranks that work together with one rank, by the recorded communication groups."""

from __future__ import annotations

import pandas as pd

from advisor_core.api.facts import Profile


def group_members(groups: pd.Series, profile: Profile, dimension: str) -> tuple[int, ...]:
    """The recorded group in which most of the operations took place; of several those of the size recorded for this
    dimension first."""
    counts, size = groups.value_counts(), profile.parallel.get(dimension)
    candidates = [
        (size is not None and len(ranks) == size, int(count), tuple(ranks))
        for group, count in zip(counts.index.tolist(), counts.tolist(), strict=True)
        for key, ranks in profile.groups.items()
        if group and key.endswith(str(group))
    ]
    return max(candidates, default=(False, 0, ()))[2]


def pipeline_by_order(profile: Profile) -> tuple[int, ...]:
    """Without recorded groups, from the sizes: stages are the outermost dimension, as Megatron numbers ranks."""
    stages, world = profile.parallel.get("pp", 1), profile.world_size or 0
    if stages < 2 or world % stages:
        return ()
    stride = world // stages
    return tuple(range(profile.rank % stride, world, stride))


def group_of_size(profile: Profile, dimension: str) -> tuple[int, ...]:
    """The only recorded group of the size of a dimension; empty where there is none, or several that differ."""
    size = profile.parallel.get(dimension)
    groups = {tuple(ranks) for ranks in profile.groups.values() if len(ranks) == size}
    return groups.pop() if len(groups) == 1 else ()
