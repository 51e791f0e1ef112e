"""Small jobs of several ranks: scenes that meet in collectives, and the graph that the job makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from advisor_core.api.testing import Scene
from advisor_core.facts.communication.calls import recorded_calls
from advisor_core.facts.device.work import operator_types, work
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.replay.replay import replay
from advisor_core.job.calls import COMPARED
from advisor_core.job.job_graph import JobGraph, job_graph
from advisor_core.job.rank_model import RankModel

TRANSFER_US = 20

EARLY_US = 200
"""The host has handed everything over so long before the first kernel starts."""


def meeting(*ranks: Sequence[int], ahead_us: Sequence[float] = (), named: bool = True) -> JobGraph:
    """A job in which each rank runs a kernel of each of these durations (us) and meets the others in a collective
    behind it, whose data is moved in `TRANSFER_US` once the last rank has arrived.

    ``ahead_us``: by how much the clock of each rank is ahead. ``named``: the ranks of the group were recorded.
    """
    clocks = ahead_us or [0.0] * len(ranks)
    scenes = [Scene(rank=rank) for rank in range(len(ranks))]
    begun = 0.0
    for number, durations in enumerate(zip(*ranks, strict=True)):
        until = begun + max(durations) + TRANSFER_US
        for scene, took, ahead in zip(scenes, durations, clocks, strict=True):
            arrived = begun + took
            handed_over = ahead - EARLY_US + 10 * number
            scene.kernel(ahead + begun, took, launched=handed_over, op="aten::mm")
            scene.collective(ahead + arrived, until - arrived, None, launched=handed_over + 5)
        begun = until
    for scene, ahead in zip(scenes, clocks, strict=True):
        scene.step(1, ahead - EARLY_US - 10, begun + EARLY_US + 10)
    return modelled(scenes, named=named)


def modelled(scenes: Sequence[Scene], *, named: bool = True) -> JobGraph:
    """The graph of the job that these ranks are, all of which are in one group. Without ``named`` nothing tells which
    ranks are in it."""
    everyone = tuple(scene.rank for scene in scenes)
    groups = {"586": everyone} if named else {}
    members = len(scenes) if named else None
    models = []
    for scene in scenes:
        store = scene.store(world_size=members, groups=groups)
        operators = store[work][["type", "operator_class"]].assign(named=operator_types(store[work]))
        calls = store[recorded_calls][list(COMPARED)]
        models.append(RankModel(scene.rank, store[replay], calls, operators, store.get(host_activity)))
    return job_graph(models, members or 0)
