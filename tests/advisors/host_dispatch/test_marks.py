"""The table of marks."""

from __future__ import annotations

from advisor_core.api.renderers import TableView
from advisor_core.api.testing import Scene
from advisors.host_dispatch.drawings import marks


def test_marks_by_name_without_those_of_steps() -> None:
    scene = Scene().kernel(0, 30).step(1, 0, 100)
    scene.event("mstx", "rollout", 0, 10).event("mstx", "rollout", 20, 30).event("user_annotation", "reward", 5, 1)
    store = scene.store()
    (view,) = marks.draw(store.view(marks.needs, marks.wants))
    assert isinstance(view, TableView)
    assert view.data.rows == [["rollout", 2, 40000, 20000, 20000, 10000, 30000], ["reward", 1, *[1000] * 5]]
