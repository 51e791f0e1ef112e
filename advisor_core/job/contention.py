"""Kernels and transfers that slow each other down: what becomes of kernels when a change moves transfers away from them
or beside them.

How much longer a kernel takes beside transfers is measured in the recording (`advisor_core.facts.replay.contention`);
one that was not recorded both ways keeps its duration. Transfers take as long as they did.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from advisor_core.facts.intervals import union
from advisor_core.facts.replay.nodes import TASK
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.rank_model import RankModel
from advisor_core.replay.graph import Graph
from advisor_core.replay.long_run import Lasting

Floats = npt.NDArray[np.float64]

ROUNDS = 2
"""Kernels that become longer are longer beside transfers, too. Each round corrects what the one before left by the
share of the slowdown, which is less than a half: the second leaves less than a tenth of the whole."""

WORTH = 0.001
"""Share of the step that kernels of a rank must become longer or shorter by to be replayed once more: a fifth of what a
change has to win for a place in the plan (`advisor_core.job.plan.WORTH`)."""


class Contention:
    """The measured slowdown of the kernels of a job."""

    def __init__(self, job: JobGraph) -> None:
        self._job = job
        self._slowed = [_of_nodes(model) for model in job.models]

    @property
    def measured(self) -> bool:
        """Some kernel is known to be slower beside transfers."""
        return any(bool(slowed.any()) for slowed in self._slowed)

    def settled(
        self,
        changed: Sequence[Sequence[Graph]],
        replayed: Sequence[tuple[Graph, Lasting]],
        before: Sequence[Sequence[Floats]],
    ) -> list[tuple[Graph, Lasting]]:
        """The replays with the durations that kernels have beside the transfers that they then have. ``changed``: the
        graphs of the ranks with cures, ``replayed``: how long the steps take on them, ``before``: `beside` of the
        unchanged job; each as many times as an answer is wanted."""
        found, current = list(replayed), list(changed)
        for _ in range(ROUNDS):
            again = []
            for place, (graph, lasting) in enumerate(found):
                graphs = self.stretched(changed[place], before[place], self.beside(graph, lasting))
                moved = max(_apart(one, other) for one, other in zip(graphs, current[place], strict=True))
                if moved > WORTH * lasting.ns:
                    current[place] = graphs
                    again.append(place)
            if not again:
                break
            for place, one in zip(again, self._job.lasting([current[place] for place in again]), strict=True):
                found[place] = one
        return found

    def beside(self, graph: Graph, lasting: Lasting) -> list[Floats]:
        """Of each rank, for how long data of the rank moved during each of its nodes, ns of a replay. A collective of
        several ranks moves data from the arrival of the last of them."""
        found = []
        for number, model in enumerate(self._job.models):
            numbers, hubs = self._job.numbers[number], self._job.hubs[number]
            ends = lasting.ended[numbers]
            starts = ends - graph.duration[numbers]
            met = np.where(hubs >= 0, lasting.ended[hubs] - graph.duration[hubs], starts)
            talks = model.replay.recorded.talks
            moving = union(met[talks], ends[talks])
            found.append((moving.measure(ends) - moving.measure(starts)).astype(np.float64))
        return found

    def stretched(self, changed: Sequence[Graph], before: Sequence[Floats], now: Sequence[Floats]) -> list[Graph]:
        """The graphs of the ranks, changed by cures, with the durations that their kernels have beside as much
        transfers as ``now``. ``before``: of the unchanged job."""
        graphs = []
        for model, slowed, graph, was, is_now in zip(self._job.models, self._slowed, changed, before, now, strict=True):
            recorded = model.replay.recorded.graph.duration
            stays = graph.duration / np.maximum(recorded, 1)
            longer = np.rint(slowed * (is_now - stays * was)).astype(np.int64)
            graphs.append(graph.changed(duration=np.maximum(0, graph.duration + longer)))
        return graphs


def _apart(graph: Graph, other: Graph) -> int:
    return int(np.abs(graph.duration - other.duration).sum())


def _of_nodes(model: RankModel) -> Floats:
    """The slowdown of each node, 0 of what is not known or no kernel."""
    slowed = np.zeros(len(model.nodes.kind))
    if model.slowed is not None:
        tasks = model.nodes.kind == TASK
        slowed[tasks] = np.nan_to_num(model.slowed[model.nodes.row[tasks]])
    return slowed
