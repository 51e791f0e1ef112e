"""Ranks over one step: which are shown, on which clock, and the passes over the stages of a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest

from advisor_core.job.clocks import CLOCKS_NS
from advisor_core.job.job_graph import JobGraph
from advisor_core.result.balance import Balance, RankBalance
from advisor_core.result.layout import Layout
from advisor_core.result.plan import Owner
from advisor_core.run.rank_lane import StepLane
from advisor_core.run.side_by_side import Joined, reasons_to_show, side_by_side, stage_passes

ALONE = Layout({}, None)


def lane(start: int, ns: int, passes: pd.DataFrame | None = None) -> StepLane:
    return StepLane(11, start, start + ns, [(0, ns, "compute")], passes)


def unknown(ranks: Sequence[int]) -> None:
    """No rank has a graph."""


def clocks(ahead: dict[int, int], joined: list[int]) -> Joined:
    """What the picture reads of a graph: the clocks of the ranks, and which have calls in common."""
    models = tuple(SimpleNamespace(rank=rank) for rank in ahead)
    job = SimpleNamespace(models=models, offset_ns=tuple(ahead.values()), calls=pd.DataFrame({"rank": joined}))
    return lambda ranks: cast(JobGraph, job)


def balanced(slow: int, waiting: int, count: int) -> Balance:
    return Balance(
        ranks=[
            RankBalance(
                rank=rank, step_ns=1, computing_ns=1, communicating_ns=0, idle_ns=0,
                waiting_ns=9 if rank == waiting else 1, slowdown=1.2 if rank == slow else 1.0,
            )
            for rank in range(count)
        ]
    )  # fmt: skip


def test_of_many_ranks_those_that_explain_the_job_are_shown() -> None:
    lanes = {rank: lane(0, 100 + rank) for rank in range(64)}
    path = [Owner(rank=7, chain="kernels", path="compute", ns=5), Owner(rank=None, chain="kernels", path="x", ns=9)]
    reasons = reasons_to_show(lanes, balanced(7, 3, 64), None, path, [])
    assert reasons == {7: ["path", "slowdown"], 63: ["slowest"], 3: ["waiting"], 31: ["median"]}
    shown = side_by_side(lanes, reasons, unknown, ALONE)
    assert shown is not None
    assert [one.rank for one in shown.lanes] == [3, 7, 31, 63] and shown.ranks == 64


def test_few_ranks_are_all_shown_and_one_alone_is_not() -> None:
    lanes = {rank: lane(0, 100) for rank in range(8)}
    shown = side_by_side(lanes, {}, unknown, ALONE)
    assert shown is not None and len(shown.lanes) == 8
    assert side_by_side({0: lane(0, 1)}, {}, unknown, ALONE) is None


def test_clocks_are_set_by_common_calls() -> None:
    """The clock of rank 1 is 1,000 ns ahead: its step began 50 ns after that of rank 0."""
    shown = side_by_side({0: lane(500, 100), 1: lane(1550, 100)}, {}, clocks({0: 0, 1: 1000}, [0, 1]), ALONE)
    assert shown is not None and shown.clocks == "calls"
    assert [(one.start_ns, one.end_ns, one.intervals[0][0]) for one in shown.lanes] == [(0, 100, 0), (50, 150, 50)]


@pytest.mark.parametrize(("ahead", "joined"), [(1000, [0]), (CLOCKS_NS + 1, [0, 1])])
def test_clocks_that_nothing_sets_are_said_not_to_be(ahead: int, joined: list[int]) -> None:
    """A rank without a common call, and one that was recorded at another time."""
    shown = side_by_side({0: lane(500, 100), 1: lane(1550, 100)}, {}, clocks({0: 0, 1: ahead}, joined), ALONE)
    assert shown is not None and shown.clocks == "none"
    assert [one.start_ns for one in shown.lanes] == [0, 0]


def over(starts: list[int], backward: list[bool]) -> pd.DataFrame:
    numbers = [sum(kind == one for one in backward[: place + 1]) for place, kind in enumerate(backward)]
    ends = [start + 10 for start in starts]
    return pd.DataFrame({"backward": backward, "number": numbers, "start_ns": starts, "end_ns": ends})


def test_the_pipeline_is_the_one_of_the_rank_that_matters() -> None:
    """Four ranks, two stages: rank 3 stands behind rank 1."""
    lanes = {rank: lane(0, 100, over([10, 60], [False, True])) for rank in (0, 1, 2)}
    lanes[3] = lane(0, 100, over([30, 40], [False, True]))
    found = stage_passes(lanes, {3: ["slowest"]}, unknown, Layout({"pp": 2}, 4))
    assert found is not None
    assert [(stage.stage, stage.rank, stage.between_ns) for stage in found.stages] == [(0, 1, 40), (1, 3, 40)]
    assert found.micro_batches == 1 and found.clocks == "none"


def test_stages_that_differ_in_their_passes_are_not_numbered() -> None:
    lanes = {0: lane(0, 100, over([10, 30, 60], [False, False, True])), 1: lane(0, 100, over([10, 60], [False, True]))}
    found = stage_passes(lanes, {}, unknown, Layout({"pp": 2}, 2))
    assert found is not None and found.micro_batches is None


def test_without_two_stages_there_is_no_pipeline() -> None:
    lanes = {0: lane(0, 100, over([10, 60], [False, True])), 1: lane(0, 100)}
    assert stage_passes(lanes, {}, unknown, Layout({"pp": 2}, 2)) is None
    assert stage_passes(lanes, {}, unknown, ALONE) is None
