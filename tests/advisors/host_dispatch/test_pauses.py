"""HD014: rare long pauses."""

from __future__ import annotations

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.contracts.tables import HOST_EVENTS
from advisor_core.facts.host.pauses import host_pauses


def passages(*pauses: float, every: float = 40) -> Scene:
    """A layer of two operators, ten times over; the host takes ``every`` us from one operator to the next, and
    ``pauses`` us instead before the second operator of the layers from the fifth on."""
    scene, now = Scene(), 0.0
    for layer in range(10):
        extra = pauses[layer - 5] if 5 <= layer < 5 + len(pauses) else every
        for name, wait in (("aten::mm", every), ("aten::add", extra)):
            now += wait
            scene.event("cpu_op", name, now, 20)
            scene.kernel(now + 15, 10, launched=now + 10)
            now += 20
    return scene.step(1, -10, now + 10)


def test_pauses_are_what_the_same_passage_does_not_take_at_other_times() -> None:
    scene = passages(5_000)
    found = judge_rule("HD014", scene.store())
    seen = found.first.observation
    assert found.first.severity == "high"
    assert (seen["pauses"], seen["longest_ns"], seen["usual_ns"]) == (1, 4_960_000, 40_000)
    # The device waits for every launch: it loses the whole pause, and only that.
    assert seen["saved_ns"] == 4_960_000
    assert not seen["gc_recorded"]
    pauses = scene.store()[host_pauses]
    events = scene.store()[HOST_EVENTS]
    assert events["name"].iloc[pauses["before"]].tolist() == ["aten::mm"]
    assert events["name"].iloc[pauses["after"]].tolist() == ["aten::add"]


def test_that_borders_fall_on_one_moment_makes_no_other_passage() -> None:
    """A trace in microseconds has the end of an operator and that of its inner one at the same time or 1 us apart."""
    scene, now = Scene(), 0.0
    for layer in range(10):
        scene.event("cpu_op", "aten::mm", now, 20)
        scene.event("cpu_op", "aten::bmm", now + 5, 15 if layer == 7 else 14)
        scene.kernel(now + 15, 10, launched=now + 10)
        now += 5_020 if layer == 7 else 60
    found = judge_rule("HD014", scene.step(1, -10, now + 10).store())
    assert found.first.observation["pauses"] == 1
    assert found.first.observation["longest_ns"] == 4_960_000


def test_a_pause_is_not_told_as_slow_host_work() -> None:
    late = judge_rule("HD002", passages(5_000).store())
    assert late.observed is not None
    # 19 turns of 60 us of which the kernel runs 10 and needs 5 from its launch.
    assert late.observed.frame["late_ns"].iloc[0] == pytest.approx(19 * 45_000)


@pytest.mark.parametrize(
    "scene",
    [
        passages(),
        passages(*[5_000] * 5),
        passages(300),
        passages(5_000, every=600),
        passages(5_000).event("gc", "GC", 400, 5_000),
        passages(5_000).event("cpu_op", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 400, 5_000),
    ],
    ids=["none", "half of the time", "shorter than a ms", "less than ten times", "recorded gc", "data loader"],
)
def test_what_has_another_reason_is_no_pause(scene: Scene) -> None:
    assert judge_rule("HD014", scene.store()).state == "pass"


def test_pauses_without_a_trace_cannot_answer() -> None:
    assert judge_rule("HD014", passages(5_000).store("host_events", "flows")).state == "cannot_answer"
