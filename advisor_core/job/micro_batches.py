"""More and smaller micro-batches in a pipeline, on the graph of the recorded ones.

A micro-batch that is cut into n lets the next stage begin when the first of n pieces has arrived, which is
``(1 - 1/n)`` of its time sooner, as long as the pieces that follow arrive in time: so the shorter of what the stage
before did for it and of what this stage does with it counts. So what waits for a transfer waits for less of what comes
before it, but not for less of the transfer: the pieces take as long to move. Filling and draining become n times
shorter, and what stages compute meanwhile stays. Any schedule will do that hands each micro-batch on when it is done.

Pieces of kernels must be launched, and start, each by itself: the host hands over n times as much, and kernels take
longer altogether (`MoreMicroBatches`).
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
import pandas as pd

from advisor_core.contracts.cure import MoreMicroBatches
from advisor_core.facts.replay.changes import SHORT_GAP_NS
from advisor_core.facts.replay.nodes import FEED, LAUNCH
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.rank_model import RankModel
from advisor_core.replay.graph import Graph

SLOWER: Final = 0.07
"""By so much a step with half the micro-batch is slower without a pipeline, as the mean of four doublings that were
published (docs/sources.md#size-of-a-micro-batch): the least that is promised has it in kernels alone. Launches are a
part of it, and are replayed; usually kernels are taken to be slower by half of it, which is our choice."""

SHORTEST: Final = 0.05
"""Of the kernels of a rank so many are taken to be no longer than what it takes to start one; our choice."""


class FinerPipelines:
    """The transfers of the pipelines of a job, and what its stages do between them."""

    def __init__(self, job: JobGraph, pipelines: tuple[tuple[int, ...], ...]) -> None:
        stage = {rank: (line, place) for line, ranks in enumerate(pipelines) for place, rank in enumerate(ranks)}
        calls = job.calls[job.calls["pair"] & job.calls["rank"].isin(stage)]
        worked = [_worked(job, number, calls) for number in range(len(job.models))]
        calls = pd.concat(worked) if worked else calls
        peers = calls[["call", "rank", "start_ns", "before_ns"]]
        met = calls.merge(peers, on="call", suffixes=("", "_of_peer"))
        met = met[met["rank"] != met["rank_of_peer"]]
        same = [
            _neighbours(stage[rank], stage[peer], len(pipelines[stage[rank][0]]))
            for rank, peer in zip(met["rank"], met["rank_of_peer"], strict=True)
        ]
        self._met = met[np.array(same, dtype=np.bool_)].drop_duplicates(["rank", "node"])
        self._job = job
        self._inside = cache(self._kernels_inside)

    def with_cure(self, number: int, graph: Graph, cure: MoreMicroBatches) -> Graph:
        """The graph of the rank with this number in the job, as changed so far, with the cure."""
        model, own = self._job.models[number], self._transfers(number)
        if own.empty:
            return graph
        return _sooner(model, _dearer(model, graph, self._inside(number), cure), own, cure.times)

    def _transfers(self, number: int) -> pd.DataFrame:
        """The transfers between a rank and its neighbours."""
        return self._met[self._met["rank"] == self._job.models[number].rank]

    def _kernels_inside(self, number: int) -> np.ndarray:
        return _inside(self._job.models[number], self._transfers(number))


def _neighbours(one: tuple[int, int], other: tuple[int, int], stages: int) -> bool:
    """True of two stages of one pipeline that hand micro-batches to each other; the last one hands them to the
    first where stages are virtual."""
    apart = abs(one[1] - other[1])
    return one[0] == other[0] and (apart == 1 or apart == stages - 1)


def _worked(job: JobGraph, number: int, calls: pd.DataFrame) -> pd.DataFrame:
    """The transfers of a rank in order, with ``before_ns`` and ``after_ns``: what its kernels take since the transfer
    before it and until the next, in the step of the transfer."""
    model, offset = job.models[number], job.offset_ns[number]
    own = calls[calls["rank"] == model.rank].sort_values("start_ns", kind="stable")
    arrivals = own["start_ns"].to_numpy() + offset
    kernels = np.flatnonzero(model.kernels)
    behind = np.searchsorted(arrivals, model.nodes.end_ns[kernels], side="left")
    step = model.replay.step_of(model.nodes.start_ns[kernels])
    of_call = np.append(model.replay.step_of(arrivals), -1)
    took = model.replay.recorded.graph.duration[kernels]
    before = np.bincount(behind, np.where(step == of_call[behind], took, 0), len(own) + 1)[: len(own)]
    after = np.bincount(behind, np.where(step == of_call[behind - 1], took, 0), len(own) + 1)[1:]
    return own.assign(before_ns=before, after_ns=after)


def _sooner(model: RankModel, graph: Graph, own: pd.DataFrame, times: int) -> Graph:
    """The graph in which the nodes behind a transfer wait for its first piece; behind what its rank did before it comes
    as much time as the transfer took once both had arrived."""
    edges = model.replay.recorded.edges
    sooner, moves = np.zeros(len(graph), dtype=np.int64), np.zeros(len(graph), dtype=np.int64)
    overlap = np.minimum(own["before_ns_of_peer"].to_numpy(), own["after_ns"].to_numpy()) * (1 - 1 / times)
    nodes = own["node"].to_numpy()
    sooner[nodes] = overlap.astype(np.int64)
    moves[nodes] = own["end_ns"] - np.maximum(own["start_ns"], own["start_ns_of_peer"])
    waits = ~model.replay.recorded.talks[edges.target] & (sooner[edges.source] > 0)
    source, target = edges.source[waits], edges.target[waits]
    lag, pause = graph.lag.copy(), graph.pause.copy()
    lag[waits] -= sooner[source]
    np.maximum.at(pause, target, np.where(graph.before[target] >= 0, moves[source], 0))
    return graph.changed(lag=lag, pause=pause)


def _inside(model: RankModel, own: pd.DataFrame) -> np.ndarray:
    """The kernels that come before the last transfer of their step: those of micro-batches, but for the last backward
    pass of the first stage."""
    nodes = model.nodes
    sent = nodes.start_ns[own["node"].to_numpy()]
    last = pd.Series(sent).groupby(model.replay.step_of(sent)).max()
    steps = model.replay.step_of(nodes.start_ns)
    limit = last.reindex(np.arange(int(steps.max(initial=0)) + 1), fill_value=np.iinfo(np.int64).min).to_numpy()
    found: np.ndarray = model.kernels & (nodes.start_ns < limit[steps])
    return found


def _dearer(model: RankModel, graph: Graph, inside: np.ndarray, cure: MoreMicroBatches) -> Graph:
    """Each kernel as ``times`` pieces: as many launches, and what starting them takes more."""
    nodes, more = model.nodes, cure.times - 1
    duration, pause = graph.duration.copy(), graph.pause.copy()
    rows = nodes.row[inside]
    for kind in (FEED, LAUNCH):
        handed = nodes.at(kind, rows)
        duration[handed[handed >= 0]] *= cure.times
    pause[inside] += more * np.minimum(pause[inside], SHORT_GAP_NS)
    took = model.replay.recorded.graph.duration[model.kernels]
    start = float(np.quantile(took, SHORTEST)) if len(took) else 0.0
    if cure.at != "most":
        slower = SLOWER * np.log2(cure.times) * (1 if cure.at == "least" else 0.5)
        longer = np.maximum(np.minimum(start, duration[inside]) * more, slower * duration[inside])
        duration[inside] += longer.astype(np.int64)
    return graph.changed(duration=duration, pause=pause)
