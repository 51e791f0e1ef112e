"""What the device would have done with its kernels captured as a graph, against a timeline made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor_core.api.facts import Capturing, Replay, replay
from advisor_core.api.testing import Scene
from advisor_core.facts.replay.changes import Changing, HostChange

COUNT = 10


def eager(kernel: float = 20, host: float = 60) -> Replay:
    """One step in which the host takes ``host`` us to launch each of ten kernels, which starts 10 us later, or 1 us
    behind the one before it."""
    scene, free = Scene().step(1, -20, COUNT * (host + kernel) + 100), 0.0
    for number in range(1, COUNT + 1):
        scene.event("cpu_op", "aten::mm", (number - 1) * host, host)
        start = max(number * host + 10, free)
        scene.kernel(start, kernel, launched=number * host, op="aten::mm")
        free = start + kernel + 1
    found = scene.store()[replay]
    assert isinstance(found, Replay)
    return found


def captured(*given: int, graphs: int = 1, call_us: int = 0, gap_us: int = 0) -> Capturing:
    rows = np.arange(COUNT)
    graph = rows * graphs // COUNT
    calls = np.zeros(COUNT, dtype=np.int64)
    calls[np.unique(graph, return_index=True)[1]] = 1000 * call_us
    return Capturing(rows, graph, np.isin(rows, given), calls, 1000 * gap_us)


def test_one_launch_starts_all_kernels() -> None:
    """The first kernel starts as it did; the others follow it at once: 9 times 60 us from start to start become 20."""
    found = eager()
    assert found.saved_by(captured()) == 9 * 40_000
    assert found.saved_by(captured(call_us=30, gap_us=1)) == 9 * 39_000 - 30_000


def test_each_graph_is_launched() -> None:
    """The host launches the second graph after 60 us, while the five kernels of the first run for 100. With calls of 100
    us it launches them at 160 and 260, and the last ends at 370 in place of 630."""
    found = eager()
    assert found.saved_by(captured(graphs=2)) == 9 * 40_000
    assert found.saved_by(captured(graphs=2, call_us=100)) == 630_000 - 370_000


def test_a_kernel_that_needs_new_parameters_waits_for_the_host() -> None:
    """The host needs 60 us for those of the tenth: it starts when 160 us of the others have passed, not at 60."""
    found = eager()
    assert found.saved_by(captured(9)) == 9 * 40_000
    assert found.saved_by(captured(1)) == 9 * 40_000 - 40_000


def test_a_device_that_is_the_bottleneck_gains_only_the_gaps() -> None:
    assert eager(kernel=100).saved_by(captured()) == 9 * 1_000


@settings(max_examples=25, deadline=None)
@given(st.sets(st.integers(0, COUNT - 1)), st.integers(1, 4), st.integers(0, 200), st.integers(0, 20))
def test_more_to_do_never_takes_less(own: set[int], graphs: int, call_us: int, gap_us: int) -> None:
    found = eager()
    whole = captured(graphs=graphs, call_us=call_us, gap_us=gap_us)
    saved = found.saved_by(whole)
    assert found.saved_by(captured(*own, graphs=graphs, call_us=call_us, gap_us=gap_us)) <= saved
    assert found.saved_by(replace(whole, call_ns=2 * whole.call_ns)) <= saved
    assert found.saved_by(replace(whole, gap_ns=whole.gap_ns + 5_000)) <= saved


def test_order_of_rows_and_of_changes_is_irrelevant() -> None:
    found = eager()
    whole, host = captured(3, graphs=2, call_us=7), HostChange()
    order = np.random.default_rng(0).permutation(COUNT)
    other = replace(
        whole,
        tasks=whole.tasks[order],
        graph=whole.graph[order],
        given=whole.given[order],
        call_ns=whole.call_ns[order],
    )
    assert found.saved_by(whole) == found.saved_by(other)
    one, two = (Changing(found.recorded).changed(both) for both in ([whole, host], [host, whole]))
    assert (one.duration == two.duration).all() and (one.lag == two.lag).all()
