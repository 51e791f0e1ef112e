"""CO023: operations that take longer for their data than smaller ones of their group."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.communication.scenes import MB
from tests.advisors.cures import cure_of, shorter


def growing(*calls: tuple[int, float], wait: float = 0, operation: str = "allReduce") -> Scene:
    """Operations of one group one behind the other: MB, and us in which they move them."""
    scene, start = Scene().kernel(0, 10), 100.0
    for size, took in calls:
        length = wait + took
        tasks = [(start, start + wait, 5), (start + wait, start + length, None)]
        scene.collective(start, length, tasks, size=size * MB, operation=operation)
        start += length + 50
    return scene


SMALL = ((8, 100), (16, 200))


def test_the_largest_takes_three_times_as_long_by_byte() -> None:
    """12.5 us a MB twice, then 64 MB in 2400 us, which would be 800."""
    found = judge_rule("CO023", growing(*SMALL, (64, 2400)).store())
    seen = found.first.observation
    assert (seen["active_ns"], seen["smaller"]) == (2_400_000, 2) and seen["ratio"] == pytest.approx(3)
    assert seen["at_their_rate_ns"] == pytest.approx(800_000) and found.first.impact_ns == pytest.approx(1_600_000)


def test_one_quick_operation_is_no_witness() -> None:
    """8 MB in 20 us may be measured wrongly: the second quickest one counts."""
    (row,) = frame(growing((8, 20), (16, 200), (64, 800)))
    assert row == (pytest.approx(800_000), 2)


def frame(scene: Scene) -> list[tuple[object, object]]:
    observed = judge_rule("CO023", scene.store()).observed
    assert observed is not None
    return list(observed.frame[["at_their_rate_ns", "smaller"]].itertuples(index=False, name=None))


@pytest.mark.parametrize(
    ("scene", "state"),
    [
        (growing(*SMALL, (64, 800)), "pass"),
        (growing((8, 300), (16, 500), (64, 1600)), "pass"),  # small ones have the fixed costs
        (growing(*SMALL, (64, 800), wait=2000), "pass"),  # as long, but it waits
        (growing((8, 100), (64, 2400)), "not_applicable"),
        (growing(*SMALL, (64, 2400), operation="alltoAllV"), "not_applicable"),  # waits for what others send
        (growing(*SMALL, (64, 2400), operation="send"), "not_applicable"),
        (growing(*SMALL, *[(64, 2400)] * 5), "not_applicable"),  # five of a size are judged by each other
        (growing((64, 800), (16, 1000), (8, 600)), "pass"),  # the largest is the quickest
    ],
)
def test_states(scene: Scene, state: str) -> None:
    assert judge_rule("CO023", scene.store()).state == state


def test_the_cure_is_the_rate_of_the_smaller_ones() -> None:
    store = growing(*SMALL, (64, 2400)).store()
    assert list(shorter(store, cure_of(judge_rule("CO023", store))).values()) == [pytest.approx(1_600_000, abs=2)]
