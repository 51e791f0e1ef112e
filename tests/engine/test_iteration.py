"""Roles that were recorded one by one, on one axis: their spans and what lies between them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from advisor_core.job.clocks import CLOCKS_NS
from advisor_core.result.run import RunResult, StepInfo
from advisor_core.run.compose_iteration import compose_iteration

Turn = tuple[str, int, int, int]
"""Role, rank, start and end."""


def recorded(*turns: Turn, step: int | None = 11) -> RunResult:
    steps = [StepInfo(rank=rank, step=step, start_ns=a, end_ns=b, role=role) for role, rank, a, b in turns]
    return cast(RunResult, SimpleNamespace(profile=SimpleNamespace(steps=steps)))


def test_a_gap_is_from_the_last_rank_to_the_first_of_the_next_role() -> None:
    """The rollout ends at 100 on rank 0 and at 300 on rank 1; the update begins at 320 on both."""
    found = compose_iteration(
        recorded(
            *(("rollout", rank, 1000, end) for rank, end in enumerate((1100, 1300))),
            *(("update", rank, 1320, 1400) for rank in (0, 1)),
        )
    )
    assert found is not None
    (gap,) = found.gaps
    assert (gap.after, gap.before, gap.ns, gap.mean_ns, gap.last_rank) == ("rollout", "update", 20, 120, 1)
    assert [(span.start_ns, span.end_ns) for span in found.spans] == [(0, 100), (0, 300), (320, 400), (320, 400)]


def test_roles_that_overlap_have_no_gap_and_others_no_mean() -> None:
    found = compose_iteration(recorded(("rollout", 0, 0, 100), ("reference", 1, 90, 200)))
    assert found is not None
    assert (found.gaps[0].ns, found.gaps[0].mean_ns) == (0, None)


def test_roles_of_other_iterations_are_not_drawn_together() -> None:
    found = compose_iteration(recorded(("rollout", 0, 0, 100), ("update", 0, 200 + CLOCKS_NS, 300 + CLOCKS_NS)))
    assert found is not None
    assert found.spans == [] and found.apart_ns == 100 + CLOCKS_NS


def test_several_iterations_follow_one_another() -> None:
    steps = [
        StepInfo(rank=0, step=step, start_ns=start, end_ns=start + 50, role=role)
        for step, role, start in ((1, "rollout", 0), (1, "update", 100), (2, "rollout", 200), (2, "update", 300))
    ]
    result = cast(RunResult, SimpleNamespace(profile=SimpleNamespace(steps=steps[::-1])))
    found = compose_iteration(result)
    assert found is not None
    assert [(span.role, span.step) for span in found.spans] == [
        ("rollout", 1),
        ("update", 1),
        ("rollout", 2),
        ("update", 2),
    ]
    assert [gap.ns for gap in found.gaps] == [50, 50, 50]


def test_one_role_or_roles_without_times_are_no_iteration() -> None:
    assert compose_iteration(recorded(("rollout", 0, 0, 100), ("rollout", 1, 0, 100))) is None
    untimed = [StepInfo(rank=0, step=1, start_ns=None, end_ns=None, role=role) for role in ("rollout", "update")]
    assert compose_iteration(cast(RunResult, SimpleNamespace(profile=SimpleNamespace(steps=untimed)))) is None
