"""CO002: waiting for a late rank."""

from __future__ import annotations

from advisor_core.api.testing import Scene, judge_rule
from tests.advisors.communication.scenes import moving, waiting


def test_late_rank_is_named_with_its_waits() -> None:
    found = judge_rule("CO002", waiting().store(groups={"7100": [0, 1, 2, 3, 4, 5]}))
    seen = found.first.observation
    assert seen["late"] == "rank 5" and seen["wait_ns"] == 400_000
    assert seen["calls"] == 1 and seen["all_calls"] == 1 and seen["longest_ns"] == 400_000
    assert found.first.severity == "high"
    rows = found.evidence()[0]
    tasks = waiting().table("communication_tasks").iloc[rows.rows]
    assert tasks["peer_rank"].tolist() == [5]
    # The notification of rank 3 had come long before: it held nobody up.
    assert len(found.verdict.rows) == 1  # type: ignore[union-attr]


def test_late_rank_of_an_unknown_group_is_not_called_a_rank_of_the_job() -> None:
    scene = Scene(rank=3).kernel(0, 500).collective(500, 500, [(510, 910, 1), (910, 1000, None)])
    for row in scene.rows["communication_tasks"]:
        row["own_rank"] = 0
    found = judge_rule("CO002", scene.store())
    assert found.first.observation["late"] == "group rank 1"
    assert found.first.observation["is_global"] is False
    assert [advice.kind for advice in found.first.advice] == ["collect", "investigate", "investigate"]


def two_groups() -> Scene:
    """Rank 0 waits for local rank 7 in the group of all eight ranks, then for local rank 1 in another group."""
    scene = Scene().kernel(0, 500)
    for group, peer in ((0, 7), (1, 1)):
        start = 500.0 + 400 * group
        planes = [(start, start + 300, peer), (start + 300, start + 400, None)]
        scene.collective(start, 400, planes, group=group)
    return scene


def test_peers_are_named_group_by_group() -> None:
    def late(**about: object) -> set[str]:
        verdict = judge_rule("CO002", two_groups().store(**about)).verdict
        return {row.observation["late"] for row in verdict.rows}  # type: ignore[union-attr]

    assert late(groups={"7100": list(range(8)), "7101": [0, 4]}) == {"rank 7", "rank 4"}
    # A group that was not recorded is not taken for that of all ranks because its first member is rank 0.
    assert late(world_size=8) == {"rank 7", "group rank 1"}
    assert late(groups={"7101": [0, 4]}, world_size=8) == {"rank 7", "rank 4"}
    assert late() == {"group rank 7", "group rank 1"}


def test_late_rank_is_silent_and_states() -> None:
    assert judge_rule("CO002", waiting(covered=True).store()).state in {"pass", "not_applicable"}
    assert judge_rule("CO002", moving().store()).state == "not_applicable"
    assert judge_rule("CO002", Scene().kernel(0, 10).store()).state == "not_applicable"
    assert judge_rule("CO002", waiting().store("communication_tasks")).state == "cannot_answer"
    small = Scene().kernel(0, 5000).collective(5000, 30, [(5000, 5020, 5), (5020, 5030, None)])
    assert judge_rule("CO002", small.store()).state == "pass"
