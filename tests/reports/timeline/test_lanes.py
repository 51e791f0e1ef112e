"""Lanes: findings where their evidence is, no two spans of a lane at one moment, one clock."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor_core.result.places import Place, places
from advisor_core.result.redact import redact
from advisor_core.result.run import RunResult
from reports.labels import Labels
from reports.timeline.lanes import Lanes, Span, _rows
from tests.reports.timeline.timelines import of_two, track, with_timeline

EN = Labels("en")


def lanes_of(result: RunResult, lang: str = "en") -> Lanes:
    return Lanes(result, Labels(lang, result.labels))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=30))
def test_lanes_hold_every_span_once_and_no_two_at_a_moment(times: list[tuple[int, int]]) -> None:
    spans = [Span(start, ns, str(number)) for number, (start, ns) in enumerate(times)]
    rows = [lane.spans for lane in _rows("stream", "Stream 2", spans)]
    assert sorted(span.name for row in rows for span in row) == sorted(span.name for span in spans)
    for row in rows:
        assert all(one.start_ns + max(one.ns, 1) <= other.start_ns for one, other in pairwise(row))
    moments = {span.start_ns for span in spans}
    crowd = [sum(s.start_ns <= at < s.start_ns + max(s.ns, 1) for s in spans) for at in moments]
    assert len(rows) == max(crowd, default=0), "no more lanes than there are spans at one moment"


@pytest.mark.parametrize("name", ["training", "of_roles", "hostile"])
def test_a_finding_lies_where_its_evidence_is(example: ModuleType, name: str) -> None:
    result = with_timeline(getattr(example, name)())
    found = places(result)
    assert found
    for finding in result.findings:
        listed = {
            ((finding.role, e.rank), (row["start_ns"], row["duration_ns"]))
            for e in finding.evidence
            for row in e.rows
            if e.kind == "rows" and isinstance(row.get("start_ns"), int) and isinstance(row.get("duration_ns"), int)
        }
        stretches = {
            ((finding.role, e.rank), (e.start_ns, e.end_ns - e.start_ns))
            for e in finding.evidence
            if e.kind == "interval" and e.start_ns is not None and e.end_ns is not None
        }
        own = found.get(finding.fingerprint, {})
        if listed | stretches:
            assert {(lane, (p.start_ns, p.ns)) for lane, at in own.items() for p in at} == listed | stretches
            assert {p.kind for at in own.values() for p in at} == {"evidence"}


def test_a_finding_without_times_lies_where_the_ledger_books_what_it_claims(example: ModuleType) -> None:
    result = example.two_of_four()
    late = next(finding for finding in result.findings if finding.rule == "CO010")
    (claim,) = {claim.path for claim in late.impact.claims}
    timeline = of_two().model_copy(update={"ranks": of_two().ranks[:1]})
    (rank,) = timeline.ranks
    booked = track("ledger", [(10, 5, "compute/matmul"), (15, 7, claim), (30, 2, claim)])
    claimed = rank.model_copy(update={"tracks": [booked], "rank": late.impact.claims[0].rank})
    found = places(result.model_copy(update={"timeline": timeline.model_copy(update={"ranks": [claimed]})}))
    assert found[late.fingerprint] == {(None, claimed.rank): (Place("claimed", 15, 7), Place("claimed", 30, 2))}
    elsewhere = timeline.model_copy(update={"ranks": [claimed.model_copy(update={"rank": 77})]})
    assert places(result.model_copy(update={"timeline": elsewhere})) == {}


@pytest.mark.parametrize("ahead", [0, 5_000, -5_000])
def test_ranks_are_laid_on_one_clock(example: ModuleType, ahead: int) -> None:
    lanes = lanes_of(example.empty().model_copy(update={"timeline": of_two(ahead_ns=ahead)}))
    first, second = lanes.groups
    assert lanes.window == (1000, 1100)
    assert [(s.start_ns, s.ns) for s in second.lanes[1].spans] == [(1000, 80), (1080, 20)]
    assert first.notes == () and bool(second.notes) == bool(ahead)
    (wait,) = lanes.waits
    source = lanes.groups[wait.source.group].lanes[wait.source.lane]
    target = lanes.groups[wait.target.group].lanes[wait.target.lane]
    assert (source.title, source.spans[wait.source.span].name, wait.source.at_ns) == (
        "Collectives",
        "hcom_allReduce",
        1080,
    )
    assert (target.kind, target.spans[wait.target.span].key) == ("ledger", "communication/wait/rank 1")
    assert wait.target.at_ns == 1079, "the last moment of the wait"
    assert not lanes.notes


def test_what_is_left_out_is_said_in_both_languages(example: ModuleType) -> None:
    result = with_timeline(example.training())
    assert result.timeline is not None
    rank = result.timeline.ranks[0]
    cut = rank.tracks[0].model_copy(update={"left_out": 12, "left_out_ns": 3_000})
    short = rank.tracks[1].model_copy(update={"left_out": 1, "left_out_ns": 900})
    ranks = [rank.model_copy(update={"tracks": [cut, short], "why": "median"}), *result.timeline.ranks[1:]]
    timeline = result.timeline.model_copy(update={"ranks": ranks, "waits": 4})
    said = result.model_copy(update={"timeline": timeline})
    notes = " ".join(lanes_of(said).notes)
    for text in (
        "2 of 5 ranks are shown",
        "2 of 3 measured steps",
        "1 short kernel is left out; none of them takes more than 900 ns",
        "12 short stretches of the ledger or of the critical path are left out; none of them takes more than 3.00 µs",
        "4 waits across ranks have no arrow",
        "Without a place in this timeline",
    ):
        assert text in notes, notes
    assert lanes_of(said).groups[0].notes == ("steps of median length",)
    chinese = lanes_of(said, "zh")
    assert len(chinese.notes) == len(lanes_of(said).notes)
    assert all(
        any("\u4e00" <= char <= "\u9fff" for char in note) for note in (*chinese.notes, *chinese.groups[0].notes)
    )


def test_without_a_timeline_there_are_no_lanes(example: ModuleType) -> None:
    with pytest.raises(ValueError, match="no timeline"):
        Lanes(example.training(), EN)


def test_a_redacted_result_keeps_its_lanes_without_names(example: ModuleType) -> None:
    first, second = of_two().ranks
    tracks = [track("stream", [(1000, 5, "load /home/alice.w/x.py")], 2)]
    timeline = of_two().model_copy(update={"ranks": [first.model_copy(update={"tracks": tracks}), second]})
    clean = redact(example.empty().model_copy(update={"timeline": timeline}))
    assert clean.timeline is not None and clean.timeline.ranks[1] == second
    assert clean.timeline.ranks[0].tracks[0].names == ["load ~/x.py"]
