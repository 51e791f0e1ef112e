"""The replay of the recorded graph gives the recorded times, and its edges are what the scene was made with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from advisor_core.api.testing import Scene
from advisor_core.facts.replay.edges import AWAITED, DONE, HELD, LAUNCHED, READY
from advisor_core.facts.replay.explained import Explained, explained
from advisor_core.facts.replay.nodes import RETURN, TASK
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph
from tests.advisors.real import real_rank

RECORDED = ("alexnet-ddp-text-level0", "alexnet-ddp-text-level1", "alexnet-ddp-db-level1")


def graph_of(scene: Scene) -> RankGraph:
    found = scene.store()[rank_graph]
    assert isinstance(found, RankGraph)
    return found


def overlapped() -> Scene:
    """A collective beside the second of three kernels; the third, launched after it, waits for it, and the host then
    waits for the device."""
    scene = Scene().step(1, -20, 2_000)
    scene.kernel(0, 100, launched=-10, op="aten::mm")
    scene.collective(105, 300, [(105, 405, None)], launched=-8)
    scene.kernel(100, 100, launched=-6, op="aten::mm")
    scene.kernel(410, 50, launched=-4, op="aten::mul")
    return scene.event("runtime", "AscendCL@aclrtSynchronizeStream", 0, 465).kernel(500, 10, launched=490)


def edges_between(recorded: RankGraph, kind: int) -> set[tuple[int, int]]:
    """(start, start), us from the first task on, of the ends of the edges of a kind."""
    edges, starts = recorded.edges, recorded.nodes.start_ns
    first = int(starts[recorded.nodes.kind == TASK].min())
    own = edges.kind == kind
    return {
        ((int(starts[one]) - first) // 1000, (int(starts[other]) - first) // 1000)
        for one, other in zip(edges.source[own], edges.target[own], strict=True)
    }


def test_the_unchanged_replay_gives_the_recorded_times() -> None:
    recorded = graph_of(overlapped())
    assert recorded.replayed().tolist() == recorded.nodes.end_ns.tolist()


def test_a_collective_waits_for_the_kernel_before_it_and_the_kernel_behind_for_it() -> None:
    recorded = graph_of(overlapped())
    assert edges_between(recorded, READY) == {(0, 105)}
    # The kernel at 100 us ran beside the collective; the one at 410 us did not.
    assert edges_between(recorded, HELD) == {(105, 410)}
    assert edges_between(recorded, AWAITED) == set()


def test_a_call_that_waits_returns_when_the_device_is_done() -> None:
    recorded = graph_of(overlapped())
    returns = recorded.nodes.kind == RETURN
    assert {start for start, _ in edges_between(recorded, DONE)} >= {410}
    # It returns 5 us after the end of the last kernel.
    assert recorded.graph.duration[returns].tolist() == [5_000]


def test_the_latency_of_a_launch_is_seen_where_an_idle_device_waited_for_it() -> None:
    recorded = graph_of(overlapped())
    launched = recorded.edges.kind == LAUNCHED
    assert sorted(recorded.graph.lag[launched].tolist()) == [10_000] * len(recorded.graph.lag[launched])


def test_tasks_of_one_stream_that_overlap_are_on_chains_of_their_own() -> None:
    scene = Scene().step(1, -20, 500)
    for start, duration in ((0, 100), (50, 100), (120, 50)):
        scene.kernel(start, duration, launched=start - 10, op="aten::mm")
    recorded = graph_of(scene)
    tasks = recorded.nodes.kind == TASK
    assert len(set(recorded.nodes.chain[tasks].tolist())) == 2
    assert recorded.replayed().tolist() == recorded.nodes.end_ns.tolist()


def test_a_steady_loop_is_explained_and_a_single_delay_is_not() -> None:
    def loop(delays: dict[int, float]) -> Explained:
        scene, free = Scene().step(1, -20, 5_000), 0.0
        for number in range(20):
            start = free + delays.get(number, 0)
            scene.kernel(start, 100, launched=number - 60, op="aten::mm")
            free = start + 100
        found = scene.store()[explained]
        assert isinstance(found, Explained)
        return found

    assert loop({}).error_share == 0
    # 400 us in 2,460 from the first launch on; the usual pause of the tasks that have one is that of this one.
    assert loop(dict.fromkeys(range(1, 20), 20.0)).error_share == pytest.approx(0, abs=1e-3)
    assert loop({5: 400.0, 9: 20.0, 13: 20.0}).error_share == pytest.approx(380 / (60 + 20 * 100 + 440), rel=0.05)


@pytest.mark.parametrize("name", RECORDED)
def test_real_recordings_are_replayed_to_the_nanosecond(profiles: Path, name: str) -> None:
    store = real_rank(profiles, name, 0)
    recorded = store[rank_graph]
    assert np.array_equal(recorded.replayed(), recorded.nodes.end_ns)
    assert store[explained].error_share < 0.01
