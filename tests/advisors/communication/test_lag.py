"""The way of a collective from its operator to the device, stage by stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor_core.api.renderers import TableView
from advisor_core.api.testing import GPU, Scene
from advisor_core.facts.store import FactStore
from advisors.communication.lag import STAGES, lag, lag_times
from tests.advisors.real import real_rank


def stages(store: FactStore) -> list[dict[str, float]]:
    """us of each stage of each collective."""
    times = lag_times(store.view(lag.needs, lag.wants))
    return [{stage: row[stage] / 1000 for stage in STAGES} for row in times.to_dict("records")]


def launched_early() -> Scene:
    """Two collectives launched at 20 and 30: the second waits for the first (100 to 150), then while a kernel runs
    alone (150 to 180), then for 10 us in which nothing runs."""
    scene = Scene(words=GPU).kernel(40, 40).collective(100, 50, launched=20).kernel(150, 30, launched=31)
    scene.event("cpu_op", "c10d::allreduce_", 24, 20)
    return scene.collective(190, 25, launched=30)


def test_what_a_launched_collective_stands_behind() -> None:
    first, second = stages(launched_early().store())
    assert (first["behind"], first["computing"], first["idle"], first["running"]) == (0, 40, 40, 50)
    assert (second["behind"], second["computing"], second["idle"], second["running"]) == (50, 70, 40, 25)
    assert second["operator"] == 6 and first["operator"] != first["operator"], "no operator around the first"


def test_stages_together_are_the_way_from_the_operator_to_the_end() -> None:
    second = stages(launched_early().store())[1]
    assert sum(second.values()) == (190 + 25) - 24


def test_a_device_without_a_task_queue_has_no_column_of_it() -> None:
    (view,) = lag.draw(launched_early().store().view(lag.needs, lag.wants))
    assert isinstance(view, TableView)
    heads = [column.label.en for column in view.data.columns]
    assert "In the task queue" not in heads and view.data.rows[0][2] == 2


def test_no_operator_no_column() -> None:
    scene = Scene(words=GPU).kernel(40, 40).collective(100, 50, launched=20)
    (view,) = lag.draw(scene.store().view(lag.needs, lag.wants))
    assert isinstance(view, TableView)
    assert not any(column.label.en.startswith("In the operator") for column in view.data.columns)


BY_HAND = {"queued": (5.7 + 395.1 + 456.2 + 6161.8) / 4, "operator": 1.2, "launching": 642.4}
"""Rank 0 at level 1, us: dequeue less enqueue of its four collectives, enqueue less operator, and the rest up to the
arrow of the launch, or to 30 us before the end of a launching call that is longer, as read off the trace."""


def test_real_collectives(profiles: Path) -> None:
    found = stages(real_rank(profiles, "alexnet-ddp-text-level1", 0))
    assert len(found) == 4
    for stage, expected in BY_HAND.items():
        assert sum(one[stage] for one in found) / 4 == pytest.approx(expected, abs=1)
    assert found[0]["behind"] == 0 and found[3]["behind"] > 60_000, "the last waits behind the first, which is 79 ms"
