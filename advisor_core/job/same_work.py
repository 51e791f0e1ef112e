"""Ranks that do the same work, and the job if each of them took as long as they take on average.

Ranks of one stage of a pipeline do the same work, each on its own data or its own part of the tensors. They call the
same collectives in the same order; so what the host hands over between two of them is the same part of the work on all
of these ranks, whenever it is done.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from advisor_core.facts.communication.state import POINT_TO_POINT
from advisor_core.facts.intervals import Ints
from advisor_core.facts.replay.nodes import FEED, FEEDERS, LAUNCH, TASK
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.rank_model import RankModel
from advisor_core.replay.graph import Graph
from advisor_core.result.layout import Layout

ALIKE = 0.9
"""A rank that runs fewer kernels than this share of what the median of its peers does, or so many more, does other
work: it is compared with none. A convention; ranks that trained the same stage differ by a few kernels at most in the
recordings at hand."""


def stages_of(job: JobGraph, layout: Layout) -> list[list[int]] | None:
    """The ranks of the job that were recorded, by stage of the pipeline: one list where there is none. ``None`` where
    it is not known: ranks send to each other, and their stages are not recorded."""
    if layout.stages is None and any(_sends(model) for model in job.models):
        return None
    stages: list[list[int]] = [[] for _ in range(layout.stages or 1)]
    for model in job.models:
        stages[layout.stage(model.rank) or 0].append(model.rank)
    return stages


def alike(job: JobGraph, ranks: Sequence[int]) -> list[int]:
    """Those of the ranks of a stage that do the same work, as far as the number of their kernels tells."""
    counts = {model.rank: int(model.kernels.sum()) for model in job.models if model.rank in ranks}
    usual = float(np.median(list(counts.values()))) if counts else 0.0
    return [rank for rank, count in counts.items() if ALIKE * usual <= count <= usual / ALIKE]


def _sends(model: RankModel) -> bool:
    return model.calls is not None and bool(model.calls["operation"].str.contains(POINT_TO_POINT).any())


def evened(models: Sequence[RankModel]) -> list[Graph]:
    """The graphs of ranks that do the same work, in each part of which each takes the mean of them. What kernels take
    in a part is scaled, and what the host takes; collectives stay, and so do delays that nothing explains."""
    parts = parts_of(models, [handed_over(model) for model in models])
    graphs = [model.replay.recorded.graph for model in models]
    for of_kind in (_kernels, _hosts):
        chosen = [of_kind(model) for model in models]
        count = 1 + max(int(part.max(initial=0)) for part in parts)
        sums = [
            np.bincount(part[own], graph.duration[own], count)
            for part, own, graph in zip(parts, chosen, graphs, strict=True)
        ]
        mean = np.mean(sums, axis=0)
        shares = [np.where(took > 0, mean / np.maximum(took, 1), 1.0) for took in sums]
        graphs = [
            scaled(graph, np.where(own, share[part], 1.0))
            for graph, own, share, part in zip(graphs, chosen, shares, parts, strict=True)
        ]
    return graphs


def parts_of(models: Sequence[RankModel], places: Sequence[Ints]) -> list[Ints]:
    """Of each node of each rank the number of the part of the work that it belongs to: what is handed over up to a
    collective, from the one before it on. All is one part where the ranks did not call as many. ``places``:
    `handed_over` of each."""
    borders = [np.sort(place[model.replay.recorded.talks]) for place, model in zip(places, models, strict=True)]
    if len({len(border) for border in borders}) > 1 or any((border < 0).any() for border in borders):
        borders = [border[:0] for border in borders]
    return [np.searchsorted(border, place, side="left") for border, place in zip(borders, places, strict=True)]


def handed_over(model: RankModel) -> Ints:
    """Of each node its place in the order in which the host hands over. A task without a launch has that of the one
    before it; -1 where there is none."""
    nodes = model.nodes
    place = np.full(len(nodes.kind), -1, dtype=np.int64)
    feeding = nodes.chain == FEEDERS
    place[feeding] = np.arange(int(feeding.sum()))
    fed = np.flatnonzero((nodes.kind == TASK) | (nodes.kind == LAUNCH))
    feed = nodes.at(FEED, nodes.row[fed])
    place[fed] = np.where(feed >= 0, place[np.maximum(feed, 0)], -1)
    tasks = np.flatnonzero(nodes.kind == TASK)
    tasks = tasks[np.argsort(nodes.start_ns[tasks], kind="stable")]
    unknown = place[tasks] < 0
    place[tasks[unknown]] = np.maximum.accumulate(place[tasks])[unknown]
    return place


def scaled(graph: Graph, share: npt.NDArray[np.float64]) -> Graph:
    """The graph with the duration of each node scaled."""
    return graph.changed(duration=np.rint(graph.duration * share).astype(np.int64))


def _kernels(model: RankModel) -> npt.NDArray[np.bool_]:
    return model.kernels


def _hosts(model: RankModel) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = model.nodes.kind != TASK
    return found
