"""The own time of ranks: from leaving one call that joins ranks to arriving at the next.

Ranks that do the same work arrive together where each takes as long as the others. So a cure that makes a rank as quick
as its peers, or shares out their work evenly, scales the own time of the rank before each call.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from advisor_core.contracts.cure import AsPeers, EvenWork, KernelsTake, OperatorsTake
from advisor_core.facts.intervals import Ints
from advisor_core.facts.replay.nodes import TASK
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.rank_model import RankModel
from advisor_core.replay.graph import Graph

JobCure = AsPeers | EvenWork | KernelsTake | OperatorsTake
"""Cures of the whole job."""


def own_times(job: JobGraph) -> pd.DataFrame:
    """The calls that join ranks, by rank and in order of arrival, with ``own_ns``: from leaving the call before, or
    from the first task of the job, to arriving."""
    calls = job.calls.sort_values(["rank", "start_ns"], kind="stable", ignore_index=True)
    first = min(
        int(model.nodes.start_ns[model.nodes.kind == TASK].min()) - offset
        for model, offset in zip(job.models, job.offset_ns, strict=True)
    )
    ended = (calls["end_ns"] - first).groupby(calls["rank"]).cummax()
    left = ended.groupby(calls["rank"]).shift(fill_value=0)
    return calls.assign(own_ns=(calls["start_ns"] - first - left).clip(lower=0))


def with_cure(model: RankModel, offset_ns: int, graph: Graph, cure: JobCure, times: pd.DataFrame) -> Graph:
    """The graph of a rank, as changed so far, with the cure. ``times``: of `own_times`."""
    if isinstance(cure, KernelsTake):
        kernels = (model.nodes.kind == TASK) & ~model.replay.recorded.talks
        return _scaled(graph, np.where(kernels, cure.share.get(model.rank, 1.0), 1.0))
    if isinstance(cure, OperatorsTake):
        return _scaled(graph, _of_operators(model, cure))
    shares = _as_peers(cure, times) if isinstance(cure, AsPeers) else _evened(cure, times)
    own = times["rank"] == model.rank
    before = np.append(shares[own.to_numpy()], 1.0)
    arrivals = times.loc[own, "start_ns"].to_numpy() + offset_ns
    share = before[np.searchsorted(arrivals, model.nodes.end_ns, side="left")]
    if isinstance(cure, EvenWork):
        # Work is in kernels: the host that hands them over is at another place meanwhile.
        computes = (model.nodes.kind == TASK) & ~model.replay.recorded.talks
        return _scaled(graph, np.where(computes, share, 1.0))
    return _scaled(graph, np.where(model.replay.recorded.talks, 1.0, share), waits=True)


def _of_operators(model: RankModel, cure: OperatorsTake) -> np.ndarray:
    """The share of its time that each node then takes."""
    share = np.ones(len(model.operators))
    for name, taken in cure.share.items():
        share[(model.operators == name).any(axis=1).to_numpy()] = taken
    return np.where(model.nodes.kind == TASK, share[np.minimum(model.nodes.row, len(share) - 1)], 1.0)


def _as_peers(cure: AsPeers, times: pd.DataFrame) -> np.ndarray:
    """The share of its own time that each row of ``times`` then takes: less than 1 of the rank where it is later than
    its peers."""
    peers = times[times["rank"].isin(cure.peers)].groupby("call")["own_ns"].median()
    usual = times["call"].map(peers).to_numpy(dtype=np.float64)
    share = np.fmin(usual / np.maximum(times["own_ns"].to_numpy(), 1), 1.0)
    return np.where((times["rank"] == cure.rank).to_numpy() & np.isfinite(usual), share, 1.0)


def _evened(cure: EvenWork, times: pd.DataFrame) -> np.ndarray:
    """As `_as_peers`, of ranks that take the mean of all."""
    inside = times["rank"].isin(cure.ranks).to_numpy()
    mean = times["call"].map(times[inside].groupby("call")["own_ns"].mean()).to_numpy(dtype=np.float64)
    own = times["own_ns"].to_numpy()
    return np.where(inside & np.isfinite(mean) & (own > 0), mean / np.maximum(own, 1), 1.0)


def _scaled(graph: Graph, share: np.ndarray, *, waits: bool = False) -> Graph:
    """The graph with the duration of each node scaled; with ``waits`` what it waits for nothing known as well."""

    def times(values: Ints, by: np.ndarray) -> Ints:
        return np.where(values > 0, np.rint(values * by), values).astype(np.int64)

    duration = times(graph.duration, share)
    if not waits:
        return graph.changed(duration=duration)
    return graph.changed(duration=duration, pause=times(graph.pause, share), lag=times(graph.lag, share[graph.target]))
