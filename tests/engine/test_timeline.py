"""The lanes of a timeline say what the ledger, the critical path and the recording say."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from advisor_core.result.run import RunResult
from advisor_core.result.timeline import RankTimeline, Timeline, Track, Window
from advisor_core.run.compose_timeline import timeline
from advisor_core.run.pipeline import run
from advisor_core.run.prepared import RunOptions
from advisor_core.run.rank_timeline import RankTimes
from tests.once import ResultOf

MS = 1_000_000
FEW = ("HD", "CO")
WITH = RunOptions(timeline=True, select=FEW)


@pytest.fixture(scope="module")
def result(advisor_sample: Path) -> RunResult:
    return run([advisor_sample], WITH, jobs=2)  # the others run in this process


def lanes(result: RunResult) -> Timeline:
    assert result.timeline is not None
    return result.timeline


def totals(rank: RankTimeline, kind: str) -> dict[str, int]:
    by_name: dict[str, int] = defaultdict(int)
    for track in rank.tracks:
        if track.kind == kind:
            for _, ns, name in track.spans:
                by_name[track.names[name]] += ns
    return dict(by_name)


def test_the_lane_of_the_ledger_adds_up_to_the_ledger(result: RunResult) -> None:
    for rank in lanes(result).ranks:
        booked: dict[str, int] = defaultdict(int)
        for step in result.ledger:
            if step.rank == rank.rank:
                for entry in step.entries:
                    booked[entry.path] += entry.ns
        assert len(rank.steps) == rank.recorded_steps and not any(track.left_out for track in rank.tracks)
        assert totals(rank, "ledger") == booked


def test_the_critical_path_fills_the_steps_and_kernels_lie_in_them(result: RunResult) -> None:
    for rank in lanes(result).ranks:
        assert sum(totals(rank, "critical_path").values()) == sum(step.end_ns - step.start_ns for step in rank.steps)
        first, last = rank.steps[0].start_ns, rank.steps[-1].end_ns
        streams = [track for track in rank.tracks if track.kind == "stream"]
        assert sum(len(track.spans) for track in streams) > 1000
        for track in streams:
            assert all(start < last and start + ns > first for start, ns, _ in track.spans)
            assert [start for start, *_ in track.spans] == sorted(start for start, *_ in track.spans)


def test_an_arrow_ends_where_the_ledger_stops_waiting_for_that_rank(result: RunResult) -> None:
    found = lanes(result)
    ranks = {rank.rank: rank for rank in found.ranks}
    assert found.arrows and len(found.arrows) == found.waits
    assert [arrow.ns for arrow in found.arrows] == sorted((arrow.ns for arrow in found.arrows), reverse=True)
    for arrow in found.arrows:
        booked = next(track for track in ranks[arrow.rank].tracks if track.kind == "ledger")
        path = f"communication/wait/rank {arrow.last_rank}"
        assert any(start < arrow.end_ns <= start + ns and booked.names[n] == path for start, ns, n in booked.spans)
        calls = next(
            track for track in ranks[arrow.last_rank].tracks if track.kind == "stream" and track.stream == arrow.stream
        )
        assert any(start == arrow.start_ns for start, *_ in calls.spans)


def test_a_timeline_changes_nothing_else_and_is_no_part_of_the_report(
    result_of: ResultOf, result: RunResult, advisor_sample: Path
) -> None:
    without = result_of(advisor_sample, select=FEW)
    assert without.timeline is None
    for one in (result, without):
        assert "timeline" not in one.model_dump()
    alike = {"timings": {}, "timeline": None}
    assert result.model_copy(update=alike) == without.model_copy(update=alike)


def test_what_does_not_fit_is_left_out_and_told(
    result: RunResult, advisor_sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advisor_core.run.rank_timeline.SPANS", 2_000)
    small = lanes(run([advisor_sample], replace(WITH, select=("DQ002",)), jobs=1))
    whole = {rank.rank: rank for rank in lanes(result).ranks}
    assert sum(len(track.spans) for rank in small.ranks for track in rank.tracks) <= 2_000
    for rank in small.ranks:
        (step,) = rank.steps
        assert step.step == small.ranks[0].steps[0].step and rank.recorded_steps == len(whole[rank.rank].steps)
        for track in rank.tracks:
            twin = next(
                other for other in whole[rank.rank].tracks if (other.kind, other.stream) == (track.kind, track.stream)
            )
            all_spans = [span for span in twin.spans if span[0] < step.end_ns and span[0] + span[1] > step.start_ns]
            assert len(track.spans) + track.left_out == len(all_spans)
            if track.left_out:
                assert track.left_out_ns <= min((ns for _, ns, _ in track.spans), default=track.left_out_ns)


def test_kernels_have_the_times_of_the_recording(profiles: Path) -> None:
    folder = profiles / "ascend" / "alexnet-ddp-text-level1" / "rank0_ascend_pt"
    with (folder / "ASCEND_PROFILER_OUTPUT" / "kernel_details.csv").open(encoding="utf-8") as file:
        listed = [
            (row["Name"], ns(row["Start Time(us)"]), ns(row["Duration(us)"]), row["Type"].startswith("hcom"))
            for row in csv.DictReader(file)
        ]
    (rank,) = lanes(run([folder], replace(WITH, select=("DQ002",)), jobs=1)).ranks
    drawn = [
        (track.names[name], start, lasted, name in track.talks)
        for track in rank.tracks
        if track.kind == "stream"
        for start, lasted, name in track.spans
    ]
    assert len(drawn) == 191 and sorted(drawn) == sorted(listed)


def ns(time: str) -> int:
    """Microseconds as the exporter writes them."""
    return int(Decimal(time.strip()) * 1000)


def given(
    rank: int, ahead: int, calls: list[tuple[int, int, int]], waits: list[tuple[int, int, int, int]]
) -> RankTimes:
    """A rank whose clock is ``ahead``: calls (number, start, end), and waits (call, last rank, end, ns), of a true
    clock."""
    return RankTimes(
        RankTimeline(
            rank=rank,
            steps=[Window(step=1, start_ns=ahead, end_ns=ahead + 100 * MS)],
            recorded_steps=1,
            tracks=[Track(kind="ledger", names=[], spans=[])],
        ),
        pd.DataFrame(
            [(call, 2, start + ahead, end + ahead) for call, start, end in calls],
            columns=["call", "stream", "start_ns", "end_ns"],
        ),
        pd.DataFrame(
            [(call, last, end + ahead, ns) for call, last, end, ns in waits],
            columns=["call", "last_rank", "end_ns", "ns"],
        ),
    )


CALLS = [(0, 10 * MS, 30 * MS), (1, 40 * MS, 50 * MS)]
LATE = [(0, 25 * MS, 30 * MS), (1, 40 * MS, 50 * MS)]


@pytest.mark.parametrize(("ahead", "told"), [(0, 0), (20_000, 0), (3 * MS, 3 * MS), (-7 * MS, -7 * MS)])
def test_clocks_are_set_by_the_ends_of_calls(ahead: int, told: int) -> None:
    found = timeline([given(0, 0, CALLS, [(0, 1, 25 * MS, 15 * MS)]), given(1, ahead, LATE, [])], 2)
    assert found is not None
    assert [rank.ahead_ns for rank in found.ranks] == [0, told]
    (arrow,) = found.arrows
    assert (arrow.last_rank, arrow.rank, arrow.ns) == (1, 0, 15 * MS)
    assert (arrow.start_ns, arrow.end_ns) == (25 * MS + ahead, 25 * MS), "each by its own clock"


def test_recordings_of_different_times_have_no_arrows() -> None:
    hour = 3_600_000 * MS
    found = timeline([given(0, 0, CALLS, [(0, 1, 25 * MS, 15 * MS)]), given(1, hour, LATE, [])], 2)
    assert found is not None and found.arrows == [] and [rank.apart for rank in found.ranks] == [False, True]


def test_the_other_end_of_a_send_is_waited_for() -> None:
    found = timeline([given(0, 0, CALLS, [(0, -1, 25 * MS, 15 * MS)]), given(1, 0, LATE, [])], 2)
    assert found is not None and [arrow.last_rank for arrow in found.arrows] == [1]
    three = timeline([given(0, 0, CALLS, [(0, -1, 25 * MS, 1)]), given(1, 0, LATE, []), given(2, 0, CALLS, [])], 3)
    assert three is not None and three.arrows == [], "of three it is not known which"


def test_a_wait_that_ended_before_the_other_came_is_no_arrow() -> None:
    found = timeline([given(0, 0, CALLS, [(0, 1, 24 * MS, 14 * MS)]), given(1, 0, LATE, [])], 2)
    assert found is not None and found.arrows == []


def test_without_a_rank_there_is_no_timeline() -> None:
    assert timeline([None, None], 2) is None
