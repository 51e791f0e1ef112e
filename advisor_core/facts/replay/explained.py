"""The error of the model of a rank: the part of its recording that it does not explain.

The graph holds every delay that nothing modelled explains, so that its replay gives the recorded times. That proves
nothing. The test is a replay in which each of these delays is the median of its kind: what is left of the difference
between two tasks of a kind is what the model does not know. The error is that of the time until the last task of each
step has ended, as the sum of the differences of the steps (ByteDance's analysis of stragglers discards jobs above 5 %:
docs/sources.md#replay-and-its-error).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor_core.contracts.facts import Facts, fact
from advisor_core.facts.device.work import work
from advisor_core.facts.intervals import Ints
from advisor_core.facts.replay.contradictions import Contradiction, contradictions
from advisor_core.facts.replay.edges import INFERRED, READY
from advisor_core.facts.replay.nodes import TASK
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph
from advisor_core.facts.steps.steps import steps
from advisor_core.replay.graph import Graph
from advisor_core.replay.sweep import ends


@dataclass(frozen=True)
class Explained:
    """``nodes``, ``edges``, ``inferred_edges``: how many the graph of the rank has; ``violated_edges``: how many more
    the recorded times contradict; ``contradictions``: the largest of them by name. ``error_share``: the error of the
    replay without delays of single tasks, as a part of the time of the steps."""

    nodes: int
    edges: int
    inferred_edges: int
    violated_edges: int
    contradictions: tuple[Contradiction, ...]
    error_share: float


@fact("explained", needs=(rank_graph, steps, work))
def explained(facts: Facts) -> Explained:
    """Size and error of the model of the rank: how well it explains the recording."""
    recorded = facts[rank_graph]
    edges = recorded.edges
    return Explained(
        nodes=len(recorded.graph),
        edges=len(edges.kind),
        inferred_edges=int(np.isin(edges.kind, INFERRED).sum()),
        violated_edges=len(edges.contradicted[0]),
        contradictions=contradictions(edges, recorded.nodes, facts[work]),
        error_share=_error(recorded, facts[steps]["end_ns"].to_numpy()),
    )


def _error(recorded: RankGraph, step_ends: Ints) -> float:
    """The sum of the differences of the steps, over the time of all of them."""
    nodes = recorded.nodes
    tasks = np.flatnonzero(nodes.kind == TASK)
    if not len(tasks):
        return float("nan")
    usual = ends(with_usual_delays(recorded), recorded.free_ns) + recorded.origin_ns
    step = np.searchsorted(step_ends, nodes.start_ns[tasks], side="right")
    count = int(step.max()) + 1
    reached, replayed = (np.full(count, recorded.origin_ns) for _ in range(2))
    np.maximum.at(reached, step, nodes.end_ns[tasks])
    np.maximum.at(replayed, step, usual[tasks])
    reached, replayed = np.maximum.accumulate(reached), np.maximum.accumulate(replayed)
    lasted = np.diff(reached, prepend=recorded.origin_ns)
    lasts = np.diff(replayed, prepend=recorded.origin_ns)
    return float(np.abs(lasts - lasted).sum() / lasted.sum())


def with_usual_delays(recorded: RankGraph) -> Graph:
    """The graph in which each delay of an edge is the median of those of its kind, and each pause the median of the
    tasks that waited for nothing but the task before them."""
    graph, edges, nodes = recorded.graph, recorded.edges, recorded.nodes
    lag = graph.lag.copy()
    collective = np.isin(nodes.chain, np.unique(nodes.chain[edges.target[edges.kind == READY]]))
    for kind in np.unique(edges.kind):
        for talks in (False, True):
            own = (edges.kind == kind) & (collective[edges.target] == talks)
            lag[own] = _median(lag[own], lag[own] > 0)
    binding = (nodes.kind == TASK) & (graph.before >= 0) & (graph.pause > 0)
    pause = np.where(binding, _median(graph.pause, binding), 0)
    return graph.changed(lag=lag, pause=pause)


def _median(values: Ints, chosen: npt.NDArray[np.bool_]) -> int:
    return int(np.median(values[chosen])) if chosen.any() else 0
