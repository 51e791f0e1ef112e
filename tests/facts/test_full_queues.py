"""Calls that wait for room in a full queue, against a plain simulation of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.api.testing import GPU, Scene
from advisor_core.facts.host.full_queues import FullQueues, full_queues
from advisor_core.facts.replay.edges import ROOM_MADE
from advisor_core.facts.replay.nodes import LAUNCH, TASK
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph
from advisor_core.facts.store import FactStore
from advisor_core.loaders.discover import discover
from advisor_core.replay.sweep import ends
from advisor_core.run.rank import fact_store
from tests.advisors.build import ACL_THREAD, host
from tests.once import ResultOf

OWN_US, CALL_US, AWAKE_US, START_US, TAKE_US = 5.0, 5.0, 6.0, 10.0, 2.0
"""Between two calls; of a call; from room to the return of a call that waited for it; from a call to its kernel; from an
entry to the thread behind the queue."""


@dataclass(frozen=True)
class Turn:
    """An entry: ``called`` to ``returned`` its call, ``began`` to ``done`` what the server does for it, us; ``held``: the
    call waited for room."""

    called: float
    returned: float
    began: float
    done: float
    held: bool


def turns(count: int, length: int | None, serves_us: float, delay_us: float) -> list[Turn]:
    """A host and a server with a queue of ``length`` entries, one entry after the other; ``delay_us``: from the begin of
    a call to when its entry can be served at the earliest."""
    found: list[Turn] = []
    free, done = 0.0, -1.0
    for number in range(count):
        called = free + OWN_US
        returned, held = called + CALL_US, False
        if length is not None and number >= length and found[number - length].done > called:
            held = True
            returned = max(returned, found[number - length].done + AWAKE_US)
        free = returned
        began = max(done, (returned - CALL_US if held else called) + delay_us)
        done = began + serves_us
        found.append(Turn(called, returned, began, done, held))
    return found


def launching(entries: list[Turn]) -> Scene:
    """A thread that launches kernels on a stream."""
    scene = Scene(words=GPU).step(1, -10, entries[-1].done + 10)
    for entry in entries:
        scene.kernel(entry.began, entry.done - entry.began, launched=entry.called)
        call = scene.rows["host_events"][-1]
        call |= {"start_us": entry.called, "duration_us": entry.returned - entry.called}
    return scene


def enqueuing(entries: list[Turn]) -> Scene:
    """A thread that puts calls into a task queue; the one behind it launches a short kernel for each."""
    scene = Scene().step(1, -10, entries[-1].done + 40)
    for number, entry in enumerate(entries):
        took = {"correlation": number}
        scene.event("enqueue", "Enqueue@aclnnAdd", entry.called, entry.returned - entry.called, **took)
        scene.event("dequeue", "Dequeue@aclnnAdd", entry.began, entry.done - entry.began, ACL_THREAD, **took)
        scene.kernel(entry.done + START_US, 1, launched=entry.done - 1)
        scene.rows["flows"][-2]["thread"] = ACL_THREAD
    return scene


def launching_behind_a_queue(entries: list[Turn]) -> Scene:
    """A thread behind a task queue that launches kernels on a stream; the queue never runs empty."""
    scene = Scene().step(1, -10, entries[-1].done + 10)
    for number, entry in enumerate(entries):
        took = {"correlation": number}
        scene.event("enqueue", "Enqueue@aclnnAdd", 0.5 * number, 0.4, **took)
        begun = entry.called - OWN_US + 1
        scene.event("dequeue", "Dequeue@aclnnAdd", begun, entry.returned - begun + 0.5, ACL_THREAD, **took)
        scene.kernel(entry.began, entry.done - entry.began, launched=entry.called)
        call = scene.rows["host_events"][-1]
        call |= {"start_us": entry.called, "duration_us": entry.returned - entry.called, "thread": ACL_THREAD}
        scene.rows["flows"][-2]["thread"] = ACL_THREAD
    return scene


def stored(scene: Scene) -> FactStore:
    return scene.store(vendor="gpu" if scene.words is GPU else "ascend")


def full(store: FactStore) -> FullQueues:
    found = store[full_queues]
    assert isinstance(found, FullQueues)
    return found


def graph(store: FactStore) -> RankGraph:
    found = store[rank_graph]
    assert isinstance(found, RankGraph)
    return found


@settings(max_examples=10, deadline=None)
@given(st.integers(33, 60), st.sampled_from([45.0, 80.0, 300.0]))
def test_a_full_stream_is_seen_with_its_length_and_who_waited_for_it(length: int, kernel_us: float) -> None:
    entries = turns(200, length, kernel_us, START_US)
    store = stored(launching(entries))
    found = full(store)
    assert found.lengths == (length,)
    assert len(found.frame) == sum(entry.held for entry in entries) > 0
    recorded = graph(store)
    assert (recorded.edges.kind == ROOM_MADE).sum() == len(found.frame)
    assert not len(recorded.edges.contradicted[0])
    assert recorded.replayed().tolist() == recorded.nodes.end_ns.tolist()


@pytest.mark.parametrize("scene", [launching, enqueuing, launching_behind_a_queue])
def test_a_queue_that_is_never_full_holds_nobody_up(scene: Callable[[list[Turn]], Scene]) -> None:
    assert full(stored(scene(turns(200, None, 80.0, START_US)))).lengths == ()


def test_calls_that_take_long_for_another_reason_are_not_held_up_by_a_queue() -> None:
    """A host that is far ahead, and every seventh call of which takes 100 us."""
    scene = launching(turns(200, None, 80.0, START_US))
    for row in scene.rows["host_events"][::7]:
        row["duration_us"] = 100.0
    assert full(stored(scene)).lengths == ()


def _lasts_us(recorded: RankGraph, kind: int, share: float) -> float:
    """The replay with nodes of a kind that take this share of their time."""
    chosen = recorded.nodes.kind == kind
    duration = np.where(chosen, np.rint(recorded.graph.duration * share), recorded.graph.duration).astype(np.int64)
    ended = ends(recorded.graph.changed(duration=duration), recorded.free_ns)
    return float((ended[recorded.nodes.kind == TASK].max() + recorded.origin_ns) / 1e3)


@pytest.mark.parametrize("share", [1.0, 0.7, 0.5, 0.2])
@pytest.mark.parametrize("scene", [launching, launching_behind_a_queue])
def test_quicker_kernels_make_room_sooner(scene: Callable[[list[Turn]], Scene], share: float) -> None:
    """The launches take 240 us each in the recording, and only 10 where nothing holds them up."""
    recorded = graph(stored(scene(turns(400, 40, 240.0, START_US))))
    truth = turns(400, 40, 240.0 * share, START_US)[-1].done
    assert _lasts_us(recorded, TASK, share) == pytest.approx(truth, rel=0.01)


@pytest.mark.parametrize("share", [1.0, 0.7, 0.5, 0.3])
def test_a_quicker_thread_behind_the_queue_makes_room_sooner(share: float) -> None:
    store = stored(enqueuing(turns(400, 40, 60.0, TAKE_US)))
    assert full(store).lengths == (40,)
    truth = turns(400, 40, 60.0 * share, TAKE_US)[-1].done
    assert _lasts_us(graph(store), LAUNCH, share) == pytest.approx(truth, rel=0.03)


def test_a_real_host_is_held_up_by_1022_launches(result_of: ResultOf, profiles: Path) -> None:
    """By the raw events: 1,063 of 6,095 launches take more than 30 us, and end 5.0 to 7.2 us (90 % of them) after the
    kernel that was launched 1,022 before them did; never are more launches open. The device is busy for 98 % of a step
    of 96.0 ms, and the host for 31.9 ms. Before, kernels that take no time at all won no more than 17 ms."""
    path = profiles / "kineto" / "ns-resolution-v100.json.gz"
    loaders = host().loaders
    (source,) = discover(list(loaders.values()), path)
    store = fact_store(host(), loaders[source.loader].load(source))
    found = full(store)
    assert found.lengths == (1_022,)
    assert len(found.frame) == 1_271
    held_ns = (found.frame["room_ns"] - found.frame["start_ns"]).sum()
    assert held_ns == pytest.approx(231.4e6, rel=0.001)
    result = result_of(path)
    assert result.plan is not None
    assert result.plan.after_ns < 60e6
