"""The plan of small jobs whose answers are sums in the head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from advisor_core.contracts.cure import AsPeers
from advisor_core.facts.replay.changes import Shortening
from advisor_core.facts.replay.nodes import TASK
from advisor_core.job.job_graph import JobGraph
from advisor_core.job.job_replay import Cures, JobReplay
from advisor_core.job.plan import plan
from advisor_core.result.plan import Action, Plan
from tests.job.jobs import meeting


def shorter(job: JobGraph, rank: int, kernel: int, by_us: float) -> Cures:
    model = job.models[rank]
    kernels = (model.nodes.kind == TASK) & ~model.replay.recorded.talks
    return Cures({rank: Shortening(model.nodes.row[kernels][kernel : kernel + 1], 1, round(1000 * by_us))})


def planned(job: JobGraph, cures: Mapping[str, Cures]) -> Plan:
    found = plan(JobReplay(job, cures))
    assert found is not None
    return found


def names(actions: Sequence[Action]) -> list[str]:
    return [action.finding for action in actions]


def test_gains_add_up_to_what_the_plan_wins() -> None:
    job = meeting([100, 100], [180, 150])
    found = planned(job, {"small": shorter(job, 1, 1, 20), "large": shorter(job, 1, 0, 60)})
    assert names(found.actions) == ["large", "small"]
    assert [action.gain_ns for action in found.actions] == [60_000, 20_000]
    assert found.step_ns - found.after_ns == sum(action.gain_ns for action in found.actions)
    assert found.actions[-1].step_after_ns == found.after_ns == 290_000


def test_two_late_ranks_pay_only_together() -> None:
    job = meeting([100, 100], [180, 100], [180, 100])
    found = planned(job, {"one": shorter(job, 1, 0, 80), "other": shorter(job, 2, 0, 80)})
    first, second = found.actions
    assert (first.alone_ns, first.gain_ns, second.alone_ns, second.gain_ns) == (0, 0, 0, 80_000)
    assert (first.last_ns, second.last_ns) == (80_000, 80_000)
    assert second.needs == [first.finding] and first.needs == []


def test_what_wins_nothing_even_with_all_others_is_not_in_the_plan() -> None:
    job = meeting([100, 100], [180, 100])
    found = planned(job, {"late": shorter(job, 1, 0, 60), "idle": shorter(job, 0, 0, 10)})
    assert names(found.actions) == ["late"] and found.actions[0].covers == []


def test_two_changes_of_the_same_time_are_one_action() -> None:
    job = meeting([100, 100], [180, 100])
    cures = {"one": shorter(job, 1, 0, 100), "other": shorter(job, 1, 0, 100)}
    found = planned(job, cures)
    assert names(found.actions) == ["one"] and found.actions[0].covers == ["other"]


def test_how_a_rank_becomes_quicker_comes_before_that_it_does() -> None:
    job = meeting([100, 100], [180, 100])
    cures = {"late": Cures(of_job=(AsPeers(1, (0,)),)), "why": shorter(job, 1, 0, 70)}
    found = planned(job, cures)
    assert names(found.actions) == ["why"] and found.actions[0].covers == ["late"]
    alone = planned(job, {"late": cures["late"]})
    assert names(alone.actions) == ["late"] and alone.actions[0].gain_ns == 80_000


def test_without_a_change_there_is_a_step_and_nothing_to_do() -> None:
    found = planned(meeting([100], [120]), {})
    assert found.actions == [] and found.step_ns == found.after_ns == 140_000
    assert found.parts_before == found.parts_after


def test_of_two_that_exclude_each_other_the_better_one_is_planned() -> None:
    """The first wins 60 us by itself, but rules out the second, which wins 50, and only the second goes with the
    third, which wins 40 more."""
    job = meeting([100, 100], [180, 150])
    first, second, third = shorter(job, 1, 0, 60), shorter(job, 1, 0, 50), shorter(job, 1, 1, 40)
    apart = {
        "first": replace(first, excludes=frozenset(["second", "third"])),
        "second": replace(second, excludes=frozenset(["first"])),
        "third": replace(third, excludes=frozenset(["first"])),
    }
    found = planned(job, apart)
    assert names(found.actions) == ["second", "third"] and found.step_ns - found.after_ns == 90_000
    assert [action.excludes for action in found.actions] == [["first"], []]
    assert all(action.covers == [] for action in found.actions)


def test_of_equal_terms_that_exclude_each_other_the_larger_is_planned() -> None:
    job = meeting([100, 100], [180, 150])
    small = replace(shorter(job, 1, 1, 20), excludes=frozenset(["large"]))
    large = replace(shorter(job, 1, 0, 60), excludes=frozenset(["small"]))
    found = planned(job, {"small": small, "large": large})
    assert names(found.actions) == ["large"] and found.actions[0].excludes == ["small"]


def test_a_way_to_get_something_comes_before_it() -> None:
    """That the host should be quicker wins more than the one way to make it so, and wins the rest on top of it."""
    job = meeting([100, 100], [180, 100])
    way = replace(shorter(job, 1, 0, 30), explains=frozenset(["all"]))
    found = planned(job, {"all": shorter(job, 1, 0, 70), "way": way})
    assert names(found.actions) == ["way", "all"]
    assert sum(action.gain_ns for action in found.actions) == found.step_ns - found.after_ns
