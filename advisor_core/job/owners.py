"""The owners of a step of the job: for every moment of it, whom its end waited for.

The way back from the last end leads through the ranks: from a collective to the rank that arrived last, from that to
its kernels or its host. So what a rank waits for others goes on into what these were doing. Owners are named as entries
of the ledger; `advisor_core.facts.replay.critical_path` says what they mean, which need not be what the device did.
Here a collective is ``communication``, from the last arrival to where the data has come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from advisor_core.facts.grouping import aggregated
from advisor_core.facts.intervals import Ints, Layer
from advisor_core.facts.ledger.bookings import host_path
from advisor_core.facts.replay.nodes import CALL, FEED, LAUNCH, RETURN, ROOM, TASK
from advisor_core.facts.replay.owner_paths import COLLECTIVE, FEEDING, delay_paths, node_paths, waited_kinds
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.rank_model import RankModel
from advisor_core.replay.critical_path import critical_path
from advisor_core.replay.graph import Graph
from advisor_core.replay.long_run import Lasting
from advisor_core.result.plan import Chain

if TYPE_CHECKING:
    import numpy.typing as npt

OF_CALL = -1
"""The rank of what belongs to a call of several ranks."""

_CHAINS: dict[int, Chain] = {
    FEED: "host",
    CALL: "host",
    RETURN: "host",
    ROOM: "host",
    LAUNCH: "queue",
    TASK: "kernels",
}
_COLUMNS = ["rank", "chain", "path", "ns"]
_AT_HUB = -3
"""The kind of an edge to or from where ranks meet."""


@dataclass(frozen=True)
class OnPath:
    """The critical path of a turn. ``nodes``, the first one first; ``waited_for``: what each of them waited for, as of
    `advisor_core.replay.critical_path.binding`; ``held_ns``: how long it lasts in the turn; ``late_ns``: what passes
    before it."""

    nodes: Ints
    waited_for: Ints
    held_ns: Ints
    late_ns: Ints

    @classmethod
    def of(cls, graph: Graph, lasting: Lasting) -> OnPath:
        """The path to the end of the turn that was replayed last."""
        ended = lasting.ended
        path, waited_for = critical_path(graph, ended, int(np.flatnonzero(ended == lasting.until)[-1]))
        begun = ended[path] - graph.duration[path]
        before = np.concatenate([[min(lasting.since, int(begun[0]))], ended[path][:-1]])
        held = np.maximum(0, ended[path] - np.maximum(begun, lasting.since))
        late = np.maximum(0, np.maximum(begun, lasting.since) - np.maximum(before, lasting.since))
        return cls(path, waited_for, held, late)

    def at(self, chosen: npt.NDArray[np.bool_]) -> OnPath:
        """The part of the path with these of its nodes."""
        return OnPath(self.nodes[chosen], self.waited_for[chosen], self.held_ns[chosen], self.late_ns[chosen])


class Owners:
    """The owner of each node and of what passes before it."""

    def __init__(self, job: JobGraph) -> None:
        self.job = job
        count = len(job.graph)
        self._rank = np.full(count, OF_CALL, dtype=np.int64)
        self._model = np.full(count, -1, dtype=np.int64)
        self._node = np.full(count, -1, dtype=np.int64)
        self._chain = np.full(count, "collectives", dtype=object)
        self._path = np.full(count, COLLECTIVE, dtype=object)
        for place, (model, numbers, arrivals) in enumerate(zip(job.models, job.numbers, job.arrivals, strict=True)):
            self._rank[numbers] = model.rank
            self._rank[arrivals[arrivals >= 0]] = model.rank
            self._model[numbers], self._node[numbers] = place, np.arange(len(numbers))
            self._chain[numbers], self._path[numbers] = _named(model)
        self._kinds = _kinds(job)

    def of(self, on_path: OnPath) -> pd.DataFrame:
        """``rank`` (`OF_CALL` of a call of several), ``chain``, ``path`` and ``ns`` of each owner of the turn; they add
        up to it."""
        path, held, late = on_path.nodes, on_path.held_ns, on_path.late_ns
        whose = {"rank": self._rank[path]}
        owned = pd.DataFrame({**whose, "chain": self._chain[path], "path": self._path[path], "ns": held})
        if owned.empty:  # of a step in which nothing begins that its end waits for
            return owned
        hosts = owned["chain"].eq("host").to_numpy() & owned["path"].eq(FEEDING).to_numpy()
        by = waited_kinds(self._kinds, on_path.waited_for)
        behind = np.where(by == _AT_HUB, COLLECTIVE, delay_paths(by, late))
        delays = pd.DataFrame({**whose, "chain": "delays", "path": behind, "ns": late})
        parts = [owned[~hosts], self._by_activity(path[hosts], held[hosts]), delays]
        owners = pd.concat([part for part in parts if len(part)])
        sums: pd.DataFrame = aggregated(owners, _COLUMNS[:3], ns=("ns", "sum"))
        return sums[sums["ns"] > 0].reset_index(drop=True)

    def _by_activity(self, nodes: Ints, ns: Ints) -> pd.DataFrame:
        """The time of nodes of host threads by what these did in the recorded time of the node."""
        rows = []
        for place in np.unique(self._model[nodes]).tolist():
            model = self.job.models[place]
            own = self._model[nodes] == place
            recorded = self._node[nodes[own]]
            ends = model.nodes.end_ns[recorded]  # of what began before the step its last part counts
            shared = _shared_out(model, np.maximum(model.nodes.start_ns[recorded], ends - ns[own]), ends, ns[own])
            rows += [(model.rank, "host", path, part) for path, part in shared.items()]
        return pd.DataFrame(rows, columns=_COLUMNS)


def _named(model: RankModel) -> tuple[np.ndarray, np.ndarray]:
    """The chain and the path of each node of a rank."""
    kind, row = model.nodes.kind, np.where(model.nodes.kind == TASK, model.nodes.row, 0)
    talks = model.replay.recorded.talks
    chains = np.array([_CHAINS[number] for number in range(len(_CHAINS))], dtype=object)[kind]
    classes = model.operators["operator_class"].astype(str).to_numpy(dtype=object)[row]
    return np.where(talks, "collectives", chains), node_paths(kind, talks, classes)


def _kinds(job: JobGraph) -> Ints:
    """The kind of each edge of the job."""
    kinds = np.concatenate([model.replay.recorded.edges.kind for model in job.models])
    at_hub = np.full(len(job.graph.source) - len(kinds), _AT_HUB, dtype=np.int64)
    return np.concatenate([kinds, at_hub])


def _shared_out(model: RankModel, starts: Ints, ends: Ints, ns: Ints) -> dict[str, int]:
    """``ns`` of the feeding threads of a rank by what they did from ``starts`` to ``ends``; what has no label is of
    `FEEDING`."""
    if model.host is None:
        return {FEEDING: int(ns.sum())}
    labels, lasts = model.host.labels, np.maximum(ends - starts, 1)
    shares: dict[str, int] = {}
    for number, activity in enumerate(model.host.activities):
        of_it = labels.ids == number
        one = Layer(labels.starts[of_it], labels.ends[of_it], labels.ids[of_it])
        inside = one.measure(ends) - one.measure(starts)
        shares[host_path(activity)] = int((inside / lasts * ns).sum())
    rest = int(ns.sum()) - sum(shares.values())
    shares[FEEDING] = shares.get(FEEDING, 0) + rest
    return shares
