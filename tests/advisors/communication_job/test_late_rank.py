"""The job's view: witnesses, order of arrival, and what the late rank was doing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from advisor_core.api.testing import Scene, judge_rule
from advisor_core.facts.store import FactStore
from tests.advisors.real import real_job


def rank(
    number: int, *, computing: float, wait: float, late: int | None, loading: float = 0, **about: Any
) -> FactStore:
    """Computes for ``computing`` us, then an AllReduce that waits ``wait`` us and moves data for 100 us. ``late``: whom
    the planes name; ``None``: no planes recorded."""
    scene = Scene(rank=number).step(1, -10, 5000).kernel(0, 10, op="aten::mul")
    if loading:
        scene.event("cpu_op", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 5, loading)
    start = 10 + loading
    scene.kernel(start, computing, launched=start - 2, op="aten::mm")
    begin = start + computing
    end = begin + wait + 100
    planes = None if late is None else [(begin, begin + wait, late), (begin + wait, end, None)]
    scene.collective(begin, end - begin, planes)
    return scene.store(**about)


GROUPS = {"groups": {"7100": [0, 1, 2]}}


def test_two_witnesses_prove_a_rank_that_was_not_profiled() -> None:
    job = {n: rank(n, computing=500, wait=400, late=2, **GROUPS) for n in (0, 1)}
    found = judge_rule("CO010", job)
    seen = found.first.observation
    assert seen["late"] == 2 and seen["witnesses"] == 2 and seen["witness_ranks"] == "0, 1"
    assert seen["profiled"] is False and seen["confirmed_by_arrival"] is None
    assert seen["wait_ns"] == 400_000
    assert found.first.severity == "high"
    assert [advice.kind for advice in found.first.advice] == ["collect", "investigate"]


def test_witnesses_that_disagree_prove_nothing() -> None:
    job = {0: rank(0, computing=500, wait=400, late=2, **GROUPS), 1: rank(1, computing=500, wait=400, late=3)}
    assert judge_rule("CO010", job).state == "pass"


def test_a_rank_behind_a_slow_link_is_not_late() -> None:
    """All ranks arrive together and wait for rank 2 within the collective: the link is slow, not the rank."""
    job = {n: rank(n, computing=500, wait=400, late=2 if n != 2 else 0, **GROUPS) for n in (0, 1, 2)}
    found = judge_rule("CO010", job)
    assert found.observed is not None
    seen = found.observed.frame.set_index("late").loc[2]
    assert seen["wait_ns"] == 400_000 and seen["arrival_known"] and seen["arrival_ns"] == 0
    assert found.state == "pass"


def test_late_rank_in_the_profile_is_explained() -> None:
    job = {
        0: rank(0, computing=500, wait=400, late=2, **GROUPS),
        1: rank(1, computing=510, wait=390, late=2, **GROUPS),
        2: rank(2, computing=500, wait=0, late=0, loading=400, **GROUPS),
    }
    found = judge_rule("CO010", job)
    seen = found.first.observation
    assert seen["late"] == 2 and seen["profiled"] is True and seen["witnesses"] == 2
    assert seen["confirmed_by_arrival"] is True
    assert seen["cause"] == "idle/host/dataloader"
    assert seen["cause_ns"] == pytest.approx(400_000, abs=10_000)
    assert len(found.evidence()) == 3


def test_order_of_arrival_alone_when_planes_are_not_recorded() -> None:
    job = {
        0: rank(0, computing=500, wait=400, late=None, world_size=3),
        1: rank(1, computing=520, wait=380, late=None, world_size=3),
        2: rank(2, computing=900, wait=0, late=None, world_size=3),
    }
    found = judge_rule("CO010", job)
    seen = found.first.observation
    assert seen["late"] == 2 and seen["witnesses"] == 2 and seen["confirmed_by_arrival"] is True
    assert seen["wait_ns"] == pytest.approx((400_000 + 380_000) / 2)
    assert seen["computing_excess_ns"] == pytest.approx(900_000 - 510_000)


def test_order_of_arrival_says_nothing_while_ranks_are_missing() -> None:
    job = {
        0: rank(0, computing=500, wait=400, late=None, world_size=8),
        1: rank(1, computing=520, wait=380, late=None, world_size=8),
    }
    assert judge_rule("CO010", job).state == "cannot_answer"


def test_clocks_of_hosts_need_not_agree() -> None:
    """Rank 2 is late; its clock is a second behind, so that its collective seems to start first."""
    late = Scene(rank=2).kernel(-1_000_000, 900).collective(-999_100, 100, None)
    job = {
        0: rank(0, computing=500, wait=400, late=None, world_size=2),
        2: late.store(world_size=2),
    }
    assert judge_rule("CO010", job).first.observation["late"] == 2


def stepwise(number: int, waits: Sequence[float], *, covered: float = 0) -> FactStore:
    """A step of 2000 us per wait: computes, waits for rank 2 (the first ``covered`` us under computing), then moves
    data for 200 us. Rank 2 itself computes as much longer."""
    scene = Scene(rank=number)
    for place, wait in enumerate(waits):
        start = 2000.0 * place
        scene.step(place + 1, start, 1990).kernel(start + 5, 500, op="aten::mm", step=place + 1)
        if number == 2:
            scene.kernel(start + 505, wait, step=place + 1)
        elif covered:
            scene.kernel(start + 505, covered, step=place + 1, stream=3)
        begin, ready = start + 505 + (wait if number == 2 else 0), start + 505 + wait
        for planes in ([(begin, ready, 2), (ready, ready + 100, None)], [(ready + 100, ready + 200, None)]):
            scene.collective(planes[0][0], planes[-1][1] - planes[0][0], planes, step=place + 1)
    return scene.store(**GROUPS)


def test_the_first_of_several_steps_does_not_count() -> None:
    """In it ranks also wait for those that started later."""
    found = judge_rule("CO010", {n: stepwise(n, (900, 100, 100)) for n in (0, 1, 2)})
    seen = found.first.observation
    assert seen["late"] == 2 and seen["wait_ns"] == pytest.approx(1_100_000 / 3)
    assert found.first.impact_ns == 100_000
    at_start_only = judge_rule("CO010", {n: stepwise(n, (900, 0, 0)) for n in (0, 1, 2)})
    assert at_start_only.state == "pass"


def test_what_moves_late_because_of_the_waiting_counts_as_well() -> None:
    """Of two transfers after 300 us of waiting under computing the first would have been hidden."""
    found = judge_rule("CO010", {n: stepwise(n, (400, 400), covered=300) for n in (0, 1, 2)})
    assert found.first.observation["longest_wait_ns"] == 100_000
    assert found.first.impact_ns == 200_000


def test_a_rank_that_is_held_up_itself_is_not_to_blame() -> None:
    """Rank 2 comes late to the others because it waits for its neighbour in the pipeline meanwhile."""
    job = {n: stepwise(n, (400, 400)) for n in (0, 1)}
    scene = Scene(rank=2)
    for place in (0, 1):
        start = 2000.0 * place
        scene.step(place + 1, start, 1990).kernel(start + 5, 500, op="aten::mm", step=place + 1)
        begin, ready = start + 505, start + 905
        scene.collective(begin, 400, [(begin, ready, 0)], operation="batchSendRecv", step=place + 1, group=1)
        for time in (ready, ready + 100):
            scene.collective(time, 100, [(time, time + 100, None)], step=place + 1)
    job[2] = scene.store(**GROUPS)
    found = judge_rule("CO010", job)
    assert found.observed is not None and found.state == "pass"
    assert found.observed.frame["longest_wait_ns"].item() == 400_000


def test_the_next_slowest_rank_is_waited_for_then() -> None:
    """Rank 1 waits for rank 2 much less than rank 0 does: it would be the late one."""
    job = {0: stepwise(0, (400, 400)), 1: stepwise(1, (50, 50)), 2: stepwise(2, (400, 400))}
    assert judge_rule("CO010", job).first.impact_ns == 50_000


def test_a_rank_that_waits_longest_for_its_neighbour_in_the_pipeline_is_no_witness() -> None:
    """Rank 1 waits 10 us for rank 2 and 300 us for its neighbour: rank 0 alone says who is late, and by how much."""
    job = {n: stepwise(n, (400, 400)) for n in (0, 2)}
    scene = Scene(rank=1)
    for place in (0, 1):
        start = 2000.0 * place
        scene.step(place + 1, start, 1990).kernel(start + 5, 590, op="aten::mm", step=place + 1)
        before, begin, ready = start + 595, start + 895, start + 905
        scene.collective(before, 300, [(before, begin, 0)], operation="batchSendRecv", step=place + 1, group=1)
        scene.collective(begin, 110, [(begin, ready, 2), (ready, ready + 100, None)], step=place + 1)
        scene.collective(ready + 100, 100, [(ready + 100, ready + 200, None)], step=place + 1)
    job[1] = scene.store(**GROUPS)
    found = judge_rule("CO010", job).observed
    assert found is not None
    assert found.frame["witness_ranks"].item() == "0" and found.frame["saveable_ns"].item() == 400_000


def test_states() -> None:
    alone = {0: rank(0, computing=500, wait=400, late=2)}
    assert judge_rule("CO010", alone).state == "not_applicable"
    even = {n: rank(n, computing=5000, wait=1, late=1 - n, groups={"7100": [0, 1]}) for n in (0, 1)}
    assert judge_rule("CO010", even).state == "pass"
    silent = {n: Scene(rank=n).kernel(0, 10).store("kernels", "device_tasks") for n in (0, 1)}
    assert judge_rule("CO010", silent).state == "cannot_answer"


def test_alexnet_two_ranks_of_eight_prove_rank_5(profiles: Path) -> None:
    found = judge_rule("CO010", real_job(profiles, "alexnet-ddp-text-level1"))
    seen = found.first.observation
    assert seen["late"] == 5 and seen["witnesses"] == 2 and seen["witness_ranks"] == "0, 1"
    assert seen["profiled"] is False and found.first.severity == "high"
    assert seen["wait_ns"] == pytest.approx(95.09e6, rel=1e-3)
    assert len(found.verdict.rows) == 1  # type: ignore[union-attr]
