"""Slowdown: how much longer the steps take because ranks that do the same work do not take equally long for it.

Defined as in a published study of such jobs (docs/sources.md#slowdown-by-ranks): the recorded job over an ideal one, in
which every rank takes the mean of its peers in each part of its work; of a rank, the ideal job but for this rank, over
the ideal one. So two ranks that are late at the same time both stand out, though to mend one of them alone wins
nothing. Of a stage likewise, where the ideal is that the kernels of all stages take equally long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from advisor_core.job.job_graph import JobGraph
from advisor_core.job.same_work import evened, scaled
from advisor_core.replay.graph import Graph
from advisor_core.replay.sweep import MOST_SIDE_BY_SIDE, passes

MOST = MOST_SIDE_BY_SIDE
"""Of so many ranks the slowdown is told: of those that take most longer than their peers. Each costs a replay of the
whole job, and a pass takes as many side by side (`advisor_core.replay.sweep`)."""

_Graphs = Mapping[int, Graph]
"""By rank."""


@dataclass(frozen=True)
class Slowdown:
    """``step_ns``: a step as replayed; ``ideal_ns``: if ranks that do the same work took equally long, ``None`` where
    no two were recorded. ``ranks``: the slowdown by rank, of those that it is told of; ``stages``: by stage, of those
    that compute longer than the mean; none where there is but one stage, or not all were recorded."""

    step_ns: int
    ideal_ns: int | None = None
    ranks: Mapping[int, float] = field(default_factory=dict)
    stages: Mapping[int, float] = field(default_factory=dict)


def slowdown(job: JobGraph, step_ns: int, stages: Sequence[Sequence[int]], alike: Sequence[Sequence[int]]) -> Slowdown:
    """``step_ns``: of a step of the job as replayed. ``stages``: the ranks of each stage that were recorded;
    ``alike``: those of them that do the same work."""
    recorded: _Graphs = {model.rank: model.replay.recorded.graph for model in job.models}
    groups = [[model for model in job.models if model.rank in ranks] for ranks in alike if len(ranks) > 1]
    even = dict(recorded)
    for group in groups:
        even |= dict(zip((model.rank for model in group), evened(group), strict=True))
    longer = {
        model.rank: int((recorded[model.rank].duration - even[model.rank].duration).sum())
        for group in groups
        for model in group
    }
    slowest = sorted(sorted(longer, key=lambda rank: (-longer[rank], rank))[:MOST])
    asked = [even, *({**even, rank: recorded[rank]} for rank in slowest)] if groups else []
    of_ranks = len(asked)
    level, long = _levelled(job, even, stages) if len(stages) > 1 and all(stages) else (even, [])
    if long:  # shorter ones make nothing longer
        asked += [level, *({**level, **{rank: even[rank] for rank in stages[number]}} for number in long)]
    found = _steps_ns(job, asked)
    ranks, parts = found[:of_ranks], found[of_ranks:]
    return Slowdown(
        step_ns=step_ns,
        ideal_ns=ranks[0] if groups else None,
        ranks={rank: ns / max(1, ranks[0]) for rank, ns in zip(slowest, ranks[1:], strict=True)} if groups else {},
        stages={number: ns / max(1, parts[0]) for number, ns in zip(long, parts[1:], strict=True)},
    )


def _levelled(job: JobGraph, graphs: _Graphs, stages: Sequence[Sequence[int]]) -> tuple[dict[int, Graph], list[int]]:
    """The graphs with kernels that take equally long on the ranks of all stages, and the stages that take longer."""
    of_kernels = {model.rank: model.kernels for model in job.models}
    took = [float(np.mean([graphs[rank].duration[of_kernels[rank]].sum() for rank in stage])) for stage in stages]
    mean = float(np.mean(took))
    found = dict(graphs)
    for stage, own in zip(stages, took, strict=True):
        for rank in stage:
            found[rank] = scaled(graphs[rank], np.where(of_kernels[rank], mean / max(own, 1.0), 1.0))
    return found, [number for number, own in enumerate(took) if own > mean]


def _steps_ns(job: JobGraph, asked: Sequence[_Graphs]) -> list[int]:
    """The time of a step of the job with each of these graphs of its ranks."""
    found: list[int] = []
    for first, last in passes(len(asked), len(job.graph)):
        choices = [[graphs[model.rank] for model in job.models] for graphs in asked[first:last]]
        found += [lasting.ns // job.steps for _, lasting in job.lasting(choices)]
    return found
