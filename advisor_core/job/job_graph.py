"""The dependency graph of a job: those of its ranks, joined where a call is the same on several of them.

A collective of a rank is one node of its graph, which lasts from its start to its end. In the graph of the job it is
two: the rank arrives, and it leaves. Between them is a hub, one for each call: it begins when the last of the ranks has
arrived, and lasts as long as the data then took to reach the first of them. So a rank that comes sooner shortens the
wait of the others, and what two late ranks cost together is not what each of them costs.

Ranks that were not recorded have no node. What the recorded ones waited for them is part of the time of the hub, which
stays. A rank that left before another one arrived (the root of a broadcast) did not wait for it: it keeps the time that
it took, and the others wait for its arrival only.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from advisor_core.facts.intervals import Ints
from advisor_core.facts.ledger.bookings import LATENCY_NS
from advisor_core.facts.replay.nodes import FEEDERS, TASK
from advisor_core.job.calls import same_calls
from advisor_core.job.clocks import CLOCKS_NS, clock_offsets
from advisor_core.job.rank_model import RankModel
from advisor_core.replay.graph import Graph
from advisor_core.replay.long_run import Lasting, once, repeated

CONFIRMED = 0.9
"""Share of the repetitions in which something that is inferred must hold."""

_BEFORE_ALL = -1
"""Of nodes that end at the same moment a hub comes first: it depends on none of them."""


@dataclass(frozen=True)
class JobGraph:
    """``models``: the ranks, in order. ``graph``: its unchanged replay gives the recorded times. ``offset_ns``: by how
    much the clock of each rank is ahead of that of the first; ``origin_ns``: the moment of the first rank's clock that
    the replay counts from.

    ``numbers``: of each rank, the number that each node of its own graph has in this one (of a collective the one where
    the rank leaves); ``arrivals``: the number of the one where it arrives, -1 of what is no call of several ranks;
    ``hubs``: that of the hub between the two.
    ``calls``: the calls that join ranks, a row for each rank: ``rank``, ``call``, ``start_ns`` and ``end_ns`` by the
    clock of the first rank, ``node`` of the graph of the rank, and ``pair``, whether it sends or receives.
    """

    models: tuple[RankModel, ...]
    graph: Graph
    free_ns: Ints
    offset_ns: tuple[int, ...]
    origin_ns: int
    numbers: tuple[Ints, ...]
    arrivals: tuple[Ints, ...]
    hubs: tuple[Ints, ...]
    calls: pd.DataFrame
    _retime: Callable[[Sequence[Graph]], Graph]

    @property
    def steps(self) -> int:
        return min(model.replay.steps for model in self.models)

    def lasting(self, choices: Sequence[Sequence[Graph]]) -> list[tuple[Graph, Lasting]]:
        """The graph of the job with the times that the graphs of its ranks have now, and how long the recorded steps
        take on it. ``choices``: the graphs of the ranks, as many times as an answer is wanted."""
        graphs = [self._retime(chosen) for chosen in choices]
        counted = self.tasks
        if not self.repeats:
            begun = min(
                int(model.nodes.start_ns[model.nodes.kind == TASK].min()) - offset
                for model, offset in zip(self.models, self.offset_ns, strict=True)
            )
            return list(zip(graphs, once(graphs, self.free_ns, counted, begun - self.origin_ns), strict=True))
        between = [self.between_ns(chosen) for chosen in choices]
        return list(zip(graphs, repeated(graphs, self.free_ns, counted, between), strict=True))

    @cached_property
    def tasks(self) -> Ints:
        """The nodes of all tasks: the last of them to end is the end of what was recorded."""
        return np.concatenate(
            [numbers[model.nodes.kind == TASK] for model, numbers in zip(self.models, self.numbers, strict=True)]
        )

    @property
    def repeats(self) -> bool:
        """Whether the recorded steps are replayed as a long run, not once."""
        return all(len(model.replay.openings) for model in self.models)

    def between_ns(self, graphs: Sequence[Graph]) -> Ints:
        """Of each chain the ns between two turns of a long run. ``graphs``: those of the ranks."""
        pauses = np.zeros(len(self.free_ns), dtype=np.int64)
        for model, first, own in zip(self.models, self._chains(), graphs, strict=True):
            pauses[first + FEEDERS] = model.replay.between_ns(own)
        return pauses

    def _chains(self) -> list[int]:
        """The number of the first chain of each rank."""
        counts = [len(model.replay.recorded.free_ns) for model in self.models]
        return [0, *np.cumsum(counts)[:-1].tolist()]


def job_graph(models: Sequence[RankModel], world_size: int) -> JobGraph:
    """The graph of all ranks that have one. ``world_size``: ranks of the job, 0 unknown."""
    calls = _agreeing(_timed_calls(models, world_size))
    offsets = clock_offsets(calls, {model.rank: int(model.nodes.end_ns.max()) for model in models})
    ahead = calls["rank"].map(offsets)
    calls = calls.assign(start_ns=calls["start_ns"] - ahead, end_ns=calls["end_ns"] - ahead)
    return _assembled(models, [offsets[model.rank] for model in models], _members(calls))


_TIMED = ("rank", "call", "node", "start_ns", "end_ns")


def _timed_calls(models: Sequence[RankModel], world_size: int) -> pd.DataFrame:
    """``rank``, ``call``, ``node`` of the rank's graph, ``start_ns`` and ``end_ns`` of the calls that are or may be the
    same; ``known``, which they are; ``pair``, whether they send or receive."""
    empty = {name: pd.Series(dtype="int64") for name in _TIMED}
    parts = [pd.DataFrame(empty | {name: pd.Series(dtype="bool") for name in ("known", "pair")})]
    same = same_calls({model.rank: model.calls for model in models if model.calls is not None}, world_size)
    for model in models:
        shared = same[same["rank"] == model.rank]
        node = model.nodes.at(TASK, shared["work"].to_numpy(dtype=np.int64))
        timed = {
            "rank": model.rank,
            "call": shared["call"].to_numpy(dtype=np.int64),
            "node": node,
            "start_ns": model.nodes.start_ns[node],
            "end_ns": model.nodes.end_ns[node],
            "known": shared["known"].to_numpy(dtype=bool),
            "pair": shared["pair"].to_numpy(dtype=bool),
        }
        parts.append(pd.DataFrame(timed)[node >= 0])
    return pd.concat(parts, ignore_index=True)


def _agreeing(calls: pd.DataFrame) -> pd.DataFrame:
    """The calls that are the same as far as their times tell. Recordings that were made at different times have none.
    Where only the hash of a group says that two ranks are in it, they are where their calls end together."""
    if calls.empty:
        return calls
    calls = calls.sort_values(["call", "end_ns"], kind="stable", ignore_index=True)
    gap = calls["end_ns"].diff().where(calls["call"].eq(calls["call"].shift()), 0)
    apart = gap > np.where(calls["known"], CLOCKS_NS, LATENCY_NS)
    together = calls.assign(call=(apart | calls["call"].ne(calls["call"].shift())).cumsum())
    unsure = together[~together["known"]].sort_values("rank")
    if unsure.empty:
        return together
    ranks = unsure.groupby("call")["rank"].agg(lambda own: ",".join(map(str, own)))
    often = ranks.map(ranks.value_counts()) >= CONFIRMED * unsure.groupby("rank")["call"].nunique().max()
    return together[together["known"] | together["call"].map(often).eq(True)]


def _members(calls: pd.DataFrame) -> pd.DataFrame:
    """The rows of calls that several ranks have, with ``hub_ns``, when the data had reached the first of them, and
    ``waits``, whether it waited for the others."""
    calls = calls[calls.groupby("call")["rank"].transform("size") > 1]
    arrived = calls.groupby("call")["start_ns"].transform("max")
    waits = calls["end_ns"] > arrived
    known = waits.groupby(calls["call"]).transform("any")
    calls = calls.assign(arrived_ns=arrived, waits=waits)[known]
    first = calls[calls["waits"]].groupby("call")["end_ns"].min()
    return calls.assign(hub_ns=calls["call"].map(first)).sort_values(["call", "rank"], ignore_index=True)


def _assembled(models: Sequence[RankModel], offsets: Sequence[int], members: pd.DataFrame) -> JobGraph:
    graphs = [model.replay.recorded.graph for model in models]
    counts = [len(graph) for graph in graphs]
    first_node = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    chains = [len(model.replay.recorded.free_ns) for model in models]
    first_chain = np.concatenate([[0], np.cumsum(chains)]).astype(np.int64)
    place = {model.rank: number for number, model in enumerate(models)}
    split = (members["node"] + first_node[members["rank"].map(place)]).to_numpy(dtype=np.int64)
    hub = pd.factorize(members["call"])[0].astype(np.int64)
    hub_count = int(hub.max()) + 1 if len(hub) else 0
    total = int(first_node[-1])
    arrive, hubs = total + np.arange(len(split)), total + len(split) + np.arange(hub_count)

    end = np.concatenate(
        [model.nodes.end_ns - offset for model, offset in zip(models, offsets, strict=True)]
        + [members["start_ns"].to_numpy(), members.groupby(hub)["hub_ns"].first().to_numpy(dtype=np.int64)]
    ).astype(np.int64)
    own = np.concatenate([np.arange(count) for count in counts]).astype(np.int64)
    rank_order = np.concatenate([2 * own + 1, 2 * own[split], np.full(hub_count, _BEFORE_ALL)])
    order = np.lexsort((rank_order, end))
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))

    chain = np.concatenate([graph.chain + first for graph, first in zip(graphs, first_chain[:-1], strict=True)])
    chain = np.concatenate([chain, chain[split], first_chain[-1] + np.arange(hub_count)]).astype(np.int64)
    entered = np.arange(total, dtype=np.int64)
    entered[split] = arrive  # what led to a collective leads to where the rank arrives
    source = np.concatenate([graph.source + first for graph, first in zip(graphs, first_node[:-1], strict=True)])
    target = np.concatenate([graph.target + first for graph, first in zip(graphs, first_node[:-1], strict=True)])
    waits = members["waits"].to_numpy(dtype=bool)
    source = number[np.concatenate([source, arrive, hubs[hub[waits]]]).astype(np.int64)]
    target = number[np.concatenate([entered[target], hubs[hub], split[waits]]).astype(np.int64)]
    behind = (members["end_ns"] - members["hub_ns"]).to_numpy(dtype=np.int64)[waits]
    carried = (members["hub_ns"] - members["arrived_ns"]).groupby(hub).first().to_numpy(dtype=np.int64)
    nothing = np.zeros(len(split), dtype=np.int64)

    recorded = np.concatenate([graph.duration for graph in graphs])

    def retime(own_graphs: Sequence[Graph]) -> Graph:
        took = np.concatenate([graph.duration for graph in own_graphs])
        pause = np.concatenate([graph.pause for graph in own_graphs])
        before = pause[split]
        less = _less(hub, recorded[split] - took[split], hub_count)
        took[split[waits]] = 0
        pause[split] = 0
        lag = np.concatenate([*(graph.lag for graph in own_graphs), nothing, behind])
        duration = np.concatenate([took, nothing, np.maximum(0, carried - less)])[order]
        pause = np.concatenate([pause, before, np.zeros(hub_count, dtype=np.int64)])[order]
        return structure.changed(duration=duration, pause=pause, lag=lag)

    zeros = np.zeros(len(order), dtype=np.int64)
    structure = Graph(chain[order], zeros, zeros, source, target, np.zeros(len(source), dtype=np.int64))
    origins = [model.replay.recorded.origin_ns - offset for model, offset in zip(models, offsets, strict=True)]
    origin = min(origins)
    free = [model.replay.recorded.free_ns + start - origin for model, start in zip(models, origins, strict=True)]
    free.append(np.zeros(hub_count, dtype=np.int64))
    arrivals = np.full(total, -1, dtype=np.int64)
    arrivals[split] = number[arrive]
    between = np.full(total, -1, dtype=np.int64)
    between[split] = number[hubs[hub]]
    return JobGraph(
        models=tuple(models),
        graph=retime(graphs),
        free_ns=np.concatenate(free).astype(np.int64),
        offset_ns=tuple(offsets),
        origin_ns=origin,
        numbers=tuple(number[low:high] for low, high in itertools.pairwise(first_node)),
        arrivals=tuple(arrivals[low:high] for low, high in itertools.pairwise(first_node)),
        hubs=tuple(between[low:high] for low, high in itertools.pairwise(first_node)),
        calls=members[["rank", "call", "start_ns", "end_ns", "node", "pair"]],
        _retime=retime,
    )


def _less(hub: Ints, changed: Ints, hubs: int) -> Ints:
    """By how much each call takes less. ``changed``: by how much it does on each of its ranks. What takes less on one
    of them is done sooner on all; and what moves more, as others were put together with it, takes as much more as on
    the rank where that is least, as the others waited meanwhile. Ranks where nothing changed have no say."""
    least = np.iinfo(np.int64).min
    less = np.full(hubs, least, dtype=np.int64)
    np.maximum.at(less, hub, np.where(changed == 0, least, changed))
    return np.where(less == least, 0, less)
