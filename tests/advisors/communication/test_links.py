"""CO007: slow links."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.communication.links import _median_of_others
from tests.advisors.communication.scenes import MB, moving
from tests.advisors.cures import cure_of, shorter


def linked(*, slow: float, group: str = "77", moved: float = 400) -> Scene:
    """Four links of 1000 us each for 20 MB; one takes ``slow`` us. A collective moves data for ``moved`` us."""
    scene = Scene().kernel(0, 600).collective(600, moved, [(600, 600 + moved, None)], size=64 * MB)
    for target, took in ((1, 1000.0), (2, slow), (3, 1010.0), (4, 990.0)):
        for name in ("allreduce-top1@77", "allreduce-total@77"):
            scene.add(
                "links", step=1, name=name, group=group, op="hcom_allReduce__100_0_1", source_rank=0,
                target_rank=target, transport="HCCS", bytes=20 * MB, transit_us=took,
            )  # fmt: skip
    row = {"name": "allreduce-total@77", "group": group, "transport": "LOCAL", "source_rank": 0, "target_rank": 0}
    return scene.add("links", bytes=20 * MB, transit_us=50, **row)


def test_slow_link_is_named_against_its_peers() -> None:
    found = judge_rule("CO007", linked(slow=2000).store())
    seen = found.first.observation
    assert len(found.verdict.rows) == 1  # type: ignore[union-attr]
    assert (seen["source_rank"], seen["target_rank"], seen["transport"]) == (0, 2, "HCCS")
    assert seen["bandwidth"] == pytest.approx(10e9) and seen["median_bandwidth"] == pytest.approx(20e9)
    assert seen["ratio"] == pytest.approx(0.5) and seen["links"] == 4
    assert found.first.impact_ns == 1_000_000


def test_slow_link_states() -> None:
    assert judge_rule("CO007", linked(slow=1000).store()).state == "pass"
    few = moving().add(
        "links", name="allreduce-total@77", group="77", transport="HCCS", source_rank=0, target_rank=1,
        bytes=MB, transit_us=50,
    )  # fmt: skip
    assert judge_rule("CO007", few.store()).state == "not_applicable"
    assert judge_rule("CO007", linked(slow=2000).store("links")).state == "cannot_answer"
    assert judge_rule("CO007", Scene().kernel(0, 10).store("links")).state == "not_applicable"


@given(st.lists(st.floats(1, 100), min_size=2, max_size=9))
def test_median_of_others_agrees_with_leaving_each_out(values: list[float]) -> None:
    frame = pd.DataFrame({"transport": "HCCS", "group": "7", "bandwidth": values})
    expected = [float(np.median(values[:n] + values[n + 1 :])) for n in range(len(values))]
    assert _median_of_others(frame).tolist() == pytest.approx(expected)


@pytest.mark.parametrize(("group", "moved", "less"), [("0", 2000, 1_000_000), ("0", 700, 700_000), ("77", 2000, 0)])
def test_the_cure_makes_the_collectives_of_the_group_shorter_by_what_the_link_lost(
    group: str, moved: float, less: int
) -> None:
    """By 1 ms, but by no more than they take; those of another group stay."""
    store = linked(slow=2000, group=group, moved=moved).store()
    assert shorter(store, cure_of(judge_rule("CO007", store))) == ({1: less} if less else {})
