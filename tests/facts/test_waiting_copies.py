"""Copies that hold the host until they have ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.testing import GPU, Scene
from advisor_core.facts.host.activity import host_activity
from advisor_core.facts.replay.edges import DONE
from advisor_core.facts.replay.rank_graph import rank_graph
from advisor_core.testing.scene import PYTHON_THREAD
from tests.once import ResultOf


def reading(call_us: float) -> Scene:
    """A kernel of 1 ms, which the host reads back: the call begins at 20 us, the copy takes 5 us from 1,001 us on. A
    second kernel is handed over behind the call."""
    scene = Scene(words=GPU).step(1, -20, 2_200)
    scene.kernel(0, 1_000)
    scene.event("runtime", "cudaMemcpyAsync", 20, call_us)
    copy = {"name": "Memcpy DtoH (Device -> Pageable)", "task_type": "Memcpy DtoH", "stream": 2}
    scene.add("device_tasks", start_us=1_001, duration_us=5, **copy)
    for end, time, thread in (("s", 20, PYTHON_THREAD), ("f", 1_001, 2)):
        scene.add("flows", kind="host_to_device", end=end, flow=99, thread=thread, time_us=time)
    return scene.kernel(1_100, 1_000, launched=max(1_050, 20 + call_us))


@pytest.mark.parametrize(("call_us", "waits"), [(1_000, True), (986, True), (985, False), (10, False)])
def test_a_copy_that_ends_before_its_call_held_the_host(call_us: float, waits: bool) -> None:
    store = reading(call_us).store(vendor="gpu")
    assert len(store[host_activity].syncs) == waits
    edges = store[rank_graph].edges
    assert (edges.kind == DONE).sum() == waits, "the call returns when the kernel before it has ended"


def test_a_real_host_waits_in_its_copies(result_of: ResultOf, profiles: Path) -> None:
    """All 60 copies into memory that is not pinned end before their call does, 12 to 27 us; none of the 150 out of pinned
    memory. Without them a device that is busy for 86 % of the step seemed to wait for the host, and quicker kernels to
    win nothing."""
    result = result_of(profiles / "kineto" / "trace-diff" / "test.json.gz")
    (finding,) = (found for found in result.findings if found.rule == "GNS004")
    assert finding.observation["dense_saving_ns"] == pytest.approx(16.54e6, rel=0.01)
    assert finding.observation["saving_ns"] > 5e6
    assert result.model is not None and max(result.model.error_share_by_rank.values()) < 0.02
