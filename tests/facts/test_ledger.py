"""The ledger: against the plain reference, and the properties that make it a ledger."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from advisor_core.contracts.tables import SCHEMAS
from advisor_core.facts.host.launches import launches
from advisor_core.facts.ledger.settled import bookings
from advisor_core.facts.ledger.totals import ledger
from advisor_core.facts.steps.kernel_list import kernel_list
from advisor_core.facts.steps.start_up import start_up
from advisor_core.facts.steps.steps import steps
from advisor_core.facts.store import FactStore
from advisor_core.testing import table
from tests.facts import reference, small
from tests.facts.reference import Kernel, Story, Task

TYPES = ("MatMulV2", "FlashAttentionScore", "Add", "TransData", "hcom_allReduce_")
ORIGIN = 1_736_408_883_000_000
"""A real time in us, so that anything that passes through a float64 shows."""


@st.composite
def stories(draw: st.DrawFn) -> Story:
    kernels, t = [], 0
    for _ in range(draw(st.integers(1, 7))):
        t += draw(st.integers(0, 70))
        length = draw(st.integers(1, 30))
        late = draw(st.sampled_from([None, 0, 5, 20, 60, 200]))
        kernels.append(Kernel(t, t + length, draw(st.sampled_from(TYPES)), None if late is None else t - late))
        t += draw(st.sampled_from([length, length, length // 2]))
    # Two tasks that start together on two streams would share an arrow.
    starts: set[int] = set()
    kernels = [k for k in kernels if not (k.start in starts or starts.add(k.start))]  # type: ignore[func-returns-value]
    if not any(k.launch is not None for k in kernels):
        kernels[0].launch = kernels[0].start
    end = max(k.end for k in kernels)
    planes = [
        Task(a, min(a + draw(st.integers(1, 20)), k.end), draw(st.sampled_from([None, 3, 5])))
        for k in kernels
        if k.talks
        for a in draw(st.lists(st.integers(k.start, k.end - 1), max_size=3))
    ]
    host = []
    for activity in draw(st.lists(st.sampled_from(reference.ORDER[:-1]), max_size=6)):
        a = draw(st.integers(0, end))
        host.append((activity, a, a + draw(st.integers(1, 40))))
    # The reference knows one call at a time; two that overlap would be one call in a real trace.
    syncs = sorted((a, b) for activity, a, b in host if activity == "sync")
    host = [h for h in host if h[0] != "sync"] + [("sync", a, b) for a, b in syncs[:1]]
    spans = st.lists(st.tuples(st.integers(0, end), st.integers(1, 20)), max_size=2)
    copies = [(a, a + n) for a, n in draw(spans)]
    waits = [(a, a + n) for a, n in draw(spans)]
    return Story(kernels, planes, host, copies, waits)


def build(story: Story, *, shift: int = ORIGIN, shuffle: int | None = None) -> FactStore:
    kernels, flows, events, tasks, planes = [], [], [], [], []
    for number, k in enumerate(story.kernels):
        kernels.append(small.kernel(shift + k.start, k.end - k.start, k.type))
        if k.launch is not None:
            stream = 0 if k.talks else 2
            flows += small.launch(number + 1, shift + k.launch, shift + k.start, stream=stream)
    for a, b in story.copies:
        tasks.append(
            {"name": "memcpy", "task_type": "SDMA_SQE", "stream": 9, "start_us": shift + a, "duration_us": b - a}
        )
    for a, b in story.waits:
        tasks.append(
            {"name": "wait", "task_type": "EVENT_WAIT_SQE", "stream": 9, "start_us": shift + a, "duration_us": b - a}
        )
    for k in story.kernels:
        if k.talks:
            planes.append({"lane": "Group 0 Communication", "group": 0, "plane": -1, "name": k.type,
                           "start_us": shift + k.start, "duration_us": k.end - k.start})  # fmt: skip
    for task in story.planes:
        planes.append({"lane": "Plane 1", "group": 0, "plane": 1, "name": "Memcpy" if task.peer is None else "Notify_Wait",
                       "start_us": shift + task.start, "duration_us": task.end - task.start, "own_rank": 0,
                       "peer_rank": -1 if task.peer is None else task.peer})  # fmt: skip
    # A queue exists: one thread feeds it, another empties it. These two mark the threads and last no time.
    events.append(small.host("enqueue", "Enqueue", small.MAIN, shift - 900, 0, 1))
    events.append(small.host("dequeue", "Dequeue@aclnnAdd", small.ACL, shift - 900, 0, 1))
    for activity, a, b in story.host:
        category, name = reference.NAMES[activity]
        thread = small.ACL if activity in ("runtime", "compile") else small.MAIN
        events.append(small.host(category, name, thread, shift + a, b - a))
    rows: dict[str, list[dict[str, Any]]] = {
        "kernels": kernels, "flows": flows, "host_events": events, "device_tasks": tasks, "communication_tasks": planes,
    }  # fmt: skip
    if shuffle is not None:
        for part in rows.values():
            random.Random(shuffle).shuffle(part)
    return small.store(**{name: table(name, part) for name, part in rows.items()})


def booked(store: FactStore) -> dict[str, int]:
    frame: pd.DataFrame = store[ledger]
    return {row.path: int(row.ns) // small.US for row in frame.itertuples()}


@given(stories())
def test_against_the_reference(story: Story) -> None:
    store = build(story)
    assume(is_a_steady_step(store))
    assert booked(store) == reference.ledger(story)


def is_a_steady_step(store: FactStore) -> bool:
    """Whether it is what the reference knows: no benchmark, and no wait for the start of other ranks."""
    return kernel_list not in store and start_up not in store


@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(stories(), st.integers(0, 10_000))
def test_order_of_rows_and_origin_of_time_do_not_matter(story: Story, seed: int) -> None:
    assert booked(build(story, shift=ORIGIN + seed, shuffle=seed)) == booked(build(story))


@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(stories(), st.data())
def test_splitting_a_kernel_in_two_changes_nothing(story: Story, data: st.DataObject) -> None:
    assume(is_a_steady_step(build(story)))
    before = booked(build(story))
    long = [k for k in story.kernels if k.end - k.start >= 2 and not k.talks]
    if not long:
        return
    k = data.draw(st.sampled_from(long))
    middle = data.draw(st.integers(k.start + 1, k.end - 1))
    if any(other.start == middle for other in story.kernels):
        return
    story.kernels.append(Kernel(middle, k.end, k.type, k.launch))
    k.end = middle
    assume(is_a_steady_step(build(story)))
    assert booked(build(story)) == before


@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(stories())
def test_pieces_tile_the_step(story: Story) -> None:
    store = build(story)
    pieces = store[bookings].pieces
    lengths = (pieces["end_ns"] - pieces["start_ns"]).to_numpy()
    assert (lengths > 0).all()
    assert (pieces["start_ns"].to_numpy()[1:] == pieces["end_ns"].to_numpy()[:-1]).all()
    window = store[steps]
    assert lengths.sum() == (window["end_ns"] - window["start_ns"]).sum()


def test_steps_tile_the_profile_and_the_gap_between_two_belongs_to_the_earlier() -> None:
    rows = [small.kernel(0, 10, step=7), small.kernel(30, 10, step=8), small.kernel(50, 5, step=8)]
    store = small.store(kernels=table("kernels", rows))
    windows = store[steps]
    assert windows["step"].tolist() == [7, 8]
    assert (windows["end_ns"] - windows["start_ns"]).tolist() == [30 * small.US, 25 * small.US]
    totals = store[ledger]
    assert totals.groupby("step")["ns"].sum().tolist() == [30 * small.US, 25 * small.US]
    assert set(totals["path"]) == {"compute/matmul", "idle/unknown"}


def test_a_sync_call_is_not_blamed_while_the_device_is_busy() -> None:
    story = Story(
        [Kernel(0, 100, "MatMulV2", -20), Kernel(140, 150, "MatMulV2", 135)],
        host=[("sync", 10, 105), ("framework", 105, 140)],
    )
    # The device drains at 100; the call returns at 105 and the host, held for 90 us, needs 30 us to launch again.
    assert booked(build(story)) == {"compute/matmul": 110, "idle/sync": 35, "idle/launch_latency": 5}


def test_a_sync_call_that_held_nothing_is_not_to_blame_for_a_slow_host() -> None:
    story = Story(
        [Kernel(0, 10, "MatMulV2", -5), Kernel(100, 110, "MatMulV2", 95)],
        host=[("sync", 12, 14), ("framework", 14, 95)],
    )
    result = booked(build(story))
    assert result["idle/sync"] == 2 and result["idle/host/framework"] == 81


def test_waiting_is_named_for_the_rank_whose_wait_ends_last() -> None:
    story = Story(
        [Kernel(0, 5, "Add", 0), Kernel(5, 105, "hcom_allReduce_", 1)],
        planes=[Task(5, 20, 3), Task(6, 95, 5), Task(95, 105, None)],
    )
    expected = {"compute/elementwise": 5, "communication/wait/rank 3": 1, "communication/wait/rank 5": 89,
                "communication/transmit": 10}  # fmt: skip
    assert booked(build(story)) == expected


def test_peers_become_global_ranks_through_the_recorded_group() -> None:
    story = Story([Kernel(0, 50, "hcom_allReduce__586_0_1", 0)], planes=[Task(0, 50, 1)])
    store = build(story)
    tables = {name: store[SCHEMAS[name]] for name in ("kernels", "flows", "host_events", "communication_tasks")}
    grouped = small.store(rank=4, groups={"17522688603477080586": [4, 12]}, **tables)
    assert booked(grouped) == {"communication/wait/rank 12": 50}


def test_host_and_device_clocks_are_brought_together() -> None:
    """A task cannot start before its launch: the largest such lead is taken off every host time."""
    rows = [small.kernel(100, 10), small.kernel(150, 10)]
    flows = small.launch(1, 112, 100) + small.launch(2, 150, 150)
    store = small.store(kernels=table("kernels", rows), flows=table("flows", flows))
    found = store[launches]
    assert found.skew_ns == 12 * small.US
    assert (found.frame["lead_ns"] // small.US).tolist() == [0, 12]
    assert np.array_equal(found.frame["launch_ns"] // small.US, [100, 138])
