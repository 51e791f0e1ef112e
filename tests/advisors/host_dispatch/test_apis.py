"""The table of calls of CANN by API."""

from __future__ import annotations

from advisor_core.api.renderers import TableView
from advisor_core.api.testing import Scene
from advisors.host_dispatch.drawings import SHOWN, apis


def test_the_longest_come_first_and_unknown_counts_stay_unknown() -> None:
    scene = Scene().kernel(0, 10)
    for number in range(SHOWN + 5):
        name = f"aclnn{number}"
        scene.add("api_statistic", level="acl", name=name, count=number or -1, total_ns=1000 * number, max_ns=7)
    (view,) = apis.draw(scene.store().view(apis.needs, apis.wants))
    assert isinstance(view, TableView)
    assert f"{SHOWN} of {SHOWN + 5}" in view.title.en
    assert view.data.rows[0] == [f"aclnn{SHOWN + 4}", "acl", SHOWN + 4, 1000 * (SHOWN + 4), None, 7]
    assert len(view.data.rows) == SHOWN
