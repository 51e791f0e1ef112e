"""The own time of ranks: from leaving one call that joins ranks to arriving at the next.

Ranks that do the same work arrive together where each takes as long as the others. So a cure that makes a rank as quick
as its peers, or shares out their work evenly, scales what the rank does before each call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pandas as pd

from advisor_core.contracts.cure import AsPeers, EvenWork, HigherClock, KernelsTake, MoreMicroBatches, OperatorsTake
from advisor_core.facts.intervals import Ints
from advisor_core.facts.replay.nodes import TASK
from advisor_core.job.contention import Floats
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.like_peers import share_of_peers
from advisor_core.job.micro_batches import FinerPipelines
from advisor_core.job.rank_model import RankModel
from advisor_core.job.same_work import scaled
from advisor_core.replay.graph import Graph

JobCure = AsPeers | EvenWork | HigherClock | KernelsTake | OperatorsTake | MoreMicroBatches
"""Cures of the whole job."""


MATRIX = ("matmul", "attention", "convolution")
"""Classes of operators that the matrix unit computes."""

_OF_PEERS = {"usual": "median", "least": "max", "most": "min"}
"""For each bound of a cure, the statistic of what the peers take that the rank then takes."""


class OwnTime:
    """The calls that join the ranks of a job, and what each rank did before each of them."""

    def __init__(self, job: JobGraph) -> None:
        self.job = job
        calls = job.calls.sort_values(["rank", "start_ns"], kind="stable", ignore_index=True)
        first = min(
            int(model.nodes.start_ns[model.nodes.kind == TASK].min()) - offset
            for model, offset in zip(job.models, job.offset_ns, strict=True)
        )
        ended = (calls["end_ns"] - first).groupby(calls["rank"]).cummax()
        left = ended.groupby(calls["rank"]).shift(fill_value=0)
        self.calls = calls.assign(own_ns=(calls["start_ns"] - first - left).clip(lower=0))
        """By rank and in order of arrival, with ``own_ns``: from leaving the call before, or from the first task of the
        job, to arriving."""
        self._finer = cache(lambda pipelines: FinerPipelines(job, pipelines))
        self._shares: Callable[[AsPeers | EvenWork], np.ndarray] = cache(self._compared)
        """Of each row of ``calls``, for a cure that compares all ranks once for each of them."""
        self._like_peers: Callable[[AsPeers], Floats | None] = cache(self._share_of_peers)
        """Of each node of the rank of a cure: replays ask for it again and again."""

    def with_cure(self, number: int, graph: Graph, cure: JobCure) -> Graph:
        """The graph of the rank with this number in the job, as changed so far, with the cure."""
        model = self.job.models[number]
        if isinstance(cure, KernelsTake):
            return scaled(graph, np.where(model.kernels, cure.share.get(model.rank, 1.0), 1.0))
        if isinstance(cure, HigherClock):
            quicker = model.kernels if cure.at == "most" else model.kernels & _of_matrix(model)
            return scaled(graph, np.where(quicker, cure.share.get(model.rank, 1.0), 1.0))
        if isinstance(cure, OperatorsTake):
            return scaled(graph, _of_operators(model, cure))
        if isinstance(cure, MoreMicroBatches):
            return self._finer(cure.pipelines).with_cure(number, graph, cure)
        if isinstance(cure, AsPeers) and model.rank != cure.rank:
            return graph
        share = self._at_nodes(number, self._shares(cure))
        if isinstance(cure, EvenWork):
            return scaled(graph, np.where(model.kernels, share, 1.0))
        share = np.where(model.replay.recorded.talks, 1.0, share)
        like_peers = self._like_peers(cure)
        return _scaled_with_waits(graph, share, share if like_peers is None else like_peers)

    def _share_of_peers(self, cure: AsPeers) -> Floats | None:
        """As `share_of_peers`, of the rank of a cure, which was recorded."""
        models = {model.rank: model for model in self.job.models}
        return share_of_peers(models[cure.rank], [models[rank] for rank in cure.peers if rank in models], cure.at)

    def _compared(self, cure: AsPeers | EvenWork) -> np.ndarray:
        return self._evened(cure) if isinstance(cure, EvenWork) else self._as_peers(cure)

    def _at_nodes(self, number: int, shares: np.ndarray) -> np.ndarray:
        """Of each node of a rank the share of the call that it comes before. ``shares``: of each row of ``calls``."""
        own = shares[(self.calls["rank"] == self.job.models[number].rank).to_numpy()]
        found: np.ndarray = np.append(own, self._behind_the_last(own))[self._call_behind(number)]
        return found

    def _behind_the_last(self, shares: np.ndarray) -> float:
        """The share of what a rank does behind its last call. ``shares``: of its calls, in order. In a long run the
        first call of a step comes next: the median of those that begin the recorded steps, but for the first of them,
        before which less was recorded. 1 where the steps have no equal number of calls."""
        steps = self.job.steps
        if not self.job.repeats or not len(shares) or len(shares) % steps:
            return 1.0
        begin = shares[:: len(shares) // steps]
        return float(np.median(begin[1:] if steps > 1 else begin))

    def _call_behind(self, number: int) -> Ints:
        """Of each node of a rank the number of the call of the rank that comes next."""
        model, offset = self.job.models[number], self.job.offset_ns[number]
        arrivals = self.calls.loc[self.calls["rank"] == model.rank, "start_ns"].to_numpy() + offset
        return np.searchsorted(arrivals, model.nodes.end_ns, side="left")

    def _as_peers(self, cure: AsPeers) -> np.ndarray:
        """The share of its own time that the rank then takes before each call: less than 1 where it is later than its
        peers."""
        calls = self.calls
        theirs = calls[calls["rank"].isin(cure.peers)].groupby("call")["own_ns"]
        peers = theirs.agg(_OF_PEERS[cure.at])
        usual = calls["call"].map(peers).to_numpy(dtype=np.float64)
        share = np.fmin(usual / np.maximum(calls["own_ns"].to_numpy(), 1), 1.0)
        return np.where((calls["rank"] == cure.rank).to_numpy() & np.isfinite(usual), share, 1.0)

    def _evened(self, cure: EvenWork) -> np.ndarray:
        """The share of their time that the kernels of each rank before each call then take."""
        calls = self.calls
        worked = {name: np.zeros(len(calls)) for name in ("matrix", "other")}
        is_work = np.zeros(len(calls), dtype=np.bool_)
        for number, model in enumerate(self.job.models):
            own = np.flatnonzero(calls["rank"] == model.rank)
            behind, kernels = self._call_behind(number), model.kernels
            took, matrix = model.replay.recorded.graph.duration, _of_matrix(model)
            for name, chosen in (("matrix", kernels & matrix), ("other", kernels & ~matrix)):
                worked[name][own] = np.bincount(behind[chosen], took[chosen], len(own) + 1)[: len(own)]
            named = kernels & _of_types(model, cure.operators) if cure.operators else kernels
            is_work[own] = np.bincount(behind[named], minlength=len(own) + 1)[: len(own)] > 0
        took = np.sum(list(worked.values()), axis=0)
        inside = calls["rank"].isin(cure.ranks).to_numpy()
        is_work &= inside & (took > 0)
        ranks, call = calls["rank"], calls["call"]
        overall = _slower(ranks, took, inside & ~is_work)
        slower = {name: _slower(ranks, part, inside & ~is_work, overall) for name, part in worked.items()}
        alike = pd.DataFrame({name: part / slower[name] for name, part in worked.items()})[is_work]
        even = alike.groupby(call[is_work]).mean()
        if cure.at == "least":
            whole = pd.DataFrame({"call": call[is_work], "worked": alike.sum(axis=1)})
            uneven = _unevenness(whole).clip(upper=whole.groupby("call")["worked"].max() / even.sum(axis=1))
            even = even.mul(uneven, axis=0)
        takes = np.sum([call.map(even[name]).to_numpy(dtype=np.float64) * slower[name] for name in worked], axis=0)
        return np.where(is_work, takes / np.maximum(took, 1), 1.0)


def _slower(ranks: pd.Series, worked: np.ndarray, elsewhere: np.ndarray, otherwise: np.ndarray | None = None) -> Floats:
    """By what each rank is slower than the mean of all at work that is the same on all of them, ns ``worked`` before
    each call, of the calls ``elsewhere``; where it has none, ``otherwise``, else 1."""
    totals = pd.Series(worked[elsewhere]).groupby(ranks.to_numpy()[elsewhere]).sum()
    found = ranks.map(totals / totals.mean()).to_numpy(dtype=np.float64)
    return np.where(found > 0, found, 1.0 if otherwise is None else otherwise)


def _of_matrix(model: RankModel) -> np.ndarray:
    """The tasks whose class keeps the matrix unit busy: a slow clock slows these, and not what waits for memory."""
    matrix = model.operators["operator_class"].isin(MATRIX).to_numpy()
    tasks = model.nodes.kind == TASK
    found: np.ndarray = tasks & matrix[np.where(tasks, model.nodes.row, 0)]
    return found


def _unevenness(worked: pd.DataFrame) -> pd.Series:
    """Of each call, how far above their mean the longest of the ranks is, the longest of all left out: 1 where only one
    is left. ``worked``: ``call`` and ``worked`` of each rank."""
    others = worked.drop(worked.groupby("call")["worked"].idxmax()).groupby("call")["worked"]
    uneven: pd.Series = (others.max() / others.mean()).reindex(worked["call"].unique()).fillna(1.0)
    return uneven.sort_index()


def _of_types(model: RankModel, types: frozenset[str]) -> np.ndarray:
    """The tasks of these operator types."""
    named = model.operators["named"].isin(types).to_numpy()
    tasks = model.nodes.kind == TASK
    found: np.ndarray = tasks & named[np.where(tasks, model.nodes.row, 0)]
    return found


def _of_operators(model: RankModel, cure: OperatorsTake) -> np.ndarray:
    """The share of its time that each node then takes."""
    share = np.ones(len(model.operators))
    for name, taken in cure.share.items():
        share[(model.operators == name).any(axis=1).to_numpy()] = taken
    tasks = model.nodes.kind == TASK
    return np.where(tasks, share[np.where(tasks, model.nodes.row, 0)], 1.0)


def _scaled_with_waits(graph: Graph, share: np.ndarray, worked: np.ndarray) -> Graph:
    """The graph with the duration of each node scaled by ``worked``, and what waits for nothing known by ``share``."""

    def times(values: Ints, by: np.ndarray) -> Ints:
        return np.where(values > 0, np.rint(values * by), values).astype(np.int64)

    return scaled(graph, worked).changed(pause=times(graph.pause, share), lag=times(graph.lag, share[graph.target]))
