"""Transfers that begin with their data, against hand-made timelines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from advisor_core.api.facts import Merging, Overlapping
from advisor_core.api.testing import Scene
from advisor_core.facts.replay.changes import Changing
from advisor_core.facts.replay.nodes import LAUNCH, TASK
from advisor_core.facts.replay.rank_graph import RankGraph, rank_graph


def recorded() -> RankGraph:
    """Three kernels of 100 us, rows 0 to 2, then four transfers of 50 us, rows 3 to 6, each launched 10 us after the one
    before it."""
    scene = Scene().step(1, -100, 1000)
    for number in range(3):
        scene.kernel(100 * number, 100, launched=-50 + number, op="aten::mm")
    for number in range(4):
        scene.collective(300 + 50 * number, 50, None, launched=-40 + 10 * number)
    found = scene.store()[rank_graph]
    assert isinstance(found, RankGraph)
    return found


def hidden(ready_us: float, stays_us: float = 50, leads_us: tuple[float, ...] | None = None) -> Overlapping:
    return Overlapping(
        tasks=np.arange(3, 7),
        chain=np.zeros(4, dtype=np.int64),
        moves_ns=np.full(4, 50_000.0),
        stays_ns=np.array([1000.0 * stays_us]),
        made=np.arange(3),
        made_chain=np.zeros(3, dtype=np.int64),
        ready_ns=np.array([1000.0 * ready_us]),
        lead_ns=None if leads_us is None else 1000.0 * np.array(leads_us),
    )


def transfers(graph: RankGraph, *changes: Overlapping | Merging) -> list[int]:
    """What each transfer takes then, us."""
    own = graph.nodes.at(TASK, np.arange(3, 7))
    times: list[int] = (Changing(graph).changed(changes).duration[own] // 1000).tolist()
    return times


def test_the_first_transfers_are_hidden_first_and_the_last_stays() -> None:
    graph = recorded()
    assert transfers(graph, hidden(ready_us=300)) == [0, 0, 0, 50]
    assert transfers(graph, hidden(ready_us=70)) == [0, 30, 50, 50]
    assert transfers(graph, hidden(ready_us=300, stays_us=120)) == [0, 20, 50, 50]
    assert transfers(graph, hidden(ready_us=0)) == [50, 50, 50, 50]


@pytest.mark.parametrize(
    ("leads_us", "left_us"),
    [
        ((300, 200, 100, 0), [0, 0, 0, 50]),  # an even pace
        ((120, 110, 105, 0), [0, 0, 30, 50]),  # the pass begins with other work: the first begins late
        ((300, 200, 30, 0), [0, 0, 20, 50]),  # the third has to wait for its data
        ((np.inf, np.inf, np.inf, np.inf), [0, 0, 0, 50]),  # not known: ready when those before have moved
    ],
)
def test_transfers_wait_for_their_data_where_it_is_known_when_it_is_ready(
    leads_us: tuple[float, ...], left_us: list[int]
) -> None:
    assert transfers(recorded(), hidden(ready_us=300, leads_us=leads_us)) == left_us


def test_data_that_is_ready_sooner_before_the_end_hides_less() -> None:
    """The kernels take half: of the 120 us behind the data of the first transfer 60 us are left."""
    fused = Merging.none(np.arange(3), np.full(3, 100_000.0), np.full(3, 50_000.0))
    leads = hidden(ready_us=300, leads_us=(120, 110, 105, 0))
    assert transfers(recorded(), fused, leads) == [0, 40, 50, 50]


def test_kernels_that_take_less_hide_less() -> None:
    """The kernels take 150 us in place of 300: so does what they can hide."""
    fused = Merging.none(np.arange(3), np.full(3, 100_000.0), np.full(3, 50_000.0))
    for changes in ((hidden(ready_us=140), fused), (fused, hidden(ready_us=140))):
        assert transfers(recorded(), *changes) == [0, 30, 50, 50]


def test_of_transfers_that_are_moved_together_the_last_message_stays() -> None:
    """Two messages of 100 us: the second is ready last, and no longer is any of the first ones apart."""
    together = Merging(np.arange(3, 7), np.array([0, 0, 1, 1]), np.full(2, 1e5), np.full(2, 1e5), at_end=True)
    assert transfers(recorded(), together) == [0, 100, 0, 100]
    assert transfers(recorded(), together, hidden(ready_us=300)) == [0, 0, 0, 100]
    assert transfers(recorded(), together, hidden(ready_us=40)) == [0, 60, 0, 100]


def test_what_launches_the_transfers_does_so_while_the_others_are_launched() -> None:
    """Of each transfer the launch takes 30 us of a thread that is idle for 300 us less what it launched until then."""
    graph = recorded()
    launch = graph.nodes.at(LAUNCH, np.arange(3, 7))
    duration = graph.graph.duration.copy()
    duration[launch] = 30_000
    slow = replace(graph, graph=graph.graph.changed(duration=duration))
    after = Changing(slow).changed([hidden(ready_us=300)]).duration[launch]
    assert after.tolist() == [0, 0, 0, 0]
    assert Changing(slow).changed([hidden(ready_us=0)]).duration[launch].tolist() == [30_000] * 4


@pytest.mark.parametrize("rows", [[], [100]])
def test_transfers_that_are_not_replayed_change_nothing(rows: list[int]) -> None:
    graph = recorded()
    count = len(rows)
    none = replace(
        hidden(300),
        tasks=np.array(rows, dtype=np.int64),
        chain=np.zeros(count, dtype=np.int64),
        moves_ns=np.full(count, 1e4),
    )
    assert (Changing(graph).changed([none]).duration == graph.graph.duration).all()


def test_an_unknown_lead_hides_nothing_where_nothing_is_computed() -> None:
    unknown = hidden(ready_us=300, leads_us=(np.inf,) * 4)
    nothing = np.zeros(0, dtype=np.int64)
    assert transfers(recorded(), replace(unknown, made=nothing, made_chain=nothing)) == [50, 50, 50, 50]
    assert transfers(recorded(), unknown) == [0, 0, 0, 50]
