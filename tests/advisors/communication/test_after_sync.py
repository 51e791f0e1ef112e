"""Uncovered communication that a synchronising call held up, and how much of it the computing meanwhile could hide."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule


def gathered(
    held: float = 500, moving: float = 300, *, lead: float = 5, wait_for: int | None = None, beside: bool = False
) -> Scene:
    """1000 us of computing, of which the host waits for the last ``held``; then a collective of ``moving``, launched
    ``lead`` before it begins, and a kernel that needs it. ``beside``: a collective runs under the computing."""
    scene = Scene().step(1, -10, 2_000).kernel(0, 1_000, launched=-5, op="aten::mm")
    scene.event("cpu_op", "aten::to", 990 - held, held + 20, call_stack="model.py(7): forward")
    scene.event("runtime", "AscendCL@aclrtSynchronizeStreamWithTimeout", 1_000 - held, held)
    if beside:
        scene.collective(1_000 - held, held - 1, [(1_000 - held, 999, None)], launched=-4)
    begin = 1_050.0
    planes = [(begin, begin + moving, wait_for)]
    scene.collective(begin, moving, planes, operation="allGather", launched=begin - lead)
    return scene.kernel(begin + moving, 200, launched=begin + 10)


def test_what_the_computing_could_have_hidden() -> None:
    found = judge_rule("CO017", gathered().store())
    seen = found.first.observation
    assert found.state == "fail"
    assert (seen["held_ns"], seen["uncovered_ns"], seen["saveable_ns"]) == (500_000, 300_000, 300_000)
    assert (seen["operator"], seen["place"], seen["calls"]) == ("aten::to", "model.py(7): forward", 1)
    assert found.first.impact_ns == 300_000


def test_no_more_than_what_held_the_call() -> None:
    seen = judge_rule("CO017", gathered(held=200).store()).first.observation
    assert (seen["held_ns"], seen["saveable_ns"]) == (200_000, 200_000)


def test_computing_with_communication_beside_it_hides_nothing_more() -> None:
    assert judge_rule("CO017", gathered(beside=True).store()).state == "pass"


def test_a_collective_that_was_launched_long_before_waited_for_something_else() -> None:
    assert judge_rule("CO017", gathered(lead=45).store()).state == "pass"


def test_waiting_for_a_rank_is_the_matter_of_that_rank() -> None:
    assert judge_rule("CO017", gathered(wait_for=1).store()).state == "pass"


def test_two_collectives_share_what_one_call_held() -> None:
    scene = gathered(held=400)
    scene.collective(1_600, 300, [(1_600, 1_900, None)], operation="allGather", launched=1_595)
    seen = judge_rule("CO017", scene.store()).first.observation
    assert (seen["uncovered_ns"], seen["saveable_ns"], seen["calls"]) == (600_000, 400_000, 2)


def test_without_a_synchronising_call_it_is_in_order() -> None:
    scene = gathered()
    scene.rows["host_events"] = [row for row in scene.rows["host_events"] if "Synchronize" not in row["name"]]
    assert judge_rule("CO017", scene.store()).state == "pass"


def test_without_collectives_it_does_not_apply() -> None:
    assert judge_rule("CO017", Scene().step(1, -10, 420).kernel(0, 400).store()).state == "not_applicable"
