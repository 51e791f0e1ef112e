"""Replay of the steps of a job with changes: of all ranks, with all changes at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import numpy as np

from advisor_core.contracts.cure import Bound
from advisor_core.facts.intervals import Ints, union
from advisor_core.facts.replay.changes import Change, Changing
from advisor_core.facts.replay.edges import INFERRED
from advisor_core.facts.replay.nodes import TASK
from advisor_core.job.contention import Contention, Floats
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.own_time import JobCure, OwnTime
from advisor_core.job.owners import OF_CALL, OnPath, Owners
from advisor_core.job.sampling import margin_ns, steps_for
from advisor_core.replay.graph import NEVER, Graph
from advisor_core.replay.long_run import Lasting
from advisor_core.replay.sweep import passes
from advisor_core.result.plan import Chain, Limit, Owner, Varying

PARTS = ("compute", "communication", "idle")

CHANGE_ERROR = 0.05
"""Of what a change saves: by about so much that is off at the median in simulated jobs whose truth is known (5.6 % in
those that the model was developed with, when this was written: docs/diagnosis.md#what-a-change-would-win)."""

NARROW = 0.02
"""Share of a step by which the mean of the recorded steps may be off: the error that promises are meant to have
(docs/diagnosis.md#what-a-change-would-win)."""


@dataclass(frozen=True)
class Cures:
    """The changes that following the advice of one finding brings: to single ranks, and to the job. ``excludes``: names
    of cures that cannot be combined with it; ``explains``: of those whose finding this one explains: it is one way to
    get what they promise."""

    of_ranks: Mapping[int, Change] = field(default_factory=dict)
    of_job: tuple[JobCure, ...] = ()
    excludes: frozenset[str] = frozenset()
    explains: frozenset[str] = frozenset()

    def changes_nothing(self, at: Bound) -> bool:
        """True where these changes, at this end of what they may save, are known to leave every time as it is."""
        return all(cure.bound(at).changes_nothing for cure in (*self.of_ranks.values(), *self.of_job))


@dataclass(frozen=True)
class _Asked:
    """A replay with the cures ``names``. ``sure``: only with the dependencies that files record, or that the runtime
    makes. ``bound``: how what the cures model turns out."""

    names: frozenset[str]
    sure: bool = False
    bound: Bound = "usual"


@dataclass(frozen=True)
class _Turn:
    """Times of a replay. ``ns``: all recorded steps together; ``steps_ns``: each of them in the last turn."""

    ns: int
    steps_ns: Ints


class JobReplay:
    """A job that can be replayed with any of its ``cures``, by name. ``error_share``: of a step, how far the replay is
    off when each unexplained delay is the usual one of its kind (`advisor_core.facts.replay.explained`). ``absent``: ns
    of a step for which its ranks wait for each rank that was not recorded. It keeps what it is late: so a change wins
    nothing, at the least, where it does not make that rank quicker as well."""

    def __init__(
        self,
        job: JobGraph,
        cures: Mapping[str, Cures],
        error_share: float = 0.0,
        absent: Mapping[int, int] | None = None,
    ) -> None:
        self.job = job
        self.cures = dict(cures)
        self.error_share = error_share
        self.absent = dict(absent or {})
        self._known: dict[_Asked, _Turn] = {}
        self._whole = cache(self._replayed_whole)
        self._paths = cache(self._path)
        self._owned = cache(self._owned_by)
        self._beside_unchanged = cache(self._beside)

    def step_ns(self, names: Iterable[str] = ()) -> int:
        """The time of a step with these cures."""
        return self.steps_ns([names])[0]

    def steps_ns(self, choices: Sequence[Iterable[str]]) -> list[int]:
        """The time of a step with each of these choices of cures: quicker than to ask for one after the other."""
        return [turn.ns // self.job.steps for turn in self._turns([_Asked(frozenset(names)) for names in choices])]

    def after_range_ns(self, names: Collection[str]) -> tuple[int, int]:
        """The least and the most that a step takes with these cures: as the cures save the most or the least, with and
        without the inferred dependencies, give or take the error of the replay on this recording, that of a change
        (`CHANGE_ERROR`) and what the few recorded steps leave open."""
        unchanged = self.step_ns()
        if not names:
            return unchanged, unchanged
        ends = []
        for without, turn in self._variants(names):
            saved = without.ns // self.job.steps - turn.ns // self.job.steps
            after, margin = unchanged - saved, self._error_ns(saved) + margin_ns(turn.steps_ns)
            ends += [after - margin, after + margin]
        ends += [float(unchanged)] if self.absent else []
        return max(0, round(min(ends))), round(max(ends))

    def saving_range_ns(self, names: Collection[str]) -> tuple[int, int]:
        """The least and the most that these cures save of a step, as `after_range_ns`; never less than nothing. What
        the recorded steps leave open is by how much their savings differ."""
        return self.saving_ranges_ns([names])[0]

    def saving_ranges_ns(self, choices: Sequence[Collection[str]]) -> list[tuple[int, int]]:
        """As `saving_range_ns`, of each of these choices of cures: quicker than to ask for one after the other."""
        self._turns([one for names in choices for pair in self._bounds(names) for one in pair])
        return [self._saving_range_ns(names) for names in choices]

    def _saving_range_ns(self, names: Collection[str]) -> tuple[int, int]:
        ends = [0.0] if not names or self.absent else []
        for without, turn in self._variants(names):
            saved = without.ns // self.job.steps - turn.ns // self.job.steps
            margin = self._error_ns(saved) + margin_ns(without.steps_ns - turn.steps_ns)
            ends += [saved - margin, saved + margin]
        return max(0, round(min(ends))), max(0, round(max(ends)))

    def steps_wanted(self, names: Collection[str]) -> int | None:
        """The number of steps to record for the part of the range that comes of how much they differ, as they are
        and with these cures, to be at most `NARROW` of a step; ``None`` where as many were, or a single one."""
        wanted = max(self._wanted(names))
        return wanted if wanted > self.job.steps else None

    def varies(self, names: Collection[str]) -> Varying | None:
        """The owner by whose time the recorded steps differ most, as they are or with these cures, whichever asks for
        more steps; ``None`` where the recorded ones are enough, or there are fewer than three: it is not known whose
        the time is between the end of the recording and its begin, which is part of the first one."""
        as_it_is, cured = self._wanted(names)
        if max(as_it_is, cured) <= self.job.steps or self.job.steps <= 2:
            return None
        chosen = frozenset(names) if cured > as_it_is else frozenset()
        _, lasting = self._whole(chosen)
        path = self._paths(chosen)
        until = lasting.since + np.cumsum(self._steps_ns(lasting))
        step = np.searchsorted(until, lasting.ended[path.nodes])
        sums: dict[tuple[Chain, str], Ints] = defaultdict(lambda: np.zeros(self.job.steps - 1, dtype=np.int64))
        ranks: dict[tuple[Chain, str], set[int]] = defaultdict(set)
        for number in range(1, self.job.steps):
            owned = self._owners.of(path.at(step == number))
            for rank, chain, what, ns in owned.itertuples(index=False):
                sums[chain, what][number - 1] += ns
                ranks[chain, what].add(rank)
        if not sums:
            return None
        most, times = max(sums.items(), key=lambda item: (float(np.std(item[1])), item[0]))
        rank = next(iter(ranks[most])) if len(ranks[most]) == 1 else OF_CALL
        return Varying(
            rank=None if rank == OF_CALL else rank,
            chain=most[0],
            path=most[1],
            least_ns=int(times.min()),
            most_ns=int(times.max()),
        )

    def _wanted(self, names: Collection[str]) -> tuple[int, int]:
        """The number of steps to record, as `steps_wanted`, by the steps as they are and by those with these cures."""
        as_it_is, cured = (
            steps_for(turn.steps_ns, NARROW * turn.ns / self.job.steps)
            for turn in self._turns([_Asked(frozenset()), _Asked(frozenset(names))])
        )
        return as_it_is, cured

    def _error_ns(self, saved: int) -> float:
        """By how much the replay may be off: with this recording, and with changes that save so much."""
        return self.error_share * self.step_ns() + CHANGE_ERROR * abs(saved)

    def _variants(self, names: Collection[str]) -> list[tuple[_Turn, _Turn]]:
        """The replays that tell a range: without the cures and with them."""
        pairs = self._bounds(names)
        turns = self._turns([without for without, _ in pairs] + [with_them for _, with_them in pairs])
        return list(zip(turns[: len(pairs)], turns[len(pairs) :], strict=True))

    def _bounds(self, names: Collection[str]) -> list[tuple[_Asked, _Asked]]:
        """As `_variants`, what is asked for."""
        bounds: set[Bound] = {"usual"}
        for name in names:
            cures = self.cures[name]
            for cure in (*cures.of_ranks.values(), *cures.of_job):
                bounds |= {at for at in ("least", "most") if cure.bound(at) is not cure}
        return [
            (_Asked(frozenset(), sure), _Asked(frozenset(names), sure, bound))
            for sure in (False, True)
            for bound in sorted(bounds)
        ]

    def _turns(self, asked: Sequence[_Asked]) -> list[_Turn]:
        asked = [self._told_apart(one) for one in asked]
        new = [one for one in dict.fromkeys(asked) if one not in self._known]
        for first, last in passes(len(new), len(self.job.graph)):
            for one, (_, lasting) in zip(new[first:last], self._lasting(new[first:last]), strict=True):
                self._known[one] = _Turn(lasting.ns, self._steps_ns(lasting))
        return [self._known[one] for one in asked]

    def _told_apart(self, asked: _Asked) -> _Asked:
        """The replay without the cures that change nothing: what else it has may have been asked for before."""
        names = frozenset(name for name in asked.names if not self.cures[name].changes_nothing(asked.bound))
        return replace(asked, names=names) if len(names) < len(asked.names) else asked

    def _steps_ns(self, lasting: Lasting) -> Ints:
        """The time of each recorded step in the last turn that was replayed."""
        reached = np.full(self.job.steps, lasting.since, dtype=np.int64)
        for nodes, step in self._tasks:
            np.maximum.at(reached, step, lasting.ended[nodes])
        return np.diff(np.maximum.accumulate(reached), prepend=lasting.since)

    @cached_property
    def _tasks(self) -> list[tuple[Ints, Ints]]:
        """Of each rank the nodes of its tasks, and the number of the recorded step of each."""
        found = []
        for model, numbers in zip(self.job.models, self.job.numbers, strict=True):
            tasks = model.nodes.kind == TASK
            found.append((numbers[tasks], model.replay.step_of(model.nodes.start_ns[tasks])))
        return found

    def _replayed_whole(self, names: frozenset[str]) -> tuple[Graph, Lasting]:
        return self._lasting([_Asked(names)])[0]

    def _lasting(self, asked: Sequence[_Asked]) -> list[tuple[Graph, Lasting]]:
        """The replays: kernels that have more or fewer transfers beside them than in the recording take as long as that
        makes them, where the recording tells it."""
        changed = [self._graphs(one) for one in asked]
        replayed = self.job.lasting(changed)
        with_cures = [place for place, one in enumerate(asked) if one.names]
        if with_cures and self._contention.measured:
            settled = self._contention.settled(
                [changed[place] for place in with_cures],
                [replayed[place] for place in with_cures],
                [self._beside_unchanged(asked[place].sure) for place in with_cures],
            )
            for place, one in zip(with_cures, settled, strict=True):
                replayed[place] = one
        return replayed

    def _beside(self, sure: bool) -> list[Floats]:
        unchanged = self._lasting([_Asked(frozenset(), sure)])[0] if sure else self._whole(frozenset())
        return self._contention.beside(*unchanged)

    def _graphs(self, asked: _Asked) -> list[Graph]:
        """The graphs of the ranks with the cures."""
        bound = asked.bound
        chosen = [self.cures[name] for name in sorted(asked.names)]
        graphs = []
        for number, (model, changing) in enumerate(zip(self.job.models, self._changing, strict=True)):
            changes = [cures.of_ranks[model.rank].bound(bound) for cures in chosen if model.rank in cures.of_ranks]
            recorded = model.replay.recorded
            graph = changing.changed(changes)
            for cure in (cure for cures in chosen for cure in cures.of_job):
                graph = self._own_time.with_cure(number, graph, cure.bound(bound))
            if asked.sure:
                graph = graph.changed(lag=np.where(np.isin(recorded.edges.kind, INFERRED), NEVER, graph.lag))
            graphs.append(graph)
        return graphs

    def parts(self, names: Iterable[str] = ()) -> dict[str, int]:
        """The mean over the ranks of the time of a step in kernels, in collectives alone and in neither; they add up to
        the step."""
        graph, lasting = self._whole(frozenset(names))
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
        return self._owned(frozenset(names))

    def whole(self, names: Iterable[str] = ()) -> tuple[Graph, Lasting]:
        """The graph of the job with these cures, and its replay."""
        return self._whole(frozenset(names))

    def path(self, names: Iterable[str] = ()) -> OnPath:
        """The critical path with these cures."""
        return self._paths(frozenset(names))

    def _path(self, names: frozenset[str]) -> OnPath:
        return OnPath.of(*self._whole(names))

    def _owned_by(self, names: frozenset[str]) -> list[Owner]:
        owned = self._owners.of(self._paths(names))
        upto = owned["ns"].cumsum() // self.job.steps  # whole nanoseconds of a step, of which none is lost
        owners = [
            Owner(rank=None if rank == OF_CALL else rank, chain=chain, path=path, ns=ns)
            for rank, chain, path, ns in zip(
                owned["rank"].tolist(), owned["chain"], owned["path"], upto.diff().fillna(upto).astype(int), strict=True
            )
        ]
        return sorted(owners, key=lambda owner: -owner.ns)

    @cached_property
    def _changing(self) -> list[Changing]:
        """Of each rank."""
        return [Changing(model.replay.recorded) for model in self.job.models]

    @cached_property
    def _own_time(self) -> OwnTime:
        return OwnTime(self.job)

    @cached_property
    def _contention(self) -> Contention:
        return Contention(self.job)

    @cached_property
    def _owners(self) -> Owners:
        return Owners(self.job)

    def _spans(self, graph: Graph, ended: Ints, number: int) -> tuple[Ints, Ints]:
        """The begin and the end of each node of a rank, ns of the replay."""
        numbers, arrivals = self.job.numbers[number], self.job.arrivals[number]
        ends = ended[numbers]
        return np.where(arrivals >= 0, ended[arrivals], ends - graph.duration[numbers]), ends
