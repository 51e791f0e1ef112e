"""Small jobs of several ranks: scenes that meet in collectives, and the models that the job makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor_core.api.testing import Scene
from advisor_core.facts.communication.calls import recorded_calls
from advisor_core.facts.replay.replay import replay
from advisor_core.job.calls import COMPARED
from advisor_core.job.job_graph import JobGraph, job_graph
from advisor_core.job.rank_model import RankModel

TRANSFER = 20


def meeting(*kernels: Sequence[int], apart_us: Sequence[float] = ()) -> JobGraph:
    """A job in which each rank runs kernels of these durations (us), and meets the others in a collective behind each.

    The data is moved in 20 us once the last has arrived. ``apart_us``: by how much the clock of each rank is ahead.
    """
    now, members = 0.0, len(kernels)
    scenes = [Scene(rank=rank) for rank in range(members)]
    begun = [0.0] * members
    for number, durations in enumerate(zip(*kernels, strict=True)):
        arrived = [since + duration for since, duration in zip(begun, durations, strict=True)]
        until = max(arrived) + TRANSFER
        for rank, scene in enumerate(scenes):
            ahead = apart_us[rank] if apart_us else 0.0
            scene.kernel(begun[rank] + ahead, durations[rank], launched=-50 + ahead + number, op="aten::mm")
            scene.call(arrived[rank] + ahead, until - arrived[rank], number, members, launched=-50 + ahead + number + 0.5)
        begun, now = [until] * members, until
    for rank, scene in enumerate(scenes):
        ahead = apart_us[rank] if apart_us else 0.0
        scene.step(1, -60 + ahead, now + 60)
    return modelled({rank: scene for rank, scene in enumerate(scenes)}, members)


def modelled(scenes: Mapping[int, Scene], world_size: int) -> JobGraph:
    """The graph of the job that these ranks are."""
    models = []
    for rank, scene in scenes.items():
        store = scene.store()
        models.append(RankModel(rank, store[replay], store[recorded_calls][list(COMPARED)]))
    return job_graph(models, world_size)
