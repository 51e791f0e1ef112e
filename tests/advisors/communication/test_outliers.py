"""CO004: abnormally long operations."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.communication.scenes import MB, specs
from tests.advisors.cures import cure_of, shorter


def repeated(*, last: float, count: int = 6, wait: float = 0) -> Scene:
    """Operations of one size that take 100 us, the last one ``last`` us longer moving or waiting."""
    scene = Scene().kernel(0, 10)
    for number in range(count):
        start = 1000.0 * number
        extra = last if number == count - 1 else 0
        length = 100 + extra + wait
        scene.collective(start, length, [(start, start + wait, 5), (start + wait, start + length, None)], size=32 * MB)
    return scene


def test_outlier_fires_for_the_one_operation() -> None:
    found = judge_rule("CO004", repeated(last=400).store())
    seen = found.first.observation
    assert len(found.verdict.rows) == 1  # type: ignore[union-attr]
    assert seen["name"].endswith("_5_1") and seen["samples"] == 6
    assert seen["active_ns"] == 500_000 and seen["median_ns"] == 100_000 and seen["spread_ns"] == 0
    assert found.first.impact_ns == 400_000


def test_zero_copy_is_not_advised() -> None:
    """HCCL calls it a trial feature that products must not use."""
    assert not any("ZERO_COPY" in name for one in specs("CO004") for name in one.set)


def test_the_settings_of_rdma_are_named() -> None:
    (first,) = specs("CO004")
    assert "`HCCL_RDMA_TC`" in first.text.en and "`HCCL_RDMA_SL`" in first.text.en


def test_outlier_ignores_waiting() -> None:
    scene = repeated(last=0)
    # As long as the outlier above, but it waits.
    scene.collective(6000, 500, [(6000, 6400, 5), (6400, 6500, None)], size=32 * MB)
    assert judge_rule("CO004", scene.store()).state == "pass"


def test_outlier_without_planes_may_have_waited() -> None:
    assert judge_rule("CO004", repeated(last=400).store("communication_tasks")).state == "cannot_answer"


def test_outlier_states() -> None:
    assert judge_rule("CO004", repeated(last=0).store()).state == "pass"
    assert judge_rule("CO004", repeated(last=400, count=4).store()).state == "not_applicable"
    assert judge_rule("CO004", repeated(last=400).store("collectives", "collective_bandwidth")).state == "cannot_answer"


def test_the_cure_makes_the_one_operation_as_long_as_the_others() -> None:
    store = repeated(last=400).store()
    assert shorter(store, cure_of(judge_rule("CO004", store))) == {6: 400_000}
