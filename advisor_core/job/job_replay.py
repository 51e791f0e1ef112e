"""Replay of the steps of a job with changes: of all ranks, with all changes at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
import pandas as pd

from advisor_core.contracts.cure import Bound
from advisor_core.facts.intervals import Ints, union
from advisor_core.facts.replay.changes import Change, changed
from advisor_core.facts.replay.edges import INFERRED
from advisor_core.facts.replay.nodes import TASK
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.own_time import JobCure, OwnTime
from advisor_core.job.owners import OF_CALL, Owners
from advisor_core.job.sampling import margin_ns
from advisor_core.replay.graph import NEVER, Graph
from advisor_core.replay.long_run import Lasting
from advisor_core.result.plan import Chain, Limit, Owner

PARTS = ("compute", "communication", "idle")


@dataclass(frozen=True)
class Cures:
    """The changes that following the advice of one finding brings: to single ranks, and to the job."""

    of_ranks: Mapping[int, Change] = field(default_factory=dict)
    of_job: tuple[JobCure, ...] = ()


class JobReplay:
    """A job that can be replayed with any of its ``cures``, by name. ``error_share``: of a step, how far the replay is
    off when each unexplained delay is the usual one of its kind (`advisor_core.facts.replay.explained`)."""

    def __init__(self, job: JobGraph, cures: Mapping[str, Cures], error_share: float = 0.0) -> None:
        self.job = job
        self.cures = dict(cures)
        self.error_share = error_share
        self._lasting = cache(self._replayed)

    def step_ns(self, names: Iterable[str] = (), *, sure: bool = False, bound: Bound = "usual") -> int:
        """The time of a step with these cures. ``sure``: only with the dependencies that files record, or that the
        runtime makes. ``bound``: how what the cures model turns out."""
        return self._lasting(frozenset(names), sure, bound)[1].ns // self.job.steps

    def after_range_ns(self, names: Collection[str]) -> tuple[int, int]:
        """The least and the most that a step takes with these cures: as the cures save the most or the least, with and
        without the inferred dependencies, give or take the error of the replay on this recording and what the few
        recorded steps leave open."""
        if not names:
            return self.step_ns(), self.step_ns()
        error = self.error_share * self.step_ns()
        unchanged = self.step_ns()
        ends = []
        for sure, bound in self._variants(names):
            after = unchanged - (self.step_ns(sure=sure) - self.step_ns(names, sure=sure, bound=bound))
            margin = error + margin_ns(self._steps_ns(names, sure, bound))
            ends += [after - margin, after + margin]
        return max(0, round(min(ends))), round(max(ends))

    def saving_range_ns(self, names: Collection[str]) -> tuple[int, int]:
        """The least and the most that these cures save of a step, as `after_range_ns`; never less than nothing. What
        the recorded steps leave open is by how much their savings differ."""
        error = self.error_share * self.step_ns()
        ends = [0.0] if not names else []
        for sure, bound in self._variants(names):
            saved = self.step_ns(sure=sure) - self.step_ns(names, sure=sure, bound=bound)
            each = self._steps_ns((), sure, "usual") - self._steps_ns(names, sure, bound)
            margin = error + margin_ns(each)
            ends += [saved - margin, saved + margin]
        return max(0, round(min(ends))), max(0, round(max(ends)))

    def _variants(self, names: Iterable[str]) -> list[tuple[bool, Bound]]:
        """(sure, bound) of the replays that tell a range."""
        bounds: set[Bound] = {"usual"}
        for name in names:
            cures = self.cures[name]
            for cure in (*cures.of_ranks.values(), *cures.of_job):
                bounds |= {at for at in ("least", "most") if cure.bound(at) is not cure}
        return [(sure, bound) for sure in (False, True) for bound in sorted(bounds)]

    def _steps_ns(self, names: Iterable[str], sure: bool, bound: Bound) -> Ints:
        """The time of each recorded step in the last turn that was replayed."""
        _, lasting = self._lasting(frozenset(names), sure, bound)
        reached = np.full(self.job.steps, lasting.since, dtype=np.int64)
        for model, numbers in zip(self.job.models, self.job.numbers, strict=True):
            tasks = model.nodes.kind == TASK
            np.maximum.at(reached, model.replay.step_of(model.nodes.start_ns[tasks]), lasting.ended[numbers[tasks]])
        return np.diff(np.maximum.accumulate(reached), prepend=lasting.since)

    def _replayed(self, names: frozenset[str], sure: bool, bound: Bound) -> tuple[Graph, Lasting]:
        chosen = [self.cures[name] for name in sorted(names)]
        graphs = []
        for number, model in enumerate(self.job.models):
            changes = [cures.of_ranks[model.rank].bound(bound) for cures in chosen if model.rank in cures.of_ranks]
            recorded = model.replay.recorded
            graph = changed(recorded, changes) if changes else recorded.graph
            for cure in (cure for cures in chosen for cure in cures.of_job):
                graph = self._own_time.with_cure(number, graph, cure.bound(bound))
            if sure:
                graph = graph.changed(lag=np.where(np.isin(recorded.edges.kind, INFERRED), NEVER, graph.lag))
            graphs.append(graph)
        return self.job.lasting(graphs)

    def parts(self, names: Iterable[str] = ()) -> dict[str, int]:
        """The mean over the ranks of the time of a step in kernels, in collectives alone and in neither; they add up to
        the step."""
        graph, lasting = self._lasting(frozenset(names), False, "usual")
        since, until = lasting.since, lasting.until
        times = np.zeros(len(PARTS))
        for number, model in enumerate(self.job.models):
            tasks = model.nodes.kind == TASK
            starts, ends = self._spans(graph, lasting.ended, number)
            computes = tasks & ~model.replay.recorded.talks
            kernels = union(starts[computes], ends[computes]).clip(since, until).total()
            busy = union(starts[tasks], ends[tasks]).clip(since, until).total()
            times += (kernels, busy - kernels, until - since - busy)
        shares = times / times.sum() if times.sum() else times
        step = lasting.ns // self.job.steps
        parts = {name: round(share * step) for name, share in zip(PARTS, shares.tolist(), strict=True)}
        parts["idle"] += step - sum(parts.values())
        return parts

    def limit(self, names: Iterable[str] = ()) -> Limit:
        """The largest owner of time on the critical path: what the end of the step waits for most."""
        sums: dict[tuple[int | None, Chain], int] = defaultdict(int)
        for owner in self.critical_path(names):
            sums[owner.rank, owner.chain] += owner.ns
        (rank, chain), ns = max(sums.items(), key=lambda item: (item[1], item[0][1], -(item[0][0] or 0)))
        return Limit(rank=rank, chain=chain, share=round(ns / max(1, sum(sums.values())), 6))

    def critical_path(self, names: Iterable[str] = ()) -> list[Owner]:
        """The owners of the time of a step, the largest first; they add up to the step."""
        owned = self._owned(names)
        upto = owned["ns"].cumsum() // self.job.steps  # whole nanoseconds of a step, of which none is lost
        owners = [
            Owner(rank=None if rank == OF_CALL else rank, chain=chain, path=path, ns=ns)
            for rank, chain, path, ns in zip(
                owned["rank"].tolist(), owned["chain"], owned["path"], upto.diff().fillna(upto).astype(int), strict=True
            )
        ]
        return sorted(owners, key=lambda owner: -owner.ns)

    def _owned(self, names: Iterable[str]) -> pd.DataFrame:
        graph, lasting = self._lasting(frozenset(names), False, "usual")
        return self._owners.of(graph, lasting)

    @cached_property
    def _own_time(self) -> OwnTime:
        return OwnTime(self.job)

    @cached_property
    def _owners(self) -> Owners:
        return Owners(self.job)

    def _spans(self, graph: Graph, ended: Ints, number: int) -> tuple[Ints, Ints]:
        """When each node of a rank begins and ends."""
        numbers, arrivals = self.job.numbers[number], self.job.arrivals[number]
        ends = ended[numbers]
        return np.where(arrivals >= 0, ended[arrivals], ends - graph.duration[numbers]), ends
