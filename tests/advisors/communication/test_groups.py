"""The tables of communication groups."""

from __future__ import annotations

from typing import Any

import pytest

from advisor_core.api.renderers import TableView
from advisor_core.api.testing import Scene
from advisor_core.testing.tables import fact_store, profile, table
from advisors.communication.group_overlap import group_overlap
from advisors.communication.groups import groups, spans


def test_groups_by_link_with_their_ranks_and_what_they_reach() -> None:
    scene = Scene().kernel(0, 10)
    for step, transport, size, took in ((1, "HCCS", 10**6, 100), (2, "HCCS", 10**6, 300), (1, "SDMA", 10**6, 100)):
        name, group = "hcom_allReduce__123_0_1", "123"
        scene.add("collectives", step=step, name=name, group=group, start_us=0, elapse_us=took)
        moved = {"bytes": size, "transit_us": took, "bandwidth": size / took * 1e6}
        scene.add("collective_bandwidth", step=step, name=name, group=group, transport=transport, **moved)
    tables = {name: table(name, rows) for name, rows in scene.rows.items()}
    store = fact_store(about=profile(groups={"123": (0, 1, 2, 6)}), **tables)
    (view,) = groups.draw(store.view(groups.needs, groups.wants))
    assert isinstance(view, TableView)
    (row,) = view.data.rows
    assert row[:6] == ["123", "0-2,6", "allReduce", "HCCS", 1, 10**6]
    assert row[6:] == [200e3, pytest.approx(5e9), pytest.approx(10**6 / 300e-6)]


def test_numbers_in_a_row_are_joined() -> None:
    assert [spans([3]), spans([0, 1, 2]), spans([0, 2, 3, 9])] == ["3", "0-2", "0,2-3,9"]


def test_what_runs_beside_computing_is_told_by_group() -> None:
    scene = Scene().step(1, 0, 1000).kernel(0, 300).collective(100, 400)
    scene.collective(600, 100, operation="allGather", group=1)
    members = {"100": (0, 1, 2, 3), "101": (0, 1)}
    store = scene.store(groups=members, parallel={"dp": 4, "tp": 2, "ep": 2})
    (view,) = group_overlap.draw(store.view(group_overlap.needs, group_overlap.wants))
    assert isinstance(view, TableView)
    heads = [column.label.en for column in view.data.columns]
    wide, narrow = (dict(zip(heads, row, strict=True)) for row in view.data.rows)
    assert (wide["Ranks"], wide["Operations"]) == ("0,1,2,3", "allReduce")
    assert getattr(wide["Parallelism"], "en", None) == "dp, guessed by its size"
    assert (wide["Time in it"], wide["Beside computing"], wide["Not covered"]) == (400e3, 0.5, 200e3)
    assert (narrow["Ranks"], narrow["Parallelism"]) == ("0,1", None)
    assert (narrow["Calls"], narrow["Beside computing"], narrow["Not covered"]) == (1, 0, 100e3)


def test_a_group_has_the_name_that_the_framework_gave_it() -> None:
    """Two dimensions of one size look the same; a group is known by the end of its hash, too."""
    assert _parallelism(groups={}, group_names={"5862276093215481100": "dp_cp", "5862276093215481101": "pp"}) == "dp_cp"
    # A group that is known and has no name is not another one with the same end.
    assert _parallelism(groups={"100": (0, 1)}, group_names={"5862276093215481100": "dp_cp"}) is None


def _parallelism(**about: Any) -> object:
    scene = Scene().step(1, 0, 1000).kernel(0, 300).collective(100, 400)
    store = scene.store(parallel={"dp": 2, "pp": 2}, **about)
    (view,) = group_overlap.draw(store.view(group_overlap.needs, group_overlap.wants))
    assert isinstance(view, TableView)
    heads = [column.label.en for column in view.data.columns]
    return dict(zip(heads, view.data.rows[0], strict=True)).get("Parallelism")
